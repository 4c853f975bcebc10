// Text of a growing token sequence, piece by piece, never ending inside a character.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "text/tokenizer/tokenizer.h"

namespace vllm {

// Emits what tokenizers' DecodeStream emits as vLLM drives it, at a bounded cost per token. Where that stream would
// repeat the whole prompt (one that ends inside a character), this one completes the character. Not thread-safe; the
// tokenizer outlives it.
class DetokenizeStream {
 public:
  // `prompt_ids` are context only: their text is not emitted.
  DetokenizeStream(const Tokenizer& tokenizer, DecodeOptions options, std::span<const int32_t> prompt_ids);

  // The text that `id` completes; "" while it ends inside a character.
  std::string Push(int32_t id);
  // The text still held back, with U+FFFD for what never became a character. vLLM drops it.
  std::string Finish();

 private:
  std::string Step(int32_t id);
  std::string Flush(size_t keep);
  std::string Text(std::span<const int32_t> ids) const;
  size_t IncompleteTokens() const;

  const Tokenizer& tokenizer_;
  DecodeOptions options_;
  std::vector<int32_t> ids_;  // the last emitted tokens, then those held back
  std::string prefix_;        // text of the emitted ones
  size_t emitted_ = 0;        // how many of ids_ those are
  bool last_added_ = false;
};

}  // namespace vllm
