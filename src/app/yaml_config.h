// The YAML file of --config: a flat mapping of flag names, as vLLM reads it. Bounded; aliases and tags are refused.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace vllm {

struct YamlEntry {
  std::string key = {};
  std::vector<std::string> values =
      {};                // one for a scalar, one JSON text for a mapping, several for a sequence of scalars
  bool is_null = false;  // `key:` or `key: null`: as if absent
  int line = 0;          // 1-based
};

// Throws base::Exception naming `name` and the line.
std::vector<YamlEntry> ParseYamlConfig(std::string_view text, std::string_view name);

}  // namespace vllm
