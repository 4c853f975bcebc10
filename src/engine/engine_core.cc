// EngineCore: the engine thread's loop.
#include "engine/engine_core.h"

#include <chrono>
#include <string>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "base/limits.h"
#include "base/log.h"

namespace vllm {
namespace {

constexpr std::chrono::milliseconds kInputPoll(10);  // between looks at the inputs while a step runs

}  // namespace

EngineCore::EngineCore(Options options, ModelRunner* runner, OutputSink sink)
    : options_(std::move(options)),
      max_sequences_(options_.max_num_queued_reqs.value_or(options_.scheduler.max_num_seqs + base::kMaxQueuedRequests)),
      runner_(runner),
      sink_(std::move(sink)),
      scheduler_(options_.scheduler, options_.kv_cache) {
  CHECK(runner_ != nullptr && sink_ != nullptr, "no runner or no sink");
  thread_ = std::thread([this] { Run(); });
}

EngineCore::~EngineCore() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

base::Status EngineCore::CheckDoor(size_t count) {
  if (!death_.empty()) return base::MakeError(base::ErrorCode::kInternal, "The engine is dead: ", death_);
  if (draining_ || stop_) return base::MakeError(base::ErrorCode::kOverloaded, "The engine is shutting down.");
  // Aborted ones leave live_ at once but stay queued until the thread gets to them.
  if (static_cast<int64_t>(live_.size() + count) > max_sequences_ ||
      static_cast<int64_t>(inputs_.size() + count) > 2 * max_sequences_) {
    ++rejected_reqs_;
    return base::MakeError(base::ErrorCode::kOverloaded,
                           "The engine is currently busy and cannot accept new requests. Please try again later or on "
                           "a different instance.");
  }
  if (options_.max_num_queued_tokens && prefill_tokens_ >= *options_.max_num_queued_tokens) {
    ++rejected_tokens_;
    return base::MakeError(base::ErrorCode::kOverloaded,
                           "The engine has reached its prefill token backlog limit. Please try again later or on a "
                           "different instance.");
  }
  return base::Ok();
}

base::Status EngineCore::Add(CoreRequest request) {
  std::vector<CoreRequest> requests;
  requests.push_back(std::move(request));
  return Add(std::move(requests));
}

base::Status EngineCore::Add(std::vector<CoreRequest> requests) {
  for (const CoreRequest& request : requests) {
    CHECK(request.params != nullptr, "request ", request.id, " has no sampling parameters");
    base::Status admissible = scheduler_.CheckAdmissible(static_cast<int64_t>(request.prompt_token_ids.size()));
    if (!admissible.ok()) return admissible;
  }
  {
    const std::lock_guard lock(mutex_);
    base::Status open = CheckDoor(requests.size());
    if (!open.ok()) return open;
    for (CoreRequest& request : requests) {
      const RequestId id = request.id;
      const auto prompt_tokens = static_cast<int64_t>(request.prompt_token_ids.size());
      CHECK(live_.emplace(id, prompt_tokens).second, "request ", id, " is here already");
      prefill_tokens_ += prompt_tokens;
      inputs_.emplace_back(std::move(request));
    }
  }
  wake_.notify_one();
  return base::Ok();
}

void EngineCore::EndPrefill(int64_t& prompt_tokens) { prefill_tokens_ -= std::exchange(prompt_tokens, 0); }

void EngineCore::Abort(RequestId id) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = live_.find(id);
    if (found == live_.end()) return;  // so that each sequence queues at most one abort
    EndPrefill(found->second);
    live_.erase(found);
    inputs_.emplace_back(id);
    if (live_.empty()) drained_.notify_all();
  }
  wake_.notify_one();
}

bool EngineCore::ResetPrefixCache() {
  std::future<bool> done;
  {
    const std::lock_guard lock(mutex_);
    if (!death_.empty() || stop_ || num_queued_resets_ >= base::kMaxQueuedControls) return false;
    Reset reset;
    done = reset.done.get_future();
    inputs_.emplace_back(std::move(reset));
    ++num_queued_resets_;
  }
  wake_.notify_one();
  try {
    return done.get();
  } catch (const std::future_error&) {
    return false;  // the engine died before it got to it
  }
}

