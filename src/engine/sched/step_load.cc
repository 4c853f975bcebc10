// How much work a step is.
#include "engine/sched/step_load.h"

#include <unordered_map>

namespace vllm {

StepLoad LoadOf(const SchedulerOutput& step) {
  std::unordered_map<RequestId, int64_t> computed;
  for (const NewRequestData& request : step.new_requests) computed[request.id] = request.num_computed_tokens;
  for (const CachedRequestData& request : step.cached_requests) computed[request.id] = request.num_computed_tokens;
  StepLoad load;
  for (const ScheduledTokens& scheduled : step.scheduled) {
    const int64_t before = computed.at(scheduled.id), tokens = scheduled.num_tokens;
    load.tokens += tokens;
    load.samples += scheduled.samples ? 1 : 0;
    load.context += before + tokens;
    load.attended += tokens * before + tokens * (tokens + 1) / 2;
  }
  return load;
}

}  // namespace vllm
