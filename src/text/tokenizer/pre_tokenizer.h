// Cutting normalized text into the pieces that the model sees one by one.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "text/tokenizer/regex.h"

namespace vllm::tokenizer {

enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };
enum class PrependScheme { kFirst, kNever, kAlways };

struct ByteLevelSplit {
  bool add_prefix_space = true, use_regex = true;
  Regex pattern;  // GPT-2's
};
struct PatternSplit {
  Regex pattern;
  SplitBehavior behavior = SplitBehavior::kIsolated;
  bool invert = false;
};
// A split by a property of single characters.
enum class CharClass { kNumeric, kPunctuation, kWhitespace };
struct CharClassSplit {
  CharClass char_class = CharClass::kNumeric;
  SplitBehavior behavior = SplitBehavior::kIsolated;
};
struct DelimiterSplit {
  std::string delimiter = {};  // one character; removed
};
struct MetaspaceSplit {
  std::string replacement = {};  // one character
  PrependScheme scheme = PrependScheme::kAlways;
  bool split = true;
};
struct FixedLengthSplit {
  size_t chars = 5;
};
// Runs of word characters and runs of other visible characters; white space is removed.
struct WordSplit {};

using PreTokenizer = std::variant<ByteLevelSplit, PatternSplit, CharClassSplit, DelimiterSplit, MetaspaceSplit,
                                  FixedLengthSplit, WordSplit>;

// GPT-2's expression, for ByteLevelSplit.
Regex Gpt2Regex();

struct Pieces {
  struct Span {
    uint32_t begin = 0,
             end = 0;    // 32 bits: a text may have as many pieces as bytes, and is below base::kMaxTokenizeBytes
    bool first = false;  // starts at byte 0 of the whole input
  };
  std::string text = {};
  std::vector<Span> spans = {};  // none is empty
};

// Applies all in order to one segment. Valid UTF-8 in and out.
Pieces PreTokenize(std::span<const PreTokenizer> pre_tokenizers, std::string text, bool first);

}  // namespace vllm::tokenizer
