// From token strings back to text: the decoders of tokenizer.json.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "text/tokenizer/normalizer.h"

namespace vllm::tokenizer {

struct ByteLevelDecoder {};
struct ByteFallbackDecoder {};
struct FuseDecoder {};
struct ReplaceDecoder {
  Replace replace;
};
struct StripDecoder {
  std::string content = {};  // one character
  size_t start = 0, stop = 0;
};
struct MetaspaceDecoder {
  std::string replacement = {};  // one character
  bool drop_first = true;        // in the first token the replacement vanishes
};
struct WordPieceDecoder {
  std::string prefix = {};
  bool cleanup = true;
};
struct BpeDecoder {
  std::string suffix = {};
};
struct CtcDecoder {
  std::string pad_token = {}, word_delimiter_token = {};
  bool cleanup = true;
};

using Decoder = std::variant<ByteLevelDecoder, ByteFallbackDecoder, FuseDecoder, ReplaceDecoder, StripDecoder,
                             MetaspaceDecoder, WordPieceDecoder, BpeDecoder, CtcDecoder>;

// The text of a token sequence. Bytes that are no UTF-8 become U+FFFD.
std::string DecodeTokens(std::span<const Decoder> decoders, std::vector<std::string> tokens);

// The bytes that one token stands for, whatever stands around it; they may be part of a character.
std::string BytesOfToken(std::span<const Decoder> decoders, std::string token);

// Removes the spaces that word-level tokenization leaves before punctuation and contractions.
std::string CleanUpSpaces(std::string text);

}  // namespace vllm::tokenizer