bool EngineCore::Drain(int64_t timeout_ms) {
  std::unique_lock lock(mutex_);
  draining_ = true;
  const auto ended = [this] { return live_.empty() || !death_.empty(); };
  if (drained_.wait_for(lock, std::chrono::milliseconds(timeout_ms), ended)) return true;
  inputs_.emplace_back(AbortAll{});
  lock.unlock();
  wake_.notify_one();
  lock.lock();
  drained_.wait(lock, ended);  // bounded by the steps in flight
  return false;
}

EngineStats EngineCore::stats() const {
  const std::lock_guard lock(mutex_);
  EngineStats stats = stats_;
  stats.rejected_reqs = rejected_reqs_;
  stats.rejected_tokens = rejected_tokens_;
  return stats;
}

int64_t EngineCore::num_sequences() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(live_.size());
}

void EngineCore::Run() {
  if (options_.trace != nullptr) options_.trace->NameThread("engine");
  try {
    Loop();
    return;
  } catch (const std::exception& e) {
    Die(e.what());
  } catch (...) {
    Die("an unknown exception");
  }
  RefuseInputs();
}

void EngineCore::Loop() {
  while (TakeInputs(flights_.empty() && !scheduler_.has_requests() && !scheduler_.has_finished())) {
    const bool may_start = static_cast<int64_t>(flights_.size()) < options_.scheduler.max_steps_in_flight();
    const bool started = may_start && (scheduler_.has_requests() || scheduler_.has_finished()) && StartStep();
    // Keep the runner fed before waiting for it.
    if (started && static_cast<int64_t>(flights_.size()) < options_.scheduler.max_steps_in_flight()) continue;
    if (!flights_.empty()) FinishOldestStep();
  }
  while (!flights_.empty()) {  // the runner writes into our memory until its steps are over
    flights_.front().output.wait();
    flights_.pop_front();
  }
}

bool EngineCore::TakeInputs(bool wait) {
  std::deque<Input> inputs;
  {
    std::unique_lock lock(mutex_);
    if (wait) wake_.wait(lock, [this] { return stop_ || !inputs_.empty(); });
    if (stop_) return false;
    inputs.swap(inputs_);
    num_queued_resets_ = 0;
  }
  if (inputs.empty()) return true;
  for (Input& input : inputs) Apply(std::move(input));
  PublishStats();
  return true;
}

void EngineCore::Apply(Input input) {
  std::visit(
      [this](auto&& item) {
        using Item = std::decay_t<decltype(item)>;
        if constexpr (std::is_same_v<Item, CoreRequest>) {
          scheduler_.Add(std::move(item));
        } else if constexpr (std::is_same_v<Item, RequestId>) {
          scheduler_.Abort(item);
        } else if constexpr (std::is_same_v<Item, AbortAll>) {
          std::vector<CoreOutput> outputs;
          {
            const std::lock_guard lock(mutex_);
            for (const auto& [id, prompt_tokens] : live_) {
              outputs.push_back({.id = id, .finish = FinishReason::kAbort});
            }
          }
          for (const CoreOutput& output : outputs) scheduler_.Abort(output.id);
          Deliver(std::move(outputs));
        } else {
          item.done.set_value(scheduler_.ResetPrefixCache());
        }
      },
      std::move(input));
}

bool EngineCore::StartStep() {
  base::TraceScope scope(options_.trace, "schedule");
  SchedulerOutput step = scheduler_.Schedule();
  scope.Arg("step", static_cast<int64_t>(step.step));
  scope.Arg("tokens", step.total_tokens);
  scope.Arg("sequences", static_cast<int64_t>(step.scheduled.size()));
  std::vector<CoreOutput> ended = scheduler_.TakeEnded();
  const bool news = !ended.empty() || !step.finished.empty() || !step.preempted.empty();
  if (!ended.empty()) Deliver(std::move(ended));
  if (step.total_tokens == 0 && step.finished.empty()) {
    CHECK(news || !flights_.empty(), "nothing can be scheduled and nothing is in flight");
    return false;
  }
  // What the output is matched with; the rest, whole prompts among it, goes to the runner.
  Flight flight{.step = {.step = step.step, .scheduled = step.scheduled}};
  if (options_.trace != nullptr) flight.load = LoadOf(step);
  flight.output = runner_->ExecuteModel(std::move(step));
  flights_.push_back(std::move(flight));
  return true;
}

