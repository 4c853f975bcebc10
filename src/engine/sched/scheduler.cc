// The scheduler's planning half: one step's batch, from running and waiting sequences.
#include "engine/sched/scheduler.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace vllm {
namespace {

int64_t Size(const auto& container) { return static_cast<int64_t>(container.size()); }

const KvCacheConfig& Checked(const SchedulerConfig& config, const KvCacheConfig& kv_config) {
  CheckSchedulerConfig(config);
  if (!kv_config.groups.empty() && kv_config.num_blocks < 2) {
    base::Throw(base::ErrorCode::kOutOfMemory, "the KV cache has ", kv_config.num_blocks,
                " blocks, one of which is reserved; at least 2 are needed: give it more memory");
  }
  return kv_config;
}

}  // namespace

int64_t Scheduler::SteadyClock() {
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Scheduler::Scheduler(const SchedulerConfig& config, const KvCacheConfig& kv_config, Clock clock)
    : config_(config),
      kv_(Checked(config, kv_config),
          {.enable_caching = config.enable_prefix_caching,
           .watermark = config.watermark,
           .limits = {.max_model_len = config.max_model_len, .max_in_flight_tokens = config.max_in_flight_tokens()}}),
      clock_(clock),
      waiting_(config.policy) {
  if (config.itl_target_us > 0) step_budget_.emplace(config.itl_target_us);
}

Scheduler::~Scheduler() = default;

base::Error Scheduler::TooLarge(base::ErrorCode code, int64_t num_tokens) const {
  return base::MakeError(code, "The sequence's ", num_tokens, " tokens need ", kv_.NumBlocksNeeded(num_tokens),
                         " KV cache blocks, but there are only ", kv_.num_usable_blocks(),
                         ". Shorten it, or give the KV cache more memory.");
}

base::Status Scheduler::CheckAdmissible(int64_t num_prompt_tokens) const {
  if (num_prompt_tokens < 1) {
    return base::MakeError(base::ErrorCode::kInvalidArgument, "The prompt has no tokens.");
  }
  if (num_prompt_tokens >= config_.max_model_len) {
    return base::MakeError(base::ErrorCode::kInvalidArgument, "The prompt (length ", num_prompt_tokens,
                           ") plus at least one output token is longer than the maximum model length of ",
                           config_.max_model_len, ".");
  }
  if (kv_.NumBlocksNeeded(num_prompt_tokens) > kv_.num_usable_blocks()) {
    return TooLarge(base::ErrorCode::kInvalidArgument, num_prompt_tokens);
  }
  return base::Ok();
}

void Scheduler::Add(CoreRequest core_request) {
  const RequestId id = core_request.id;
  CHECK(CheckAdmissible(Size(core_request.prompt_token_ids)).ok(), "request ", id, " was not checked");
  auto request = std::make_unique<Request>(std::move(core_request), config_.max_model_len);
  kv_.ExtendHashes(request->kv, request->token_ids, request->cache_salt);
  const auto [entry, inserted] = requests_.emplace(id, std::move(request));
  CHECK(inserted, "request ", id, " is here already");
  waiting_.Add(entry->second.get());
  if (entry->second->deadline_us > 0) deadlines_.emplace(entry->second->deadline_us, id);
}

bool Scheduler::Abort(RequestId id) {
  const auto found = requests_.find(id);
  if (found == requests_.end()) return false;
  RemoveFromQueues(*found->second);
  Release(*found->second);
  return true;
}

void Scheduler::RemoveFromQueues(Request& request) {
  if (request.status == RequestStatus::kRunning) {
    running_.erase(std::find(running_.begin(), running_.end(), &request));
  } else {
    CHECK(waiting_.Remove(&request), "request ", request.id, " is in no queue");
  }
}

void Scheduler::Release(Request& request) {
  kv_.Free(request.kv);
  request.status = RequestStatus::kFinished;
  if (request.known_to_runner) finished_ids_.push_back(request.id);
  if (request.deadline_us > 0) deadlines_.erase({request.deadline_us, request.id});
  const RequestId id = request.id;  // erase() must not read its key from what it destroys
  requests_.erase(id);
}

void Scheduler::EndOutsideStep(Request& request, CoreOutput output) {
  output.id = request.id;
  output.num_preemptions = request.num_preemptions;
  ended_.push_back(std::move(output));
  RemoveFromQueues(request);
  Release(request);
}

void Scheduler::EndWithError(Request& request, base::Error error) {
  EndOutsideStep(request, {.finish = FinishReason::kError, .error = std::move(error)});
}

void Scheduler::EndOverdue() {
  if (deadlines_.empty()) return;
  const int64_t now = clock_();
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    Request& request = *requests_.at(deadlines_.begin()->second);
    if (request.first_output_sent) {
      EndOutsideStep(request, {.finish = FinishReason::kAbort, .stop_reason = "timeout"});
    } else {
      EndWithError(request, base::MakeError(base::ErrorCode::kDeadlineExceeded, "The request's time limit of ",
                                            (request.deadline_us - request.arrival_us) / 1000,
                                            " ms passed before its first token."));
    }
  }
}

