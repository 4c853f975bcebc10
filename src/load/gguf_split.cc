// Names of the parts of a split GGUF model.
#include "load/gguf_split.h"

#include <charconv>

#include "base/strings.h"

namespace vllm {
namespace {

std::optional<int64_t> FiveDigits(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.size() != 5 || error != std::errc() || end != text.data() + text.size() || value < 1) return std::nullopt;
  return value;
}

std::string Padded(int64_t value) {
  const std::string digits = base::StrCat(value);
  return digits.size() < 5 ? std::string(5 - digits.size(), '0') + digits : digits;
}

}  // namespace

std::optional<GgufPart> ParseGgufPartName(std::string_view path) {
  constexpr size_t kTail = std::string_view("-00001-of-00003.gguf").size();
  if (path.size() <= kTail || !path.ends_with(".gguf")) return std::nullopt;
  const std::string_view tail = path.substr(path.size() - kTail);
  if (tail[0] != '-' || tail.substr(6, 4) != "-of-") return std::nullopt;
  const auto index = FiveDigits(tail.substr(1, 5)), count = FiveDigits(tail.substr(10, 5));
  if (!index || !count || *index > *count) return std::nullopt;
  return GgufPart{.prefix = std::string(path.substr(0, path.size() - kTail)), .index = *index - 1, .count = *count};
}

std::string GgufPartName(std::string_view prefix, int64_t index, int64_t count) {
  return base::StrCat(prefix, "-", Padded(index + 1), "-of-", Padded(count), ".gguf");
}

}  // namespace vllm
