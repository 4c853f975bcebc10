// Fuzz target: a chat template, parsed, analysed and rendered with the variables of the golden tests and of a
// conversation with tools. Covers: src/text/template/arguments.cc src/text/template/builtin_tests.cc
// src/text/template/chat_template.cc Covers: src/text/template/content_format.cc src/text/template/evaluate.cc
// src/text/template/expression_parser.cc Covers: src/text/template/failure.cc src/text/template/format.cc
// src/text/template/from_json.cc src/text/template/globals.cc Covers: src/text/template/interpreter.cc
// src/text/template/jinja.cc src/text/template/json_dump.cc src/text/template/lexer.cc Covers:
// src/text/template/methods.cc src/text/template/number_filters.cc src/text/template/numbers.cc
// src/text/template/objects.cc Covers: src/text/template/operators.cc src/text/template/parser.cc
// src/text/template/pystring.cc src/text/template/scope.cc Covers: src/text/template/sequence_filters.cc
// src/text/template/str_format.cc src/text/template/string_methods.cc Covers: src/text/template/text_filters.cc
// src/text/template/unicode_tables.cc src/text/template/value.cc
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "base/strings.h"
#include "text/template/chat_template.h"
#include "text/template/content_format.h"

namespace {

base::Json ReadContexts(const char* name) {
  std::ifstream file(std::string(VLLM_SOURCE_DIR) + "/tests/data/template/" + name);
  std::stringstream text;
  text << file.rdbuf();
  return base::ParseJson(text.str(), base::kMaxJsonDepth).ValueOrThrow()["contexts"];
}

struct Inputs {
  base::Json chat = ReadContexts("chats0.json")["tools_system"];
  vllm::jinja::Value basic = vllm::jinja::FromJson(ReadContexts("expressions0.json")["basic"]);
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Inputs inputs;
  std::string source(reinterpret_cast<const char*>(data), size);
  vllm::RenderOptions options;
  options.steps_max = 20'000;
  options.allocated_bytes_max = 16 << 20;
  options.string_bytes_max = 1 << 20;
  options.now = std::chrono::system_clock::time_point(std::chrono::seconds(1722006245));

  if (const auto config = base::ParseJson(source, base::kMaxJsonDepth); config && config->is_object()) {
    const auto chat = vllm::ChatTemplate::FromConfig(*config);
    if (!chat) return 0;
    const auto member = [&](const char* name) { return config->contains(name) ? &(*config)[name] : nullptr; };
    const base::Json* messages = member("messages");
    static_cast<void>(chat->Render({.messages = messages != nullptr ? *messages : inputs.chat["messages"],
                                    .tools = member("tools"),
                                    .documents = member("documents"),
                                    .add_generation_prompt = member("prompt") != nullptr,
                                    .continue_final_message = member("continue") != nullptr,
                                    .kwargs = member("kwargs"),
                                    .options = options}));
    static_cast<void>(chat->content_format(true));
    static_cast<void>(chat->knows_developer_role(false));
    static_cast<void>(chat->variables(false));
    return 0;
  }
  const auto compiled = vllm::JinjaTemplate::Parse(source);
  if (!compiled) return 0;
  const auto text = compiled->Render(inputs.basic, options);
  if (text && !base::IsValidUtf8(*text)) std::abort();

  const auto chat = vllm::ChatTemplate::Create(std::move(source));
  if (!chat) std::abort();
  for (const bool go_on : {false, true}) {
    const auto prompt = chat->Render({.messages = inputs.chat["messages"],
                                      .tools = &inputs.chat["tools"],
                                      .add_generation_prompt = !go_on,
                                      .continue_final_message = go_on,
                                      .options = options});
    if (prompt && !base::IsValidUtf8(*prompt)) std::abort();
  }
  return 0;
}
