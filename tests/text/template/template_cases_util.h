// Reads the renderings that jinja2 made (tests/data/template) for the tests of this folder.
#pragma once
#include <string>
#include <vector>

#include "base/json.h"
#include "text/template/jinja.h"

namespace vllm {

struct RenderCase {
  std::string name;  // for messages
  std::string source;
  jinja::Value context;
  bool fails = false;  // jinja2 raises
  std::string text;
};

std::string ReadData(const std::string& name);  // of tests/data/template
base::Json ReadJson(const std::string& name);
std::string ChatSource(const std::string& name);
std::vector<RenderCase> ReadCases(const std::string& name);
RenderOptions AtGoldenTime();
// The text, or "error: …".
std::string RenderOrError(std::string_view source, const std::string& json_context = "{}",
                          const RenderOptions& options = {});

}  // namespace vllm
