// Reads golden renderings.
#include "tests/text/template/template_cases_util.h"

#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace vllm {

std::string ReadData(const std::string& name) {
  std::ifstream file(std::string(VLLM_SOURCE_DIR) + "/tests/data/template/" + name, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read tests/data/template/" + name);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

base::Json ReadJson(const std::string& name) {
  return base::ParseJson(ReadData(name), base::kMaxJsonDepth).ValueOrThrow();
}

std::string ChatSource(const std::string& name) { return ReadData("chat/" + name + ".jinja"); }

std::vector<RenderCase> ReadCases(const std::string& name) {
  const base::Json file = ReadJson(name);
  std::vector<RenderCase> cases;
  for (const auto& row : file["cases"]) {
    RenderCase one;
    const std::string source = row["t"], context = row["c"];
    one.source = name.starts_with("chats") ? ChatSource(source) : source;
    one.name = source + " with " + context;
    one.context = jinja::FromJson(file["contexts"][context]);
    one.fails = row.contains("error");
    if (!one.fails) one.text = row["ok"];
    cases.push_back(std::move(one));
  }
  return cases;
}

// tools/golden/template.py renders at 2024-07-26 15:04:05.123456, local time.
RenderOptions AtGoldenTime() {
  std::tm local{};
  local.tm_year = 124, local.tm_mon = 6, local.tm_mday = 26, local.tm_hour = 15, local.tm_min = 4, local.tm_sec = 5;
  local.tm_isdst = -1;
  RenderOptions options;
  options.now = std::chrono::system_clock::from_time_t(std::mktime(&local)) + std::chrono::microseconds(123456);
  return options;
}

std::string RenderOrError(std::string_view source, const std::string& json_context, const RenderOptions& options) {
  const auto compiled = JinjaTemplate::Parse(source);
  if (!compiled) return "error: " + compiled.error().message;
  const auto context = base::ParseJson(json_context, base::kMaxJsonDepth).ValueOrThrow();
  const auto text = compiled->Render(jinja::FromJson(context), options);
  return text ? *text : "error: " + text.error().message;
}

}  // namespace vllm