void EngineCore::FinishOldestStep() {
  Flight flight = std::move(flights_.front());
  flights_.pop_front();
  ModelRunnerOutput output;
  {
    base::TraceScope scope(options_.trace, "wait");
    scope.Arg("step", static_cast<int64_t>(flight.step.step));
    // A step may take seconds: clients that leave meanwhile give their blocks back at once. What the step still writes
    // into them comes before anything that a later step computes.
    while (flight.output.wait_for(kInputPoll) != std::future_status::ready) {
      if (TakeInputs(false)) continue;
      flights_.push_front(std::move(flight));  // the core stops: Loop waits for it
      return;
    }
    output = flight.output.get();
  }
  // Aborts that came while the step ran take effect before its outputs do.
  if (!TakeInputs(false)) return;
  std::vector<CoreOutput> outputs;
  {
    base::TraceScope scope(options_.trace, "update");
    // From these lines the simulator learns what steps cost.
    scope.Arg("step", static_cast<int64_t>(flight.step.step));
    scope.Arg("tokens", flight.load.tokens);
    scope.Arg("samples", flight.load.samples);
    scope.Arg("context", flight.load.context);
    scope.Arg("attended", flight.load.attended);
    scope.Arg("elapsed_us", output.elapsed_us);
    outputs = scheduler_.UpdateFromOutput(flight.step, std::move(output));
  }
  if (!outputs.empty()) {
    base::TraceScope scope(options_.trace, "deliver");
    scope.Arg("outputs", static_cast<int64_t>(outputs.size()));
    Deliver(std::move(outputs));
  }
  PublishStats();
}

void EngineCore::Deliver(std::vector<CoreOutput> outputs) {
  std::vector<std::pair<RequestId, bool>> news;  // with whether it has ended
  for (const CoreOutput& output : outputs) {
    if (output.finish || output.cached_tokens >= 0) news.emplace_back(output.id, output.finish.has_value());
  }
  sink_(std::move(outputs));
  if (news.empty()) return;
  // After the sink, so that a drained core has delivered everything.
  const std::lock_guard lock(mutex_);
  for (const auto& [id, ended] : news) {
    const auto found = live_.find(id);
    if (found == live_.end()) continue;
    EndPrefill(found->second);
    if (ended) live_.erase(found);
  }
  if (live_.empty()) drained_.notify_all();
}

void EngineCore::PublishStats() {
  const EngineStats stats = scheduler_.stats();
  const std::lock_guard lock(mutex_);
  stats_ = stats;
}

void EngineCore::Die(const std::string& reason) {
  base::LogError("the engine is dead: ", reason);
  for (Flight& flight : flights_) flight.output.wait();
  flights_.clear();
  std::vector<CoreOutput> outputs;
  std::deque<Input> inputs;
  {
    const std::lock_guard lock(mutex_);
    dead_.store(true, std::memory_order_release);
    death_ = reason.empty() ? "no reason given" : reason;
    for (const auto& [id, prompt_tokens] : live_) {
      outputs.push_back({.id = id,
                         .finish = FinishReason::kError,
                         .error = base::MakeError(base::ErrorCode::kInternal, "The engine is dead: ", death_)});
    }
    inputs.swap(inputs_);
    stats_.num_running = stats_.num_waiting = 0;
  }
  for (Input& input : inputs) {
    if (Reset* reset = std::get_if<Reset>(&input)) reset->done.set_value(false);
  }
  Deliver(std::move(outputs));
}

void EngineCore::RefuseInputs() {
  // The door is shut: only aborts of sequences that have ended could still come, and those are dropped at the door.
  std::unique_lock lock(mutex_);
  wake_.wait(lock, [this] { return stop_; });
}

}  // namespace vllm
