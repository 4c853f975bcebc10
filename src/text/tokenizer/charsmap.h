// SentencePiece's precompiled character map: a double-array trie from byte strings to replacement texts.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vllm::tokenizer {

class Charsmap {
 public:
  // `blob` as it stands in the model file. Throws base::Exception (kBadFile) for sizes that do not fit.
  explicit Charsmap(std::string_view blob);

  struct Match {
    size_t bytes = 0;  // of the text that it replaces
    std::string_view replacement;
  };
  // The shortest, or the longest, entry that `text` starts with.
  std::optional<Match> Shortest(std::string_view text) const { return Find(text, false); }
  std::optional<Match> Longest(std::string_view text) const { return Find(text, true); }

 private:
  std::optional<Match> Find(std::string_view text, bool longest) const;
  std::vector<uint32_t> units_;
  std::string replacements_;  // each ends with a NUL
};

}  // namespace vllm::tokenizer