std::vector<CoreOutput> Scheduler::TakeEnded() { return std::exchange(ended_, {}); }

SchedulerOutput Scheduler::Schedule() {
  EndOverdue();
  Plan plan{.token_budget = config_.max_num_batched_tokens, .long_prefill_threshold = LongPrefillThreshold()};
  if (step_budget_) {
    const bool decodes = std::any_of(running_.begin(), running_.end(),
                                     [](const Request* request) { return !request->is_prefill_chunk; });
    plan.prompt_budget = step_budget_->PromptTokens(decodes);
    if (requests_.size() == 1) plan.prompt_budget = std::max(plan.prompt_budget, StepBudget::kLeastAlone);
  }
  ScheduleRunning(plan);
  // A pool that had to preempt has no room for newcomers.
  if (!plan.preempted) ScheduleWaiting(plan);
  SchedulerOutput output = MakeOutput(plan);
  AdvanceAfterSchedule(plan, output);
  return output;
}

int64_t Scheduler::LongPrefillThreshold() const {
  // The threshold keeps one long prompt from starving others of the budget; alone, it starves nobody.
  const int64_t sequences = Size(running_) + waiting_.size(), threshold = config_.long_prefill_token_threshold;
  if (sequences <= 1) return 0;
  if (threshold == 0 || !config_.long_prefill_token_threshold_adaptive) return threshold;
  return std::max(threshold, config_.max_num_batched_tokens / sequences);
}

int64_t Scheduler::WithinBudget(int64_t num_tokens, const Plan& plan) const {
  const int64_t left = std::min(num_tokens, plan.token_budget);
  if (!IsPrompt(num_tokens)) return left;
  return IsPrompt(plan.prompt_budget) ? std::min(left, plan.prompt_budget) : 0;
}

void Scheduler::Spend(int64_t num_tokens, Plan& plan) const {
  plan.token_budget -= num_tokens;
  if (IsPrompt(std::abs(num_tokens))) plan.prompt_budget -= num_tokens;
}

void Scheduler::ScheduleRunning(Plan& plan) {
  size_t index = 0;
  while (index < running_.size() && plan.token_budget > 0) {
    Request& request = *running_[index];
    const int64_t num_tokens = TokensForRunning(request, plan);
    if (num_tokens <= 0) {
      ++index;  // others behind it may still run
      continue;
    }
    std::optional<BlockIds> new_ids = AllocateOrPreempt(request, num_tokens, plan, index);
    if (!new_ids.has_value()) {
      if (config_.policy == SchedulingPolicy::kFcfs) return;
      continue;  // the request left running_: `index` is the next one
    }
    plan.prefill_scheduled |= request.is_prefill_chunk;
    Spend(num_tokens, plan);
    Scheduled scheduled{.request = &request, .num_tokens = num_tokens, .new_block_ids = *std::move(new_ids)};
    scheduled.spec_token_ids = TakeSpecTokens(request, num_tokens);
    plan.scheduled.push_back(std::move(scheduled));
    ++index;
  }
}

int64_t Scheduler::TokensForRunning(const Request& request, const Plan& plan) const {
  // The steps in flight are sure to reach max_tokens, even if all their drafts are rejected: another would be wasted.
  if (request.num_output_placeholders > 0 && request.num_computed_tokens + 2 - request.num_output_placeholders >=
                                                 request.num_prompt_tokens + request.max_tokens) {
    return 0;
  }
  int64_t num_tokens = request.num_tokens_with_spec() + request.num_output_placeholders - request.num_computed_tokens;
  if (plan.long_prefill_threshold > 0) num_tokens = std::min(num_tokens, plan.long_prefill_threshold);
  num_tokens = WithinBudget(num_tokens, plan);
  // Drafts must leave room for the token that is sampled after them.
  return std::min(num_tokens, config_.max_model_len - request.num_computed_tokens - 1);
}

