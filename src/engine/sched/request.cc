// One sequence as the scheduler sees it.
#include "engine/sched/request.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace vllm {
namespace {

std::vector<int32_t> Sorted(std::vector<int32_t> ids) {
  std::sort(ids.begin(), ids.end());
  return ids;
}

const SamplingParams& Checked(const CoreRequest& request) {
  CHECK(request.params != nullptr, "request ", request.id, " has no sampling parameters");
  return *request.params;
}

}  // namespace

Request::Request(CoreRequest request, int64_t max_model_len)
    : id(request.id),
      params(request.params),
      seed(request.seed),
      cache_salt(std::move(request.cache_salt)),
      priority(request.priority),
      arrival_us(request.arrival_us),
      deadline_us(request.deadline_us),
      num_prompt_tokens(static_cast<int64_t>(request.prompt_token_ids.size())),
      max_tokens(std::clamp<int64_t>(Checked(request).max_tokens.value_or(max_model_len), 1, max_model_len)),
      skip_reading_prefix_cache(params->skip_reading_prefix_cache.value_or(params->prompt_logprobs.has_value())),
      token_ids(std::move(request.prompt_token_ids)),
      stop_token_ids_(Sorted(params->stop_token_ids)) {}

std::optional<Request::Stop> Request::CheckStop(int64_t max_model_len) const {
  const int32_t last = token_ids.back();
  if (params->eos_token_id == last) return Stop{};
  if (std::binary_search(stop_token_ids_.begin(), stop_token_ids_.end(), last)) return Stop{.detail = last};
  if (num_tokens() >= max_model_len || num_output_tokens() >= max_tokens) return Stop{.reason = FinishReason::kLength};
  return std::nullopt;
}

}  // namespace vllm
