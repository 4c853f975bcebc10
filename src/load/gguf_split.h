// Names of the parts of a split GGUF model: PREFIX-00001-of-00003.gguf.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace vllm {

struct GgufPart {
  std::string prefix = {};
  int64_t index = 0;  // from 0
  int64_t count = 0;
};

// Nullopt for a name that is not of this form.
std::optional<GgufPart> ParseGgufPartName(std::string_view path);
std::string GgufPartName(std::string_view prefix, int64_t index, int64_t count);

}  // namespace vllm