std::optional<BlockIds> Scheduler::AllocateOrPreempt(Request& request, int64_t num_tokens, Plan& plan, size_t& index) {
  for (;;) {
    std::optional<BlockIds> new_ids = kv_.Allocate(request.kv, {.num_tokens = request.num_tokens(),
                                                                .num_prompt_tokens = request.num_prompt_tokens,
                                                                .num_computed_tokens = request.num_computed_tokens,
                                                                .num_in_flight_tokens = request.num_in_flight_tokens,
                                                                .num_new_tokens = num_tokens,
                                                                .num_lookahead_tokens = config_.num_lookahead_tokens});
    if (new_ids.has_value()) return new_ids;
    Request* victim = RemoveVictim(plan, index);
    const bool output_to_come = request.num_output_placeholders > 0;
    const int64_t num_slots = request.num_computed_tokens + num_tokens + config_.num_lookahead_tokens;
    Preempt(*victim);
    plan.preempted = true;
    if (victim != &request) continue;
    // With all blocks free it gave way to nobody. It may do so once for each token; again, and it would for ever.
    if (kv_.num_used_blocks() == 0 && !output_to_come &&
        std::exchange(request.num_tokens_when_alone, request.num_tokens()) == request.num_tokens()) {
      EndWithError(request, TooLarge(base::ErrorCode::kOutOfMemory, std::min(num_slots, config_.max_model_len)));
    }
    return std::nullopt;
  }
}

Request* Scheduler::RemoveVictim(Plan& plan, size_t& index) {
  if (config_.policy == SchedulingPolicy::kFcfs) {
    Request* victim = running_.back();
    running_.pop_back();
    return victim;
  }
  const auto place = std::max_element(running_.begin(), running_.end(), [](const Request* a, const Request* b) {
    return std::tie(a->priority, a->arrival_us) < std::tie(b->priority, b->arrival_us);
  });
  Request* victim = *place;
  if (static_cast<size_t>(place - running_.begin()) < index) --index;
  running_.erase(place);
  const auto planned = std::find_if(plan.scheduled.begin(), plan.scheduled.end(),
                                    [&](const Scheduled& scheduled) { return scheduled.request == victim; });
  if (planned != plan.scheduled.end()) {
    Spend(-planned->num_tokens, plan);
    plan.scheduled.erase(planned);
    // The blocks that this step would have filled have their hashes already, and will now never be written.
    kv_.FreeAndForget(victim->kv, victim->num_computed_tokens);
  }
  return victim;
}

void Scheduler::Preempt(Request& request) {
  CHECK(request.status == RequestStatus::kRunning, "request ", request.id, " is not running");
  kv_.Free(request.kv);
  request.status = RequestStatus::kPreempted;
  request.num_computed_tokens = 0;
  request.spec_token_ids.clear();
  request.num_stale_output_tokens = request.num_in_flight_tokens;
  request.num_output_placeholders = 0;
  ++request.num_preemptions;
  ++stats_.preemptions;
  preempted_ids_.push_back(request.id);
  waiting_.Prepend(&request);
}

std::vector<int32_t> Scheduler::TakeSpecTokens(Request& request, int64_t num_tokens) const {
  std::vector<int32_t> spec_token_ids = std::exchange(request.spec_token_ids, {});
  const int64_t scheduled =
      num_tokens + request.num_computed_tokens - request.num_tokens() - request.num_output_placeholders;
  if (Size(spec_token_ids) > scheduled) spec_token_ids.resize(static_cast<size_t>(std::max<int64_t>(0, scheduled)));
  return spec_token_ids;
}

void Scheduler::ScheduleWaiting(Plan& plan) {
  std::vector<Request*> skipped;
  while (plan.token_budget > 0 && !waiting_.empty() && Size(running_) < config_.max_num_seqs) {
    Request& request = *waiting_.Front();
    if (request.num_stale_output_tokens > 0) {
      // Output from before its preemption is still to come: resuming now could sample the same position twice.
      waiting_.PopFront();
      skipped.push_back(&request);
      continue;
    }
    if (TryAdmit(request, plan) == Admission::kMustWait) break;
  }
  for (auto request = skipped.rbegin(); request != skipped.rend(); ++request) waiting_.Prepend(*request);
}

