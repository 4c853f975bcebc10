// Text of one sequence as it grows: incremental detokenization, stop strings, and what may be shown so far.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/types.h"
#include "text/tokenizer/detokenize_stream.h"

namespace vllm {

// Follows vLLM's detokenizer (vllm/v1/engine/detokenizer.py). Not thread-safe; tokenizer and params outlive it.
class SequenceText {
 public:
  SequenceText(const Tokenizer& tokenizer, const SamplingParams& params, std::span<const int32_t> prompt_ids);

  struct Update {
    size_t kept_tokens = 0;                       // of the new ones; fewer when a stop string ended among them
    std::optional<std::string> stop_string = {};  // the one whose end came first
  };
  // Takes the tokens of one or more steps. `stopped_by_token`: the last one ended the sequence; its text is left out
  // unless include_stop_str_in_output.
  Update Add(std::span<const int32_t> new_token_ids, bool stopped_by_token);

  // The text that has become showable since the last call. Until `finished`, the last max(len(stop)) - 1 characters are
  // held back, so that no part of a stop string is ever shown. Bytes of an unfinished character are never shown.
  std::string TakeText(bool finished);

 private:
  std::optional<std::pair<std::string, size_t>> FindStop(size_t checked_from) const;

  const SamplingParams& params_;
  std::optional<DetokenizeStream> stream_;  // none without detokenize
  size_t held_characters_ = 0;
  int64_t num_tokens_ = 0;
  // Only the end of the text is kept: what was taken goes once no stop string can reach back into it.
  std::string text_;
  size_t taken_ = 0;  // bytes of text_ already handed out
  size_t longest_stop_bytes_ = 0;
};

}  // namespace vllm
