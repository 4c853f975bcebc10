// The output thread's work: text, logprobs, ends, callbacks and per-request metrics.
#include "engine/out/output_processor.h"

#include <algorithm>
#include <chrono>
#include <exception>

#include "base/check.h"
#include "base/log.h"

namespace vllm {
namespace {

int64_t NowUs() {
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

template <class T>
void AppendTo(std::vector<T>& to, std::vector<T>& from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

// The later report of a sequence into the earlier one.
void Merge(CoreOutput& into, CoreOutput& from) {
  AppendTo(into.new_token_ids, from.new_token_ids);
  AppendTo(into.logprobs, from.logprobs);
  if (!from.prompt_logprobs.empty()) into.prompt_logprobs = std::move(from.prompt_logprobs);
  if (from.finish) into.finish = from.finish;
  if (from.stop_reason.index() != 0) into.stop_reason = std::move(from.stop_reason);
  if (from.error) into.error = std::move(from.error);
  if (into.cached_tokens < 0) into.cached_tokens = from.cached_tokens;
  if (into.scheduled_us == 0) into.scheduled_us = from.scheduled_us;
  into.num_preemptions = std::max(into.num_preemptions, from.num_preemptions);
}

}  // namespace

// Guarded by its request's `work`.
struct OutputProcessor::Sequence {
  Sequence(RequestId id, int index, SequenceText text) : id(id), index(index), text(std::move(text)) {}
  RequestId id;
  int index;
  SequenceText text;
  bool live = true;
  FinishedSequence facts = {};
};

struct OutputProcessor::Request {
  uint64_t handle = 0;
  std::shared_ptr<const SamplingParams> params;  // the sequences' texts refer to it
  OutputCallback on_output;
  std::mutex work;  // guards what follows, but for the last; taken before mutex_, never held while the callback runs
  std::vector<Sequence> sequences;
  size_t num_live = 0;
  bool begun = false;  // the first output has gone out
  bool prompt_counted = false;
  int64_t longest_generation = 0;
  bool dropped = false;      // guarded by mutex_: aborted, no callback any more
  std::vector<size_t> news;  // of the output thread: places in the batch
};

OutputProcessor::OutputProcessor(Options options) : options_(std::move(options)) {
  CHECK(options_.tokenizer && options_.metrics && options_.abort_sequence, "an output processor lacks a part");
  thread_ = std::thread([this] { Run(); });
}

OutputProcessor::~OutputProcessor() { Stop(); }

void OutputProcessor::Stop() {
  {
    const std::lock_guard lock(queue_mutex_);
    stop_ = true;
  }
  queue_wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void OutputProcessor::Add(NewRequest added) {
  auto request = std::make_shared<Request>();
  request->handle = added.handle;
  request->params = std::move(added.params);
  request->on_output = std::move(added.on_output);
  request->num_live = added.sequences.size();
  request->sequences.reserve(added.sequences.size());
  for (size_t i = 0; i < added.sequences.size(); ++i) {
    Sequence& sequence =
        request->sequences.emplace_back(added.sequences[i], static_cast<int>(i),
                                        SequenceText(*options_.tokenizer, *request->params, added.prompt_token_ids));
    sequence.facts.num_prompt_tokens = static_cast<int64_t>(added.prompt_token_ids.size());
    sequence.facts.max_tokens = request->params->max_tokens;
    sequence.facts.arrival_us = added.arrival_us;
  }
  const std::lock_guard lock(mutex_);
  for (const Sequence& sequence : request->sequences) {
    CHECK(sequences_.emplace(sequence.id, Live{request, sequence.index}).second, "sequence ", sequence.id);
  }
  CHECK(requests_.emplace(request->handle, request).second, "request ", request->handle);
}

std::shared_ptr<OutputProcessor::Request> OutputProcessor::Unlink(uint64_t handle, std::vector<RequestId>& live) {
  const auto found = requests_.find(handle);
  if (found == requests_.end()) return nullptr;
  std::shared_ptr<Request> request = std::move(found->second);
  requests_.erase(found);
  for (const Sequence& sequence : request->sequences) {
    if (sequences_.erase(sequence.id) != 0) live.push_back(sequence.id);
  }
  return request;
}

void OutputProcessor::Remove(uint64_t handle) {
  std::vector<RequestId> live;
  std::shared_ptr<Request> request;
  {
    const std::lock_guard lock(mutex_);
    request = Unlink(handle, live);
  }
  changed_.notify_all();
}

void OutputProcessor::Abort(uint64_t handle) {
  std::vector<RequestId> live;
  std::shared_ptr<Request> request;  // destroyed after the lock: a callback may own things whose destructors call us
  {
    std::unique_lock lock(mutex_);
    request = Unlink(handle, live);
    if (request) request->dropped = true;
    // Also for a request that has just ended: its last callback may still be running.
    if (std::this_thread::get_id() != thread_.get_id()) {
      changed_.wait(lock, [&] { return calling_ == nullptr || calling_->handle != handle; });
    }
  }
  changed_.notify_all();
  for (const RequestId id : live) options_.abort_sequence(id);
  if (!request) return;
  const std::lock_guard work(request->work);
  for (Sequence& sequence : request->sequences) {
    if (std::find(live.begin(), live.end(), sequence.id) != live.end()) {
      EndSequence(*request, sequence, FinishReason::kAbort);
    }
  }
}

void OutputProcessor::Push(std::vector<CoreOutput> outputs) {
  if (outputs.empty()) return;
  const int64_t now = NowUs();
  {
    const std::lock_guard lock(queue_mutex_);
    if (stop_) return;
    const uint64_t step = ++step_;
    const bool behind = !queue_.empty();
    if (behind && queue_index_.empty())
      for (size_t i = 0; i < queue_.size(); ++i) queue_index_.emplace(queue_[i].output.id, i);
    for (CoreOutput& output : outputs) {
      const Report report = {step, now, static_cast<int64_t>(output.new_token_ids.size())};
      const auto place = behind ? queue_index_.emplace(output.id, queue_.size()) : std::pair(queue_index_.end(), true);
      if (place.second) {
        queue_.push_back({std::move(output), report, {}});
      } else {
        Pending& earlier = queue_[place.first->second];
        Merge(earlier.output, output);
        earlier.later.push_back(report);
      }
    }
  }
  queue_wake_.notify_one();
}

bool OutputProcessor::WaitUntilEmpty(int64_t timeout_ms) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::milliseconds(timeout_ms),
                           [this] { return requests_.empty() && calling_ == nullptr; });
}

size_t OutputProcessor::num_requests() const {
  const std::lock_guard lock(mutex_);
  return requests_.size();
}

void OutputProcessor::Run() {
  std::vector<Pending> batch;
  for (;;) {
    batch.clear();
    {
      std::unique_lock lock(queue_mutex_);
      queue_wake_.wait(lock, [this] { return stop_ || !queue_.empty(); });
      if (stop_) return;
      batch.swap(queue_);
      queue_index_.clear();
    }
    Process(batch);
  }
}

void OutputProcessor::Process(std::vector<Pending>& batch) {
  found_.assign(batch.size(), {});
  {
    const std::lock_guard lock(mutex_);
    for (size_t i = 0; i < batch.size(); ++i) {
      const auto live = sequences_.find(batch[i].output.id);
      if (live != sequences_.end()) found_[i] = live->second;
    }
  }
  // Choices of one request that have news together go out together, in the order in which they first reported.
  order_.clear();
  Steps steps;
  int64_t generated = 0;
  for (size_t i = 0; i < batch.size(); ++i) {
    if (!found_[i].request) continue;
    Request& request = *found_[i].request;
    if (request.news.empty()) order_.push_back(i);
    request.news.push_back(i);
    const std::lock_guard work(request.work);
    generated += Measure(request, request.sequences[static_cast<size_t>(found_[i].index)], batch[i], steps);
  }
  // Before any callback: whoever has seen a request end finds it in the metrics.
  if (generated > 0) options_.metrics->CountGenerated(generated);
  for (const auto& [step, tokens] : steps) options_.metrics->ObserveStep(tokens.computed_prompt, tokens.generated);
  for (const size_t first : order_) {
    const std::shared_ptr<Request> request = std::move(found_[first].request);
    RequestOutput out;
    bool has_news = false;
    for (const size_t i : request->news) {
      const std::lock_guard work(request->work);
      Sequence& sequence = request->sequences[static_cast<size_t>(found_[i].index)];
      if (!sequence.live) continue;  // aborted meanwhile, or ended by a sibling's error
      has_news = true;
      ApplyReport(*request, sequence, batch[i], out);
    }
    request->news.clear();
    if (has_news) Deliver(request, std::move(out));
  }
  found_.clear();
}

int64_t OutputProcessor::Measure(Request& request, Sequence& sequence, const Pending& pending, Steps& steps) {
  FinishedSequence& facts = sequence.facts;
  const CoreOutput& output = pending.output;
  if (output.cached_tokens >= 0) facts.num_cached_tokens = output.cached_tokens;
  if (output.scheduled_us != 0) facts.scheduled_us = output.scheduled_us;
  facts.num_preemptions = std::max(facts.num_preemptions, output.num_preemptions);
  const int64_t before = facts.num_generation_tokens;
  const auto measure = [&](const Report& report) {
    if (report.num_tokens == 0) return;
    facts.num_generation_tokens += report.num_tokens;
    const auto known =
        std::find_if(steps.rbegin(), steps.rend(), [&](const auto& s) { return s.first == report.step; });
    StepTokens& step = known == steps.rend() ? steps.emplace_back(report.step, StepTokens()).second : known->second;
    step.generated += report.num_tokens;
    if (facts.first_token_us == 0) {
      facts.first_token_us = report.time_us;
      options_.metrics->ObserveTimeToFirstToken(static_cast<double>(report.time_us - facts.arrival_us) * 1e-6);
      step.computed_prompt += facts.num_prompt_tokens - facts.num_cached_tokens;
      if (!request.prompt_counted) options_.metrics->CountPrompt(facts.num_prompt_tokens, facts.num_cached_tokens);
      request.prompt_counted = true;
    } else {
      options_.metrics->ObserveInterTokenLatency(static_cast<double>(report.time_us - facts.last_token_us) * 1e-6);
    }
    facts.last_token_us = report.time_us;
  };
  measure(pending.report);
  for (const Report& report : pending.later) measure(report);
  return facts.num_generation_tokens - before;
}

void OutputProcessor::ApplyReport(Request& request, Sequence& sequence, Pending& pending, RequestOutput& out) {
  CoreOutput& output = pending.output;
  if (!request.begun) {
    request.begun = out.first = true;
    out.cached_tokens = std::max<int64_t>(output.cached_tokens, 0);
    out.prompt_logprobs = std::move(output.prompt_logprobs);
  }
  const bool finished_in_core = output.finish.has_value();
  const SequenceText::Update update = sequence.text.Add(output.new_token_ids, output.finish == FinishReason::kStop);
  if (update.stop_string) {
    output.finish = FinishReason::kStop;
    output.stop_reason = *update.stop_string;
    output.error.reset();
  }
  output.new_token_ids.resize(update.kept_tokens);
  if (output.logprobs.size() > update.kept_tokens) output.logprobs.resize(update.kept_tokens);
  ChoiceOutput choice = {.index = sequence.index,
                         .text = sequence.text.TakeText(output.finish.has_value()),
                         .token_ids = std::move(output.new_token_ids),
                         .logprobs = std::move(output.logprobs),
                         .finish = output.finish,
                         .stop_reason = std::move(output.stop_reason)};
  if (choice.finish || !choice.token_ids.empty()) out.choices.push_back(std::move(choice));
  if (!output.finish) return;
  {
    const std::lock_guard lock(mutex_);
    if (sequences_.erase(sequence.id) == 0) return;  // aborted just now; counted there
  }
  if (!finished_in_core) options_.abort_sequence(sequence.id);
  EndSequence(request, sequence, *output.finish);
  if (output.error || output.finish == FinishReason::kError) {
    out.error = output.error ? std::move(output.error)
                             : base::MakeError(base::ErrorCode::kInternal, "the engine ended the request");
    EndRequest(request);
  }
  out.finished = request.num_live == 0;
}

void OutputProcessor::EndSequence(Request& request, Sequence& sequence, FinishReason reason) {
  if (!sequence.live) return;
  sequence.live = false;
  sequence.facts.reason = reason;
  sequence.facts.end_us = NowUs();
  options_.metrics->ObserveFinished(sequence.facts);
  request.longest_generation = std::max(request.longest_generation, sequence.facts.num_generation_tokens);
  if (--request.num_live == 0) {
    options_.metrics->ObserveRequest(static_cast<int>(request.sequences.size()), request.longest_generation);
  }
}

// One choice's error ends its siblings too: the caller sees one error and no more.
void OutputProcessor::EndRequest(Request& request) {
  for (Sequence& sequence : request.sequences) {
    if (!sequence.live) continue;
    {
      const std::lock_guard lock(mutex_);
      if (sequences_.erase(sequence.id) == 0) continue;
    }
    options_.abort_sequence(sequence.id);
    EndSequence(request, sequence, FinishReason::kError);
  }
}

void OutputProcessor::Deliver(const std::shared_ptr<Request>& request, RequestOutput out) {
  const bool finished = out.finished;
  {
    const std::lock_guard lock(mutex_);
    if (request->dropped) return;
    calling_ = request.get();
  }
  if (!out.choices.empty() || out.first || out.error) {
    try {
      request->on_output(std::move(out));
    } catch (const std::exception& error) {
      base::LogError("an output callback threw (", error.what(), "); its request is aborted");
      Abort(request->handle);
    }
  }
  std::shared_ptr<Request> ended;
  {
    const std::lock_guard lock(mutex_);
    calling_ = nullptr;
    if (finished) {
      const auto found = requests_.find(request->handle);
      if (found != requests_.end()) {
        ended = std::move(found->second);
        requests_.erase(found);
      }
    }
  }
  changed_.notify_all();
}

}  // namespace vllm
