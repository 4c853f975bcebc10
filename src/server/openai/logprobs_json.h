// Log-probabilities in the two shapes of the OpenAI API.
#pragma once
#include <span>
#include <string>

#include "base/json.h"
#include "engine/types.h"
#include "text/tokenizer/tokenizer.h"

namespace vllm {

struct LogprobsStyle {
  int top = 0;                // entries to list beside the token; -1: all
  bool as_token_ids = false;  // "token_id:123"
  bool all_entries = false;   // logprob_token_ids was given: list every entry
};

// The text of one token, or its number.
std::string TokenLabel(const Tokenizer& tokenizer, int32_t id, bool as_token_id);

// The legacy object {text_offset, token_logprobs, tokens, top_logprobs} over `ids`; an absent position (the first of a
// prompt) has nulls. `offset` counts characters and is moved past the tokens.
base::Json CompletionLogprobs(const Tokenizer& tokenizer, std::span<const int32_t> ids,
                              std::span<const std::optional<PositionLogprobs>> positions, const LogprobsStyle& style,
                              int64_t& offset);
// {"content": [{token, logprob, bytes, top_logprobs}]}
base::Json ChatLogprobs(const Tokenizer& tokenizer, std::span<const PositionLogprobs> positions,
                        const LogprobsStyle& style);
// prompt_logprobs of the response: a list of {id: {logprob, rank, decoded_token}}.
base::Json PromptLogprobs(const Tokenizer& tokenizer, std::span<const std::optional<PositionLogprobs>> positions);

}  // namespace vllm
