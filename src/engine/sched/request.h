// One sequence as the scheduler sees it: its tokens, how far they are computed, and what it holds.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/kv/kv_cache_manager.h"
#include "engine/types.h"

namespace vllm {

enum class RequestStatus : int8_t { kWaiting, kRunning, kPreempted, kFinished };

// Engine thread only.
class Request {
 public:
  // `max_model_len` bounds max_tokens, so that sums with it cannot overflow.
  Request(CoreRequest request, int64_t max_model_len);
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  // Identity, fixed.
  const RequestId id;
  const std::shared_ptr<const SamplingParams> params;
  const uint64_t seed;
  const std::string cache_salt;
  const int priority;
  const int64_t arrival_us, deadline_us;
  const int64_t num_prompt_tokens;
  const int64_t max_tokens;              // 1 .. max_model_len
  const bool skip_reading_prefix_cache;  // prompt logprobs need every position computed

  std::vector<int32_t> token_ids;  // prompt, then outputs
  RequestStatus status = RequestStatus::kWaiting;

  // Computed, or scheduled to be: advanced when a step is scheduled, taken back for rejected drafts.
  int64_t num_computed_tokens = 0;
  int64_t num_in_flight_tokens = 0;  // of steps whose output has not come back
  // Asynchronous scheduling: tokens that steps in flight will produce.
  int64_t num_output_placeholders = 0;
  // In-flight tokens from before a preemption: their output is delivered, but changes no counter any more.
  int64_t num_stale_output_tokens = 0;
  std::vector<int32_t> spec_token_ids = {};  // drafts to verify next; -1: filled in by the runner
  bool is_prefill_chunk = false;             // the last scheduled chunk stops short of the last known token
  int num_preemptions = 0;
  int64_t num_tokens_when_alone = 0;  // when it last was preempted although it had the whole pool
  bool known_to_runner = false;  // has been scheduled once
  KvSequence kv = {};

  // For the first output.
  int64_t cached_tokens = 0;  // prefix hit of the first admission
  int64_t scheduled_us = 0;   // steady clock, of the first admission
  bool first_output_sent = false;
  std::vector<std::optional<PositionLogprobs>> prompt_logprobs = {};

  int64_t num_tokens() const { return static_cast<int64_t>(token_ids.size()); }
  int64_t num_output_tokens() const { return num_tokens() - num_prompt_tokens; }
  int64_t num_tokens_with_spec() const { return num_tokens() + static_cast<int64_t>(spec_token_ids.size()); }
  bool finished() const { return status == RequestStatus::kFinished; }

  struct Stop {
    FinishReason reason = FinishReason::kStop;
    StopReason detail = {};
  };
  // Whether the last token ends the sequence. Order: EOS, stop tokens, length. (Stop strings are the output side's.)
  std::optional<Stop> CheckStop(int64_t max_model_len) const;

 private:
  const std::vector<int32_t> stop_token_ids_;  // sorted
};

}  // namespace vllm
