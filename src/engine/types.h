// The plain values that requests, the engine and its callers exchange. No behaviour, no locks.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"

namespace vllm {

// Core-internal number of one sequence (a request with n > 1 has n of them). Never reused.
using RequestId = uint64_t;

// vLLM's SamplingParams (vllm/sampling_params.py), validated by ValidateSamplingParams before it reaches the engine.
struct SamplingParams {
  int n = 1;
  double presence_penalty = 0, frequency_penalty = 0, repetition_penalty = 1;
  double temperature = 1, top_p = 1, min_p = 0;
  int top_k = 0;  // 0: all
  std::optional<int64_t> seed = {};
  std::vector<std::string> stop = {};
  std::vector<int32_t> stop_token_ids = {};
  bool ignore_eos = false;
  std::optional<int64_t> max_tokens = 16;  // absent: up to the model's length
  int64_t min_tokens = 0;
  std::optional<int> logprobs = {};  // -1: the whole vocabulary
  std::optional<int> prompt_logprobs = {};
  std::vector<int32_t> logprob_token_ids = {};
  bool detokenize = true, skip_special_tokens = true, spaces_between_special_tokens = true;
  bool include_stop_str_in_output = false;
  std::vector<std::pair<int32_t, float>> logit_bias = {};
  std::optional<std::vector<int32_t>> allowed_token_ids = {};
  std::vector<std::string> bad_words = {};
  std::optional<bool> skip_reading_prefix_cache = {};

  // Filled by the engine's front end, not by callers:
  std::optional<int32_t> eos_token_id = {};      // absent when ignore_eos
  std::vector<int32_t> all_stop_token_ids = {};  // masked until min_tokens
  std::vector<std::vector<int32_t>> bad_words_ids = {};
  bool greedy() const { return temperature == 0; }
};

enum class FinishReason : int8_t { kStop = 0, kLength = 1, kAbort = 2, kError = 3 };
std::string_view FinishReasonName(FinishReason reason);  // "stop", "length", "abort", "error"

// Absent, a stop token's id, or the stop string.
using StopReason = std::variant<std::monostate, int32_t, std::string>;

struct Logprob {
  int32_t token_id = 0;
  float logprob = 0;  // never -inf when it leaves the server: the JSON edge writes -9999
  int rank = 0;       // 1-based among the vocabulary
};

// One position: entry 0 is the sampled (or prompt) token, then the top k by rank.
using PositionLogprobs = std::vector<Logprob>;

// What the engine core reports of one sequence after one step.
struct CoreOutput {
  RequestId id = 0;
  std::vector<int32_t> new_token_ids = {};
  std::vector<PositionLogprobs> logprobs = {};  // one a new token, if asked for
  std::vector<std::optional<PositionLogprobs>> prompt_logprobs =
      {};  // whole prompt, with the first output; [0] is absent
  std::optional<FinishReason> finish = {};
  StopReason stop_reason = {};
  std::optional<base::Error> error = {};  // with finish == kError
  int64_t cached_tokens = -1;             // prefix-cache hit; with the first output
  int64_t scheduled_us = 0;               // steady clock: first admitted; with the first output
  int32_t num_preemptions = 0;            // so far; with the finish
};

// A sequence handed to the core.
struct CoreRequest {
  RequestId id = 0;
  std::vector<int32_t> prompt_token_ids = {};
  std::shared_ptr<const SamplingParams> params = {};
  uint64_t seed = 0;  // of this sequence; given, or fresh
  std::string cache_salt = {};
  int priority = 0;         // lower runs earlier (priority policy only)
  int64_t arrival_us = 0;   // steady clock
  int64_t deadline_us = 0;  // steady clock; the sequence ends when a step begins later. 0: none
};

// What a caller of LlmEngine sees of one choice, in text. With delta delivery each field holds only what is new.
struct ChoiceOutput {
  int index = 0;  // of the choice, 0 .. n-1
  std::string text = {};
  std::vector<int32_t> token_ids = {};
  std::vector<PositionLogprobs> logprobs = {};
  std::optional<FinishReason> finish = {};
  StopReason stop_reason = {};
};

// Appends what is new of a choice to what is known of it.
void MergeChoice(ChoiceOutput& choice, ChoiceOutput&& news);

struct RequestOutput {
  std::vector<ChoiceOutput> choices = {};  // only those with news
  // Once, with the first output:
  bool first = false;
  int64_t cached_tokens = 0;
  std::vector<std::optional<PositionLogprobs>> prompt_logprobs = {};
  std::optional<base::Error> error = {};  // the request has ended with it
  bool finished = false;                  // every choice has ended
};

// Called on the engine's output thread, in order; must not block. Never called again once Abort has returned.
using OutputCallback = std::function<void(RequestOutput)>;

struct GenerateRequest {
  std::string request_id = {};  // for logs; need not be unique
  std::vector<int32_t> prompt_token_ids = {};
  SamplingParams params = {};
  std::string cache_salt = {};
  int priority = 0;
  // Seconds from Submit after which the request ends: with kDeadlineExceeded before its first output, with
  // FinishReason::kAbort and the stop reason "timeout" after it. Absent: EngineConfig::request_timeout_s; 0: no limit.
  std::optional<double> timeout_s = {};
  OutputCallback on_output = {};
};

}  // namespace vllm