Scheduler::Admission Scheduler::TryAdmit(Request& request, Plan& plan) {
  if (kv_.NumBlocksNeeded(request.num_tokens()) > kv_.num_usable_blocks()) {
    EndWithError(request, TooLarge(base::ErrorCode::kOutOfMemory, request.num_tokens()));
    return Admission::kEnded;
  }
  PrefixHit hit{.blocks = BlockIds(kv_.config().groups.size())};
  if (!request.skip_reading_prefix_cache) hit = kv_.FindPrefix(request.kv, request.num_tokens());
  request.kv.shared_prefix_boundary = hit.shared_prefix_boundary;

  Scheduled scheduled{.request = &request, .num_tokens = request.num_tokens() - hit.num_tokens};
  if (PadsWithSpecTokens(plan, hit.num_tokens, scheduled.num_tokens)) {
    if (1 + config_.num_spec_tokens > plan.token_budget) return Admission::kMustWait;
    scheduled.num_tokens = 1 + config_.num_spec_tokens;
    scheduled.spec_token_ids.assign(static_cast<size_t>(config_.num_spec_tokens), -1);
  }
  if (plan.long_prefill_threshold > 0) {
    scheduled.num_tokens = std::min(scheduled.num_tokens, plan.long_prefill_threshold);
  }
  if (!config_.enable_chunked_prefill && scheduled.num_tokens > plan.token_budget) return Admission::kMustWait;
  scheduled.num_tokens = WithinBudget(scheduled.num_tokens, plan);
  if (scheduled.num_tokens <= 0) return Admission::kMustWait;

  const std::optional<BlockIds> new_ids =
      kv_.Allocate(request.kv, {.num_tokens = request.num_tokens(),
                                .num_prompt_tokens = request.num_prompt_tokens,
                                .num_new_tokens = scheduled.num_tokens,
                                .num_lookahead_tokens = config_.num_lookahead_tokens,
                                .hit = &hit,
                                .whole_sequence_must_fit = config_.reserve_full_prompt,
                                .apply_watermark = !running_.empty()});
  if (!new_ids.has_value()) {
    if (kv_.num_used_blocks() > 0) return Admission::kMustWait;
    // All blocks are free and still too few: waiting would block the queue for ever.
    const int64_t num_slots = std::max(request.num_tokens(), scheduled.num_tokens + config_.num_lookahead_tokens);
    EndWithError(request, TooLarge(base::ErrorCode::kOutOfMemory, std::min(num_slots, config_.max_model_len)));
    return Admission::kEnded;
  }
  Admit(request, plan, hit, std::move(scheduled));
  return Admission::kAdmitted;
}

// A sequence with one token to compute joins a batch of decodes padded to their width, so that the batch stays uniform.
bool Scheduler::PadsWithSpecTokens(const Plan& plan, int64_t num_computed_tokens, int64_t num_new_tokens) const {
  const bool decodes_scheduled =
      std::any_of(plan.scheduled.begin(), plan.scheduled.end(),
                  [](const Scheduled& scheduled) { return scheduled.origin == Origin::kRunning; });
  // A threshold that would cut the padding rules it out.
  const bool fits = plan.long_prefill_threshold == 0 || plan.long_prefill_threshold > config_.num_spec_tokens;
  return config_.num_spec_tokens > 0 && num_new_tokens == 1 && fits && !plan.prefill_scheduled &&
         (decodes_scheduled || num_computed_tokens > 0) &&
         num_computed_tokens + 1 + config_.num_spec_tokens + 1 <= config_.max_model_len;
}

void Scheduler::Admit(Request& request, Plan& plan, const PrefixHit& hit, Scheduled scheduled) {
  waiting_.PopFront();
  running_.push_back(&request);
  if (kv_.caching() && !request.skip_reading_prefix_cache) {
    kv_.RecordPrefixStats(request.num_tokens(), hit.num_tokens, request.num_preemptions > 0);
  }
  if (request.num_preemptions == 0) {
    request.cached_tokens = hit.num_tokens;
    request.scheduled_us = clock_();
    stats_.last_queue_us = std::max<int64_t>(0, request.scheduled_us - request.arrival_us);
  }
  scheduled.origin = request.status == RequestStatus::kPreempted ? Origin::kResumed : Origin::kNew;
  request.status = RequestStatus::kRunning;
  request.num_computed_tokens = hit.num_tokens;
  request.known_to_runner = true;
  Spend(scheduled.num_tokens, plan);
  plan.scheduled.push_back(std::move(scheduled));
}

