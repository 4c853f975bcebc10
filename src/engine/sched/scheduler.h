// The scheduler: which tokens of which sequences the next step computes, and what its output means for them.
//
// vLLM's V1 rules (vllm/v1/core/sched/scheduler.py, async_scheduler.py): there is no prefill or decode phase, only
// sequences whose computed tokens catch up with their known ones under one token budget; running sequences first, then
// waiting ones in strict order; when blocks run out the last (or least important) running sequence is preempted and
// later recomputed.
#pragma once
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/kv/kv_cache_manager.h"
#include "engine/llm_engine.h"
#include "engine/run/model_runner.h"
#include "engine/sched/request.h"
#include "engine/sched/request_queue.h"
#include "engine/sched/scheduler_config.h"
#include "engine/sched/scheduler_output.h"
#include "engine/sched/step_budget.h"

namespace vllm {

// Engine thread only, but for CheckAdmissible.
class Scheduler {
 public:
  using Clock = int64_t (*)();  // microseconds of the steady clock
  static int64_t SteadyClock();
  // Throws base::Exception (kInvalidArgument) for a contradictory config, (kOutOfMemory) for a pool without usable
  // blocks.
  Scheduler(const SchedulerConfig& config, const KvCacheConfig& kv_config, Clock clock = SteadyClock);
  ~Scheduler();

  // Whether a prompt of that length can ever run; an error says by how much it cannot. Thread-safe.
  base::Status CheckAdmissible(int64_t num_prompt_tokens) const;

  // Queues a sequence. CHECKs that its id is new and that it is admissible.
  void Add(CoreRequest request);
  // Ends a sequence at once and without an output; false if it is not here. Blocks return to the pool at once: steps
  // run in order, so a step in flight is done with them before a later one can write them.
  bool Abort(RequestId id);

  // Plans the next step. total_tokens may be 0; `finished` may be filled all the same, for the runner to drop its
  // state.
  SchedulerOutput Schedule();
  // Takes in the output of a step, oldest first, and returns what its sequences' owners should know.
  std::vector<CoreOutput> UpdateFromOutput(const SchedulerOutput& step, ModelRunnerOutput output);
  // Outputs of sequences that ended outside any step: those that turned out too large for the pool, and those whose
  // deadline has passed.
  std::vector<CoreOutput> TakeEnded();

  // False while any block is in use.
  bool ResetPrefixCache() { return kv_.ResetPrefixCache(); }

  bool has_requests() const { return !requests_.empty(); }
  bool has_finished() const { return !finished_ids_.empty(); }  // the runner has not been told yet
  EngineStats stats() const;
  const SchedulerConfig& config() const { return config_; }
  const KvCacheManager& kv() const { return kv_; }

  // CHECKs every invariant of the queues and the KV cache. Walks everything.
  void CheckIntegrity() const;

 private:
  friend class SchedulerPeer;  // of tests: plants faults

  enum class Origin : int8_t { kRunning, kNew, kResumed };
  struct Scheduled {
    Request* request = nullptr;
    Origin origin = Origin::kRunning;
    int64_t num_tokens = 0;
    BlockIds new_block_ids = {};
    std::vector<int32_t> spec_token_ids = {};
  };
  struct Plan {
    int64_t token_budget = 0;
    int64_t prompt_budget = std::numeric_limits<int64_t>::max();  // of it, for prompts
    int64_t long_prefill_threshold = 0;                           // 0: off
    bool preempted = false;
    bool prefill_scheduled = false;
    std::vector<Scheduled> scheduled = {};
  };

  void ScheduleRunning(Plan& plan);
  int64_t TokensForRunning(const Request& request, const Plan& plan) const;
  // Decoding sequences take no more than one token and its drafts.
  bool IsPrompt(int64_t num_tokens) const { return num_tokens > 1 + config_.num_spec_tokens; }
  // How many of a sequence's `num_tokens` the step can take.
  int64_t WithinBudget(int64_t num_tokens, const Plan& plan) const;
  void Spend(int64_t num_tokens, Plan& plan) const;  // negative: takes it back
  int64_t LongPrefillThreshold() const;
  void EndOverdue();
  // Preempts others, then the request itself, until it fits. `index` is the request's place in running_ and follows it.
  std::optional<BlockIds> AllocateOrPreempt(Request& request, int64_t num_tokens, Plan& plan, size_t& index);
  Request* RemoveVictim(Plan& plan, size_t& index);
  void Preempt(Request& request);
  std::vector<int32_t> TakeSpecTokens(Request& request, int64_t num_tokens) const;

  void ScheduleWaiting(Plan& plan);
  enum class Admission : int8_t { kAdmitted, kEnded, kMustWait };
  Admission TryAdmit(Request& request, Plan& plan);
  bool PadsWithSpecTokens(const Plan& plan, int64_t num_computed_tokens, int64_t num_new_tokens) const;
  void Admit(Request& request, Plan& plan, const PrefixHit& hit, Scheduled scheduled);

  SchedulerOutput MakeOutput(Plan& plan);
  void AdvanceAfterSchedule(const Plan& plan, SchedulerOutput& output);

  void ObserveTime(const SchedulerOutput& step, int64_t elapsed_us);
  std::optional<CoreOutput> UpdateRequest(Request& request, const ScheduledTokens& scheduled, SequenceOutput& sequence);
  void ApplyRejections(Request& request, const ScheduledTokens& scheduled, const SequenceOutput& sequence);
  std::optional<Request::Stop> AppendTokens(Request& request, std::vector<int32_t>& token_ids, bool stale);
  void UpdateDraftTokens(const SchedulerOutput& step, std::vector<std::vector<int32_t>>& drafts);

  void RemoveFromQueues(Request& request);
  void Release(Request& request);  // frees blocks, notes the end for the runner, destroys the request
  void EndOutsideStep(Request& request, CoreOutput output);
  void EndWithError(Request& request, base::Error error);
  base::Error TooLarge(base::ErrorCode code, int64_t num_tokens) const;

  SchedulerConfig config_;
  KvCacheManager kv_;
  const Clock clock_;
  std::optional<StepBudget> step_budget_;
  std::unordered_map<RequestId, std::unique_ptr<Request>> requests_;
  std::vector<Request*> running_;  // in order of admission
  RequestQueue waiting_;
  std::set<std::pair<int64_t, RequestId>> deadlines_;  // of sequences that have one
  std::vector<RequestId> finished_ids_;                // since the last step
  std::vector<RequestId> preempted_ids_;               // since the last step
  std::vector<CoreOutput> ended_;
  uint64_t step_ = 0;
  EngineStats stats_;  // the counters only
};

}  // namespace vllm
