// OutputProcessor: the output thread. Turns what the core reports of sequences into text, and calls the requests back.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "engine/out/engine_metrics.h"
#include "engine/out/sequence_text.h"
#include "engine/types.h"
#include "text/tokenizer/tokenizer.h"

namespace vllm {

// Public functions are thread-safe. Push never waits for a callback: while callbacks are slow, the reports of a
// sequence merge into one, so that what waits is bounded by the live sequences and their tokens.
class OutputProcessor {
 public:
  struct Options {
    const Tokenizer* tokenizer = nullptr;                // outlives the processor
    EngineMetrics* metrics = nullptr;                    // outlives the processor
    std::function<void(RequestId)> abort_sequence = {};  // ends a sequence in the core; must not call the processor
  };
  struct NewRequest {
    uint64_t handle = 0;
    std::vector<RequestId> sequences = {};  // choice i is sequence i
    std::shared_ptr<const SamplingParams> params = {};
    std::vector<int32_t> prompt_token_ids = {};
    int64_t arrival_us = 0;
    OutputCallback on_output = {};
  };

  explicit OutputProcessor(Options options);
  ~OutputProcessor();  // stops
  OutputProcessor(const OutputProcessor&) = delete;
  OutputProcessor& operator=(const OutputProcessor&) = delete;

  // Before the core may report of it.
  void Add(NewRequest request);
  // Takes back a request that the core refused; it is not counted as one.
  void Remove(uint64_t handle);
  // Ends a request without callbacks, in the core too. When it returns, the callback is not running and never will,
  // unless called from within that callback. Harmless for one that has ended.
  void Abort(uint64_t handle);

  // Ends the output thread: no callback runs once it returns, and what is pushed later is dropped. Not from a callback.
  void Stop();

  // One step's reports; the core's sink. Reports of unknown sequences are dropped.
  void Push(std::vector<CoreOutput> outputs);

  // Waits until no request is left, or the time is over (false). Not from a callback.
  bool WaitUntilEmpty(int64_t timeout_ms);
  size_t num_requests() const;

 private:
  struct Sequence;
  struct Request;
  // When a step reported, and how many tokens.
  struct Report {
    uint64_t step = 0;
    int64_t time_us = 0;
    int64_t num_tokens = 0;
  };
  struct Pending {
    CoreOutput output = {};
    Report report = {};
    std::vector<Report> later = {};  // merged into it while the thread was behind
  };
  // A sequence that has not ended, and its request.
  struct Live {
    std::shared_ptr<Request> request = {};
    int index = 0;  // of the choice
  };
  struct StepTokens {
    int64_t computed_prompt = 0, generated = 0;
  };
  using Steps = std::vector<std::pair<uint64_t, StepTokens>>;

  void Run();
  void Process(std::vector<Pending>& batch);
  void ApplyReport(Request& request, Sequence& sequence, Pending& pending, RequestOutput& out);
  // Returns the tokens that were generated.
  int64_t Measure(Request& request, Sequence& sequence, const Pending& pending, Steps& steps);
  void EndSequence(Request& request, Sequence& sequence, FinishReason reason);
  void EndRequest(Request& request);
  void Deliver(const std::shared_ptr<Request>& request, RequestOutput out);
  // Drops a request from the tables; its live sequences.
  std::shared_ptr<Request> Unlink(uint64_t handle, std::vector<RequestId>& live);

  const Options options_;

  std::mutex queue_mutex_;
  std::condition_variable queue_wake_;
  std::vector<Pending> queue_;                         // guarded by queue_mutex_
  std::unordered_map<RequestId, size_t> queue_index_;  // guarded; place in queue_, made once a second step is queued
  uint64_t step_ = 0;                                  // guarded; steps pushed so far
  bool stop_ = false;                                  // guarded; what is pushed afterwards has no reader

  mutable std::mutex mutex_;
  std::condition_variable changed_;                                  // a callback returned, or a request ended
  std::unordered_map<uint64_t, std::shared_ptr<Request>> requests_;  // guarded by mutex_
  std::unordered_map<RequestId, Live> sequences_;                    // guarded
  const Request* calling_ = nullptr;                                 // guarded; whose callback runs

  std::vector<Live> found_;    // of the batch, by its place; of the output thread, as the next
  std::vector<size_t> order_;  // first places of the requests with news

  std::thread thread_;  // last: starts when everything else is there
};

}  // namespace vllm
