// EngineCore: the engine thread. Takes requests from one bounded queue, steps the scheduler and the runner, and hands
// each step's outputs to one callback.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/trace.h"
#include "engine/llm_engine.h"
#include "engine/run/model_runner.h"
#include "engine/sched/scheduler.h"
#include "engine/sched/step_load.h"
#include "engine/types.h"

namespace vllm {

// All public functions are thread-safe. With asynchronous scheduling step N + 1 is planned while step N runs.
class EngineCore {
 public:
  // One batch a step, on the engine thread, in order; must not block and must not throw. Each sequence that Add
  // accepted gets exactly one output with `finish`, unless it is aborted.
  using OutputSink = std::function<void(std::vector<CoreOutput>)>;

  struct Options {
    SchedulerConfig scheduler = {};
    KvCacheConfig kv_cache = {};
    // vLLM's limits (async_llm.py: check_admission): sequences that wait or run, and prompt tokens of those that have
    // no output yet. Absent: max_num_seqs + base::kMaxQueuedRequests, and no limit.
    std::optional<int64_t> max_num_queued_reqs = {}, max_num_queued_tokens = {};
    base::TraceSink* trace = nullptr;  // optional; outlives the core
  };

  // Starts the thread. `runner` outlives the core. Throws base::Exception as Scheduler's constructor does.
  EngineCore(Options options, ModelRunner* runner, OutputSink sink);
  // Waits for steps in flight; sequences that have not ended get no further output.
  ~EngineCore();
  EngineCore(const EngineCore&) = delete;
  EngineCore& operator=(const EngineCore&) = delete;

  // Errors: kInvalidArgument for a prompt that can never run, kOverloaded when the queue is full or the core drains,
  // kInternal once the engine is dead. Ids must be new.
  base::Status Add(CoreRequest request);
  // All of them or none: the sequences of one request. Errors as Add.
  base::Status Add(std::vector<CoreRequest> requests);
  // Ends a sequence. It gets no further output, except one of a step whose outputs are being delivered just now.
  // Harmless for one that has ended.
  void Abort(RequestId id);

  // Waits for the engine thread to get to it; false while any block is in use, or once the engine is dead.
  bool ResetPrefixCache();
  // Refuses new sequences, waits until all have ended or the time is over, then aborts the rest: those get an output
  // with FinishReason::kAbort. True if none had to be aborted. Not from the sink.
  bool Drain(int64_t timeout_ms);

  EngineStats stats() const;  // of the last step
  bool healthy() const { return !dead_.load(std::memory_order_acquire); }
  // Waiting, running or queued.
  int64_t num_sequences() const;
  const SchedulerConfig& scheduler_config() const { return scheduler_.config(); }

 private:
  struct AbortAll {};  // with outputs
  struct Reset {
    std::promise<bool> done;
  };
  using Input = std::variant<CoreRequest, RequestId, AbortAll, Reset>;
  struct Flight {
    SchedulerOutput step = {};
    std::future<ModelRunnerOutput> output = {};
    StepLoad load = {};  // for the trace
  };

  void Run();
  void Loop();
  // Applies what has been queued; with `wait`, blocks until there is something or the core stops. False: stop.
  bool TakeInputs(bool wait);
  void Apply(Input input);
  // Plans and starts a step. False if there was nothing to run.
  bool StartStep();
  void FinishOldestStep();
  void Deliver(std::vector<CoreOutput> outputs);
  void PublishStats();
  void Die(const std::string& reason);
  void RefuseInputs();                      // the dead engine's loop
  base::Status CheckDoor(size_t count);     // with mutex_
  void EndPrefill(int64_t& prompt_tokens);  // with mutex_

  const Options options_;
  const int64_t max_sequences_;
  ModelRunner* const runner_;
  const OutputSink sink_;

  // Engine thread only.
  Scheduler scheduler_;
  std::deque<Flight> flights_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;     // inputs_ or stop_
  std::condition_variable drained_;  // live_ is empty, or the engine is dead
  std::deque<Input> inputs_;         // guarded
  size_t num_queued_resets_ = 0;     // guarded
  // Guarded; accepted and neither ended nor aborted, with the prompt's tokens until the first output.
  std::unordered_map<RequestId, int64_t> live_;
  int64_t prefill_tokens_ = 0;                        // guarded; their sum
  EngineStats stats_;                                 // guarded; of the scheduler
  uint64_t rejected_reqs_ = 0, rejected_tokens_ = 0;  // guarded
  bool stop_ = false;                                 // guarded
  bool draining_ = false;                             // guarded
  std::string death_;                                 // guarded
  std::atomic<bool> dead_{false};

  std::thread thread_;  // last: starts when everything else is there
};

}  // namespace vllm
