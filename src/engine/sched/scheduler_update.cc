// The scheduler's other half: what the output of a step means for its sequences.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "engine/sched/scheduler.h"

namespace vllm {
namespace {

int64_t Size(const auto& container) { return static_cast<int64_t>(container.size()); }

}  // namespace

std::vector<CoreOutput> Scheduler::UpdateFromOutput(const SchedulerOutput& step, ModelRunnerOutput output) {
  CHECK(output.sequences.size() == step.scheduled.size(), output.sequences.size(), " outputs for ",
        step.scheduled.size(), " sequences");
  ObserveTime(step, output.elapsed_us);
  std::vector<CoreOutput> outputs;
  std::vector<Request*> ended;
  for (size_t i = 0; i < step.scheduled.size(); ++i) {
    CHECK(output.sequences[i].id == step.scheduled[i].id, "output ", i, " is of request ", output.sequences[i].id);
    const auto found = requests_.find(step.scheduled[i].id);
    if (found == requests_.end()) continue;  // aborted while the step ran
    Request& request = *found->second;
    std::optional<CoreOutput> news = UpdateRequest(request, step.scheduled[i], output.sequences[i]);
    if (!news.has_value()) continue;
    if (news->finish.has_value()) ended.push_back(&request);
    outputs.push_back(*std::move(news));
  }
  if (!config_.async_scheduling) UpdateDraftTokens(step, output.draft_token_ids);
  for (Request* request : ended) {
    RemoveFromQueues(*request);
    Release(*request);
  }
  return outputs;
}

void Scheduler::ObserveTime(const SchedulerOutput& step, int64_t elapsed_us) {
  if (!step_budget_) return;
  int64_t prompt_tokens = 0;
  bool decodes = false;
  for (const ScheduledTokens& scheduled : step.scheduled) {
    if (IsPrompt(scheduled.num_tokens)) {
      prompt_tokens += scheduled.num_tokens;
    } else {
      decodes = true;
    }
  }
  step_budget_->Observe(decodes, prompt_tokens, elapsed_us);
}

std::optional<CoreOutput> Scheduler::UpdateRequest(Request& request, const ScheduledTokens& scheduled,
                                                   SequenceOutput& sequence) {
  request.num_in_flight_tokens -= scheduled.num_tokens;
  const bool stale = request.num_stale_output_tokens > 0;
  if (stale) request.num_stale_output_tokens -= scheduled.num_tokens;
  CHECK(request.num_in_flight_tokens >= 0 && request.num_stale_output_tokens >= 0, "request ", request.id);

  CoreOutput news{.id = request.id};
  if (!sequence.prompt_logprobs.empty()) request.prompt_logprobs = std::move(sequence.prompt_logprobs);
  if (sequence.error.has_value()) {
    kv_.FreeAndForget(request.kv, 0);
    news.finish = FinishReason::kError;
    news.error = std::move(sequence.error);
    news.num_preemptions = request.num_preemptions;
    return news;
  }
  CHECK(sequence.token_ids.empty() || scheduled.samples, "a token for a partial prompt of request ", request.id);
  CHECK(Size(sequence.token_ids) <= 1 + Size(scheduled.spec_token_ids), sequence.token_ids.size(),
        " tokens for request ", request.id);
  if (sequence.token_ids.empty()) return std::nullopt;

  if (!stale) ApplyRejections(request, scheduled, sequence);
  const std::optional<Request::Stop> stop = AppendTokens(request, sequence.token_ids, stale);
  if (stop.has_value()) {
    news.finish = stop->reason;
    news.stop_reason = stop->detail;
    news.num_preemptions = request.num_preemptions;
  }
  if (sequence.logprobs.size() > sequence.token_ids.size()) sequence.logprobs.resize(sequence.token_ids.size());
  news.new_token_ids = std::move(sequence.token_ids);
  news.logprobs = std::move(sequence.logprobs);
  if (!std::exchange(request.first_output_sent, true)) {
    news.cached_tokens = request.cached_tokens;
    news.scheduled_us = request.scheduled_us;
    news.prompt_logprobs = std::move(request.prompt_logprobs);
  }
  request.prompt_logprobs.clear();  // a resumed sequence computes them again; they have been sent
  return news;
}

void Scheduler::ApplyRejections(Request& request, const ScheduledTokens& scheduled, const SequenceOutput& sequence) {
  const int64_t drafts = Size(scheduled.spec_token_ids);
  if (drafts == 0) return;
  const int64_t rejected = drafts - (Size(sequence.token_ids) - 1);
  if (request.num_computed_tokens > 0) request.num_computed_tokens -= rejected;
  if (request.num_output_placeholders > 0) request.num_output_placeholders -= rejected;
}

std::optional<Request::Stop> Scheduler::AppendTokens(Request& request, std::vector<int32_t>& token_ids, bool stale) {
  std::optional<Request::Stop> stop;
  size_t kept = 0;
  while (kept < token_ids.size() && !stop.has_value()) {
    request.token_ids.push_back(token_ids[kept++]);
    stop = request.CheckStop(config_.max_model_len);
  }
  const int64_t trimmed = Size(token_ids) - static_cast<int64_t>(kept);
  token_ids.resize(kept);
  kv_.ExtendHashes(request.kv, request.token_ids, request.cache_salt);
  if (!stale) {
    request.num_computed_tokens -= trimmed;
    if (config_.async_scheduling) {
      request.num_output_placeholders -= static_cast<int64_t>(kept) + trimmed;
      CHECK(request.num_output_placeholders >= 0, "request ", request.id);
    }
  }
  // When the step was scheduled its tokens were not known yet, so blocks that they fill could not be hashed.
  if (config_.async_scheduling && request.status == RequestStatus::kRunning) {
    kv_.CacheBlocks(request.kv, request.num_prompt_tokens,
                    request.num_computed_tokens - request.num_output_placeholders);
  }
  return stop;
}

void Scheduler::UpdateDraftTokens(const SchedulerOutput& step, std::vector<std::vector<int32_t>>& drafts) {
  if (drafts.empty()) return;
  CHECK(drafts.size() == step.scheduled.size(), drafts.size(), " drafts for ", step.scheduled.size(), " sequences");
  for (size_t i = 0; i < drafts.size(); ++i) {
    const auto found = requests_.find(step.scheduled[i].id);
    if (found == requests_.end()) continue;
    Request& request = *found->second;
    request.spec_token_ids.clear();  // a partial prompt is not drafted from
    if (!request.is_prefill_chunk) request.spec_token_ids = std::move(drafts[i]);
  }
}

}  // namespace vllm