SchedulerOutput Scheduler::MakeOutput(Plan& plan) {
  SchedulerOutput output{
      .step = ++step_, .finished = std::exchange(finished_ids_, {}), .preempted = std::exchange(preempted_ids_, {})};
  std::vector<NewRequestData> resumed;
  for (Scheduled& scheduled : plan.scheduled) {
    const Request& request = *scheduled.request;
    output.total_tokens += scheduled.num_tokens;
    output.scheduled.push_back({.id = request.id,
                                .num_tokens = static_cast<int32_t>(scheduled.num_tokens),
                                .spec_token_ids = std::move(scheduled.spec_token_ids)});
    if (scheduled.origin == Origin::kRunning) {
      output.cached_requests.push_back({.id = request.id,
                                        .num_computed_tokens = request.num_computed_tokens,
                                        .new_block_ids = std::move(scheduled.new_block_ids),
                                        .num_null_blocks = kv_.NumNullBlocks(request.kv)});
      continue;
    }
    const bool is_resumed = scheduled.origin == Origin::kResumed;
    (is_resumed ? resumed : output.new_requests)
        .push_back({.id = request.id,
                    .params = request.params,
                    .seed = request.seed,
                    .token_ids = request.token_ids,
                    .num_prompt_tokens = request.num_prompt_tokens,
                    .num_computed_tokens = request.num_computed_tokens,
                    .block_ids = kv_.Table(request.kv),
                    .resumed = is_resumed});
  }
  std::move(resumed.begin(), resumed.end(), std::back_inserter(output.new_requests));
  return output;
}

// Computed tokens advance before the step has run, so that the next one can be planned meanwhile; rejected drafts are
// taken back when the output arrives.
void Scheduler::AdvanceAfterSchedule(const Plan& plan, SchedulerOutput& output) {
  for (size_t i = 0; i < plan.scheduled.size(); ++i) {
    Request& request = *plan.scheduled[i].request;
    ScheduledTokens& scheduled = output.scheduled[i];
    request.num_computed_tokens += scheduled.num_tokens;
    request.num_in_flight_tokens += scheduled.num_tokens;
    request.is_prefill_chunk = request.num_computed_tokens < request.num_tokens() + request.num_output_placeholders;
    scheduled.samples = !request.is_prefill_chunk;
    if (request.is_prefill_chunk) {
      ++stats_.chunked_prefills;
    } else if (config_.async_scheduling) {
      request.num_output_placeholders += 1 + Size(scheduled.spec_token_ids);
      request.spec_token_ids.assign(static_cast<size_t>(config_.num_spec_tokens), -1);
    }
  }
  if (output.total_tokens > 0) ++stats_.steps;
}

EngineStats Scheduler::stats() const {
  EngineStats stats = stats_;
  stats.num_running = Size(running_);
  stats.num_waiting = waiting_.size();
  stats.kv_cache_usage = kv_.usage();
  stats.kv_blocks_used = kv_.num_used_blocks();
  stats.prefix_cache_queries = kv_.prefix_stats().queries;
  stats.prefix_cache_hits = kv_.prefix_stats().hits;
  return stats;
}

void Scheduler::CheckIntegrity() const {
  CHECK(Size(running_) <= config_.max_num_seqs, running_.size(), " running");
  CHECK(Size(running_) + waiting_.size() == Size(requests_), running_.size(), " + ", waiting_.size(), " of ",
        requests_.size());
  std::vector<const KvSequence*> sequences;
  for (const auto& [id, request] : requests_) {
    sequences.push_back(&request->kv);
    const bool running = request->status == RequestStatus::kRunning;
    CHECK(running == (std::find(running_.begin(), running_.end(), request.get()) != running_.end()), "request ", id);
    CHECK(running || (request->kv.groups.empty() && request->num_computed_tokens == 0), "request ", id,
          " waits and holds blocks");
    CHECK(request->num_in_flight_tokens >= 0 && request->num_output_placeholders >= 0 &&
              request->num_stale_output_tokens >= 0,
          "request ", id);
    CHECK(request->num_computed_tokens <=
              request->num_tokens() + request->num_output_placeholders + request->num_in_flight_tokens,
          "request ", id, " has computed ", request->num_computed_tokens, " of ", request->num_tokens());
  }
  kv_.CheckIntegrity(sequences);
}

}  // namespace vllm
