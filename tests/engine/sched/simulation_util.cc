// The simulation's driver and its model of what must hold.
#include "tests/engine/sched/simulation_util.h"

#include <algorithm>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <ostream>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "engine/kv/kv_cache_config.h"
#include "engine/sched/scheduler.h"
#include "tests/engine/sched/scripted_runner.h"
#include "tests/engine/sched/simulation_random.h"

namespace vllm {

// Reaches into a scheduler to plant faults.
class SchedulerPeer {
 public:
  explicit SchedulerPeer(Scheduler& scheduler) : scheduler_(scheduler) {}

  BlockPool& pool() { return const_cast<BlockPool&>(scheduler_.kv_.pool()); }
  const KvSequence& kv(RequestId id) const { return scheduler_.requests_.at(id)->kv; }

  // From now on the scheduler waits for an output of the sequence that no step will bring.
  void ExpectOutput(RequestId id) {
    Request& request = *scheduler_.requests_.at(id);
    ++request.num_output_placeholders;
    request.num_computed_tokens = request.num_tokens() + request.num_output_placeholders;
  }
  bool expects_output(RequestId id) const { return scheduler_.requests_.at(id)->num_output_placeholders > 0; }
  // Puts the first of the waiting sequences behind the second.
  void SwapWaiting() {
    RequestQueue& waiting = scheduler_.waiting_;
    Request* first = waiting.Front();
    waiting.PopFront();
    Request* second = waiting.Front();
    waiting.PopFront();
    waiting.Prepend(first);
    waiting.Prepend(second);
  }

 private:
  Scheduler& scheduler_;
};

namespace {

int64_t Size(const auto& container) { return static_cast<int64_t>(container.size()); }

// The scheduler's clock. A simulation stays on one thread.
thread_local int64_t now_us = 0;
int64_t Now() { return now_us; }

constexpr size_t kNowhere = ~size_t{0};

enum class Phase : int8_t { kWaiting, kRunning, kPreempted };

// A request as its client and an ideal engine see it.
struct Live {
  RequestId id = 0;
  std::vector<int32_t> tokens = {};  // prompt and delivered outputs
  int64_t num_prompt_tokens = 0, max_tokens = 0;
  uint64_t prefix = 0;                       // of `tokens`
  std::vector<uint64_t> last_prefixes = {};  // of those behind the last hashed block
  std::vector<BlockHash> hashes = {};
  size_t last_block = kNowhere;  // in Simulation::blocks_
  std::string salt = {};
  std::shared_ptr<const SamplingParams> params = {};
  int priority = 0;
  int64_t arrival_us = 0, deadline_us = 0;
  uint64_t since = 0, patience = 0;  // steps: of its arrival, and how many it may take from then
  Phase phase = Phase::kWaiting;
  bool first_output_seen = false, broken = false;
  int64_t cached_tokens = 0;
  int num_preemptions = 0;

  auto Rank() const { return std::make_tuple(priority, arrival_us, id); }
  int64_t num_tokens() const { return Size(tokens); }
};

uint64_t PrefixOfSalt(const std::string& salt) {
  uint64_t prefix = 0;
  for (const char c : salt) prefix = MixPrefix(prefix, c);
  return prefix;
}

class Simulation {
 public:
  Simulation(const SimulationSetup& setup, Fault fault, std::ostream* log);

  void Run(uint64_t num_steps);
  SimulationReport& report() { return report_; }

 private:
  struct Flight {
    SchedulerOutput step = {};
    ModelRunnerOutput output = {};
  };
  // A hashed run of tokens: hash_block_size prefixes at `first` of prefixes_, and the run before.
  struct TokenBlock {
    size_t first = 0, parent = kNowhere;
  };
  struct HashHasher {
    size_t operator()(const BlockHash& hash) const { return BlockKeyHasher()({.hash = hash}); }
  };
  // State of a KV block when its content was last compared with its hash.
  struct Compared {
    uint64_t writes = ~uint64_t{0};
    BlockKey key = {};
  };

  const SchedulerConfig& config() const { return setup_.scheduler; }
  bool fcfs() const { return config().policy == SchedulingPolicy::kFcfs; }

  // Clients.
  void Arrive();
  std::shared_ptr<const SamplingParams> DrawParams(int64_t max_tokens);
  void Cancel();
  void ResetPrefixCache();
  std::optional<base::Error> DrawError(RequestId id);
  void SpoilDrafts(std::vector<int32_t>& drafts);
  uint64_t Effort(const Live& live) const;  // steps of a request that is the only one, at most
  void Append(Live& live, int32_t token);

  // Steps.
  void Step();
  void FinishOldestStep();
  void Log(const SchedulerOutput& step) const;
  void TakeEnded(const SchedulerOutput& step, const std::vector<CoreOutput>& ended);
  void Take(const CoreOutput& output);
  void CheckFinish(const Live& live, const CoreOutput& output, const std::optional<Request::Stop>& stop) const;
  void CheckError(const Live& live, const base::Error& error) const;
  void CheckForgotten(RequestId id) const;
  std::optional<Request::Stop> StopOf(const Live& live) const;
  void Erase(RequestId id);

  // What must hold.
  void CheckPlan(const SchedulerOutput& step);
  void TakePreempted(const SchedulerOutput& step);
  std::vector<const Live*> TakeAdmitted(const SchedulerOutput& step);
  void CheckOrder(const std::vector<const Live*>& admitted) const;
  bool InFlight(RequestId id) const;
  void CheckTimes() const;
  void CheckBlocks();
  void CheckContent(int32_t block);
  void CheckGauges() const;
  void CheckEmpty();

  void Plant();
  bool PlantStaleHash();
  bool PlantStarvation();
  bool PlantWrongOrder();
  void PlantWrongOutput();
  RequestId AnyRunning() { return running_[static_cast<size_t>(random_.Below(Size(running_)))]; }

  const SimulationSetup setup_;
  std::ostream* const log_;
  Random random_;
  const Fault fault_;
  const uint64_t fault_step_;
  bool planted_ = false;
  std::optional<std::pair<int32_t, BlockKey>> stale_ = {};
  Scheduler scheduler_;
  SchedulerPeer peer_{scheduler_};
  ScriptedModel model_;
  BlockHasher hasher_;
  std::map<RequestId, Live> live_;
  std::vector<RequestId> running_;  // in order of admission
  std::deque<Flight> flights_;
  // Every run of tokens that was ever hashed.
  std::vector<uint64_t> prefixes_;
  std::vector<TokenBlock> blocks_;
  std::unordered_map<BlockHash, size_t, HashHasher> block_of_hash_;
  std::vector<Compared> compared_;  // by KV block
  std::vector<int> holders_;        // by KV block
  int64_t num_held_ = 0;
  RequestId last_id_ = 0;
  SimulationReport report_;
};

Simulation::Simulation(const SimulationSetup& setup, Fault fault, std::ostream* log)
    : setup_(setup),
      log_(log),
      random_(setup.seed ^ 0x5851f42d4c957f2dull),
      fault_(fault),
      fault_step_(fault == Fault::kNone ? 0 : static_cast<uint64_t>(random_.Between(50, 1000))),
      scheduler_(setup.scheduler, setup.kv, Now),
      model_(setup.kv, {.num_drafts = static_cast<int>(setup.scheduler.num_spec_tokens),
                        .async = setup.scheduler.async_scheduling}),
      hasher_(HashBlockSize(setup.kv.groups)),
      compared_(static_cast<size_t>(setup.kv.num_blocks)),
      holders_(static_cast<size_t>(setup.kv.num_blocks)) {
  now_us = 1;
  model_.error = [this](RequestId id, int64_t) { return DrawError(id); };
  model_.first_prefix = [this](RequestId id) { return PrefixOfSalt(live_.at(id).salt); };
  model_.spoil_drafts = [this](RequestId, std::vector<int32_t>& drafts) { SpoilDrafts(drafts); };
}

void Simulation::Run(uint64_t num_steps) {
  uint64_t phase_end = 0, rounds = 0, last_steps = 0;
  bool busy = false;
  while (report_.steps < num_steps) {
    if (std::exchange(last_steps, report_.steps) != report_.steps) rounds = 0;
    CHECK(++rounds < 10000, "no step has run for ", rounds, " rounds");
    if (report_.steps >= phase_end) {
      // Quiet times let the pool run empty.
      busy = !busy;
      phase_end = report_.steps + static_cast<uint64_t>(random_.Between(20, busy ? 600 : 100));
    }
    if (busy || live_.empty()) {
      while (Size(live_) < setup_.max_live && random_.Chance(setup_.arrivals)) Arrive();
    }
    if (random_.Chance(setup_.resets)) ResetPrefixCache();
    Step();
  }
  uint64_t patience = 64;
  for (const auto& [id, live] : live_) patience += Effort(live);
  for (uint64_t i = 0; !live_.empty() || !flights_.empty(); ++i) {
    CHECK(i < patience, live_.size(), " requests have not ended ", i, " steps after the last arrival");
    Step();
  }
  CheckEmpty();
}

// ------------------------------------------------------------------------------------------------------------ clients

void Simulation::Arrive() {
  const int64_t length = random_.Between(1, setup_.prompt_tokens_max);
  if (!scheduler_.CheckAdmissible(length).ok()) {
    const KvLimits limits{.max_model_len = config().max_model_len,
                          .max_in_flight_tokens = config().max_in_flight_tokens()};
    CHECK(KvBlocksNeeded(setup_.kv.groups, length, limits) >= setup_.kv.num_blocks, "a prompt of ", length,
          " tokens is refused");
    ++report_.refused;
    return;
  }
  Live live{.id = ++last_id_, .num_prompt_tokens = length};
  live.max_tokens = std::min(random_.Between(1, setup_.max_tokens), config().max_model_len - length);
  live.params = DrawParams(live.max_tokens);
  if (!live.params->max_tokens) live.max_tokens = config().max_model_len - length;
  if (random_.Chance(setup_.salts)) live.salt = random_.OneOf({"salt", "pepper"});
  live.priority = static_cast<int>(random_.Below(setup_.priorities));
  live.arrival_us = now_us;
  if (random_.Chance(setup_.deadlines)) live.deadline_us = now_us + random_.Between(0, 20000);
  live.prefix = PrefixOfSalt(live.salt);
  const int64_t family = random_.Below(setup_.families), shared = random_.Between(0, setup_.shared_tokens_max);
  for (int64_t i = 0; i < length; ++i) {
    Append(live,
           static_cast<int32_t>(i < shared ? (family * 131 + i * 31) % kScriptedVocab : random_.Below(kScriptedVocab)));
  }
  live.since = report_.steps;
  live.patience = 64 + Effort(live);
  for (const auto& [id, other] : live_) live.patience += Effort(other);
  scheduler_.Add({.id = live.id,
                  .prompt_token_ids = live.tokens,
                  .params = live.params,
                  .cache_salt = live.salt,
                  .priority = live.priority,
                  .arrival_us = live.arrival_us,
                  .deadline_us = live.deadline_us});
  live_.emplace(live.id, std::move(live));
}

std::shared_ptr<const SamplingParams> Simulation::DrawParams(int64_t max_tokens) {
  SamplingParams params;
  params.max_tokens = random_.Chance(50) ? std::nullopt : std::optional(max_tokens);
  if (random_.Chance(setup_.stops)) {
    for (int i = 0; i < 40; ++i) params.stop_token_ids.push_back(static_cast<int32_t>(random_.Below(kScriptedVocab)));
    params.eos_token_id = static_cast<int32_t>(random_.Below(kScriptedVocab));
  }
  if (random_.Chance(30)) params.skip_reading_prefix_cache = true;
  return std::make_shared<const SamplingParams>(std::move(params));
}

void Simulation::Append(Live& live, int32_t token) {
  live.tokens.push_back(token);
  live.last_prefixes.push_back(live.prefix = MixPrefix(live.prefix, token));
  if (Size(live.last_prefixes) < hasher_.block_size()) return;
  hasher_.Extend(live.tokens, live.salt, live.hashes);
  const auto [entry, is_new] = block_of_hash_.try_emplace(live.hashes.back(), blocks_.size());
  if (is_new) {
    blocks_.push_back({.first = prefixes_.size(), .parent = live.last_block});
    prefixes_.insert(prefixes_.end(), live.last_prefixes.begin(), live.last_prefixes.end());
  }
  live.last_block = entry->second;
  live.last_prefixes.clear();
}

void Simulation::Cancel() {
  if (live_.empty()) return;
  auto victim = live_.begin();
  std::advance(victim, random_.Below(Size(live_)));
  CHECK(scheduler_.Abort(victim->first), "request ", victim->first, " is unknown");
  CHECK(!scheduler_.Abort(victim->first), "request ", victim->first, " is there after its end");
  ++report_.cancelled;
  Erase(victim->first);
}

void Simulation::ResetPrefixCache() {
  const bool reset = scheduler_.ResetPrefixCache();
  CHECK(reset == running_.empty(), running_.size(), " requests run, and the prefix cache was ",
        reset ? "reset" : "kept");
  if (!reset) return;
  ++report_.resets;
  CHECK(scheduler_.kv().pool().num_cached_keys() == 0, "keys are left in the prefix cache");
}

std::optional<base::Error> Simulation::DrawError(RequestId id) {
  if (!random_.Chance(setup_.errors)) return std::nullopt;
  live_.at(id).broken = true;
  return base::Error{base::ErrorCode::kInternal, "broken"};
}

void Simulation::SpoilDrafts(std::vector<int32_t>& drafts) {
  for (int32_t& draft : drafts) {
    if (!random_.Chance(setup_.right_drafts)) draft = static_cast<int32_t>(random_.Below(kScriptedVocab));
  }
  if (random_.Chance(100)) drafts.resize(static_cast<size_t>(random_.Below(Size(drafts) + 1)));
}

uint64_t Simulation::Effort(const Live& live) const {
  int64_t chunk = config().max_num_batched_tokens;
  if (config().long_prefill_token_threshold > 0) chunk = std::min(chunk, config().long_prefill_token_threshold);
  const int64_t all = live.num_prompt_tokens + live.max_tokens;
  return static_cast<uint64_t>(2 * (all / chunk + 1 + all - live.num_tokens()));
}

// -------------------------------------------------------------------------------------------------------------- steps

void Simulation::Step() {
  if (random_.Chance(setup_.cancels)) Cancel();
  Plant();
  now_us += random_.Below(30);
  SchedulerOutput step = scheduler_.Schedule();
  const std::vector<CoreOutput> ended = scheduler_.TakeEnded();
  const bool started = step.total_tokens > 0;
  const bool news = !ended.empty() || !step.finished.empty() || !step.preempted.empty();
  CHECK(started || news || !flights_.empty() || live_.empty(), "nothing can be scheduled and nothing is in flight");
  if (log_ != nullptr) Log(step);
  TakeEnded(step, ended);
  CheckPlan(step);
  ModelRunnerOutput output = model_.RunStep(step);
  if (started) {
    ++report_.steps;
    report_.tokens += static_cast<uint64_t>(step.total_tokens);
    output.elapsed_us = 20 + 2 * step.total_tokens + random_.Below(40);
    flights_.push_back({.step = std::move(step), .output = std::move(output)});
  }
  CheckBlocks();
  CheckGauges();
  CheckTimes();
  if (random_.Chance(setup_.cancels)) Cancel();  // while steps are in flight
  if (flights_.empty()) return;
  if (Size(flights_) >= config().max_steps_in_flight() || random_.Chance(started ? 100 : 900)) FinishOldestStep();
}

// Those that were preempted in the step ended after that.
void Simulation::TakeEnded(const SchedulerOutput& step, const std::vector<CoreOutput>& ended) {
  const auto preempted = [&](const CoreOutput& output) {
    return std::find(step.preempted.begin(), step.preempted.end(), output.id) != step.preempted.end();
  };
  for (const CoreOutput& output : ended) {
    if (!preempted(output)) Take(output);
  }
  TakePreempted(step);
  for (const CoreOutput& output : ended) {
    if (preempted(output)) Take(output);
  }
}

void Simulation::Log(const SchedulerOutput& step) const {
  *log_ << "step " << report_.steps << " at " << now_us << " us:";
  for (const ScheduledTokens& scheduled : step.scheduled) {
    *log_ << ' ' << scheduled.id << '+' << scheduled.num_tokens;
    if (!scheduled.spec_token_ids.empty()) *log_ << '(' << scheduled.spec_token_ids.size() << " drafts)";
    if (scheduled.samples) *log_ << '!';
  }
  for (const NewRequestData& request : step.new_requests) {
    *log_ << (request.resumed ? ", resumes " : ", admits ") << request.id << " at " << request.num_computed_tokens
          << " of " << request.token_ids.size();
  }
  for (const RequestId id : step.preempted) *log_ << ", preempts " << id;
  for (const RequestId id : step.finished) *log_ << ", " << id << " has ended";
  *log_ << "; " << live_.size() << " live, " << scheduler_.kv().num_free_blocks() << " blocks free\n";
}

void Simulation::FinishOldestStep() {
  if (fault_ == Fault::kWrongOutput) PlantWrongOutput();
  Flight flight = std::move(flights_.front());
  flights_.pop_front();
  now_us += flight.output.elapsed_us;
  for (const CoreOutput& output : scheduler_.UpdateFromOutput(flight.step, std::move(flight.output))) Take(output);
  scheduler_.CheckIntegrity();
  CheckGauges();
}

void Simulation::Take(const CoreOutput& output) {
  const auto found = live_.find(output.id);
  CHECK(found != live_.end(), "an output of request ", output.id, ", which has ended");
  Live& live = found->second;
  std::optional<Request::Stop> stop;
  for (const int32_t token : output.new_token_ids) {
    CHECK(!stop.has_value(), "request ", live.id, " goes on after its end");
    const int32_t expected = ScriptedToken(live.prefix);
    CHECK(token == expected, "request ", live.id, ": output ", live.num_tokens() - live.num_prompt_tokens, " is ",
          token, ", and ", expected, " follows what came before");
    Append(live, token);
    stop = StopOf(live);
  }
  report_.drafts_accepted += static_cast<uint64_t>(std::max<int64_t>(0, Size(output.new_token_ids) - 1));
  const bool first = !output.new_token_ids.empty() && !std::exchange(live.first_output_seen, true);
  CHECK(output.cached_tokens == (first ? live.cached_tokens : -1), "request ", live.id, ": ", output.cached_tokens,
        " cached tokens are reported of ", live.cached_tokens);
  CheckFinish(live, output, stop);
  if (!output.finish) return;
  if (output.finish == FinishReason::kAbort) ++report_.timed_out;
  if (output.finish == FinishReason::kError) ++report_.failed;
  Erase(output.id);
}

void Simulation::CheckFinish(const Live& live, const CoreOutput& output,
                             const std::optional<Request::Stop>& stop) const {
  if (!output.finish) {
    CHECK(!stop.has_value(), "request ", live.id, " should have ended");
    return;
  }
  CHECK(output.num_preemptions == live.num_preemptions, "request ", live.id, ": ", output.num_preemptions,
        " preemptions are reported of ", live.num_preemptions);
  CHECK(output.error.has_value() == (output.finish == FinishReason::kError), "request ", live.id);
  if (output.error) {
    CheckError(live, *output.error);
  } else if (output.finish == FinishReason::kAbort) {
    CHECK(live.deadline_us > 0 && live.deadline_us <= now_us && live.first_output_seen, "request ", live.id,
          " ended before its time");
  } else {
    CHECK(stop.has_value() && stop->reason == *output.finish && stop->detail == output.stop_reason, "request ", live.id,
          " ended for the wrong reason");
  }
}

void Simulation::CheckError(const Live& live, const base::Error& error) const {
  switch (error.code) {
    case base::ErrorCode::kInternal:
      CHECK(live.broken, "request ", live.id, ": ", error.message);
      if (live.phase == Phase::kRunning) CheckForgotten(live.id);
      break;
    case base::ErrorCode::kDeadlineExceeded:
      CHECK(live.deadline_us > 0 && live.deadline_us <= now_us && !live.first_output_seen, "request ", live.id,
            " ended before its time");
      break;
    default: {
      CHECK(error.code == base::ErrorCode::kOutOfMemory, "request ", live.id, ": ", error.message);
      // With the tokens of one more step it does not fit into the empty pool.
      const int64_t most = std::min(config().max_model_len,
                                    live.num_tokens() + 1 + config().num_spec_tokens + config().num_lookahead_tokens);
      int64_t blocks = 0;
      for (const KvCacheGroup& group : setup_.kv.groups) blocks += 1 + most / group.spec.block_size;
      CHECK(blocks >= setup_.kv.num_blocks, "request ", live.id, " would fit: ", error.message);
    }
  }
}

// What a failed request alone has computed must not be found by others.
void Simulation::CheckForgotten(RequestId id) const {
  for (const std::vector<int32_t>& table : model_.table(id)) {
    for (const int32_t block : table) {
      if (block == kNullBlock || holders_[static_cast<size_t>(block)] > 1) continue;
      CHECK(!scheduler_.kv().pool().hashed(block), "block ", block, " of request ", id, ", which failed, can be found");
    }
  }
}

std::optional<Request::Stop> Simulation::StopOf(const Live& live) const {
  const int32_t last = live.tokens.back();
  if (live.params->eos_token_id == last) return Request::Stop{};
  const std::vector<int32_t>& stops = live.params->stop_token_ids;
  if (std::find(stops.begin(), stops.end(), last) != stops.end()) return Request::Stop{.detail = last};
  if (live.num_tokens() == live.num_prompt_tokens + live.max_tokens) {
    return Request::Stop{.reason = FinishReason::kLength};
  }
  return std::nullopt;
}

void Simulation::Erase(RequestId id) {
  const Live& live = live_.at(id);
  const double wait = static_cast<double>(report_.steps - live.since) / static_cast<double>(live.patience);
  if (fcfs()) report_.longest_wait = std::max(report_.longest_wait, wait);
  ++report_.ended;
  std::erase(running_, id);
  live_.erase(id);
}

// ---------------------------------------------------------------------------------------------------- what must hold

void Simulation::CheckPlan(const SchedulerOutput& step) {
  CHECK(step.total_tokens <= config().max_num_batched_tokens, step.total_tokens, " tokens in a step");
  // Running sequences come first, in their order.
  size_t next = 0, place = 0;
  for (; next < step.scheduled.size(); ++next) {
    const RequestId id = step.scheduled[next].id;
    CHECK(live_.count(id) > 0, "request ", id, " is scheduled after its end");
    CHECK(step.scheduled[next].num_tokens > 0, "request ", id, " is scheduled without tokens");
    if (live_.at(id).phase != Phase::kRunning) break;
    while (place < running_.size() && running_[place] != id) ++place;
    CHECK(place < running_.size(), "request ", id, " is scheduled twice or out of order");
    ++place;
  }
  CHECK(step.cached_requests.size() == next && step.new_requests.size() == step.scheduled.size() - next, next,
        " running requests are scheduled");
  CheckOrder(TakeAdmitted(step));
  CHECK(Size(running_) <= config().max_num_seqs, running_.size(), " requests run");
}

void Simulation::TakePreempted(const SchedulerOutput& step) {
  for (const RequestId id : step.preempted) {
    ++report_.preemptions;
    const auto found = live_.find(id);
    if (found == live_.end()) continue;  // ended since
    CHECK(found->second.phase == Phase::kRunning, "request ", id, " is preempted and does not run");
    if (fcfs()) CHECK(running_.back() == id, "request ", id, " is preempted before ", running_.back(), ", the last");
    std::erase(running_, id);
    found->second.phase = Phase::kPreempted;
    ++found->second.num_preemptions;
  }
  if (fcfs()) return;
  for (const RequestId id : step.preempted) {
    const auto found = live_.find(id);
    if (found == live_.end()) continue;
    for (const RequestId other : running_) {
      const Live &victim = found->second, &spared = live_.at(other);
      CHECK(std::tie(victim.priority, victim.arrival_us) >= std::tie(spared.priority, spared.arrival_us), "request ",
            id, " is preempted before ", other);
    }
  }
}

std::vector<const Live*> Simulation::TakeAdmitted(const SchedulerOutput& step) {
  std::vector<const Live*> admitted;
  for (size_t i = step.cached_requests.size(); i < step.scheduled.size(); ++i) {
    const RequestId id = step.scheduled[i].id;
    const auto data = std::find_if(step.new_requests.begin(), step.new_requests.end(),
                                   [&](const NewRequestData& request) { return request.id == id; });
    CHECK(data != step.new_requests.end(), "request ", id, " has no data");
    Live& live = live_.at(id);
    CHECK(live.phase != Phase::kRunning, "request ", id, " is admitted twice");
    CHECK(data->resumed == (live.phase == Phase::kPreempted), "request ", id);
    CHECK(data->token_ids == live.tokens && data->num_prompt_tokens == live.num_prompt_tokens, "request ", id,
          " has other tokens");
    if (!config().enable_chunked_prefill && config().long_prefill_token_threshold == 0) {
      CHECK(data->num_computed_tokens + step.scheduled[i].num_tokens >= live.num_tokens(), "the prompt of request ", id,
            " is cut");
    }
    if (!data->resumed) live.cached_tokens = data->num_computed_tokens;
    report_.hit_tokens += static_cast<uint64_t>(data->num_computed_tokens);
    live.phase = Phase::kRunning;
    running_.push_back(id);
    admitted.push_back(&live);
    if (fcfs() && !data->resumed) {
      for (const auto& [other, earlier] : live_) {
        if (other >= id) break;
        CHECK(earlier.phase != Phase::kWaiting, "request ", id, " overtakes request ", other);
      }
    }
  }
  return admitted;
}

void Simulation::CheckOrder(const std::vector<const Live*>& admitted) const {
  for (const Live* live : admitted) {
    for (const auto& [id, other] : live_) {
      // Output from before its preemption holds a request back.
      if (other.phase == Phase::kRunning || InFlight(id)) continue;
      if (fcfs()) {
        CHECK(live->num_preemptions > 0 || other.phase == Phase::kWaiting, "request ", live->id, " overtakes request ",
              id, ", which was preempted");
      } else {
        CHECK(live->Rank() < other.Rank(), "request ", live->id, " overtakes request ", id);
      }
    }
  }
}

bool Simulation::InFlight(RequestId id) const {
  return std::any_of(flights_.begin(), flights_.end(), [&](const Flight& flight) {
    return std::any_of(flight.step.scheduled.begin(), flight.step.scheduled.end(),
                       [&](const ScheduledTokens& scheduled) { return scheduled.id == id; });
  });
}

void Simulation::CheckTimes() const {
  for (const auto& [id, live] : live_) {
    CHECK(live.deadline_us == 0 || live.deadline_us > now_us, "request ", id, " goes on after its deadline");
    if (!fcfs()) continue;  // the important ones may come for ever
    CHECK(report_.steps - live.since <= live.patience, "request ", id, " starves: it has not ended ",
          report_.steps - live.since, " steps after its arrival");
  }
}

void Simulation::CheckBlocks() {
  scheduler_.CheckIntegrity();
  const BlockPool& pool = scheduler_.kv().pool();
  std::fill(holders_.begin(), holders_.end(), 0);
  num_held_ = 0;
  for (const RequestId id : running_) {
    for (const std::vector<int32_t>& table : model_.table(id)) {
      for (const int32_t block : table) num_held_ += block != kNullBlock && holders_[static_cast<size_t>(block)]++ == 0;
    }
  }
  for (int32_t block = 1; block < pool.num_blocks(); ++block) {
    CHECK(pool.ref_count(block) == holders_[static_cast<size_t>(block)], "block ", block, " has ",
          pool.ref_count(block), " references and is in the tables of ", holders_[static_cast<size_t>(block)],
          " requests");
    if (pool.hashed(block)) CheckContent(block);
  }
  CHECK(scheduler_.stats().kv_blocks_used == num_held_, scheduler_.stats().kv_blocks_used, " blocks are in use of ",
        num_held_);
}

void Simulation::CheckContent(int32_t block) {
  const BlockKey& key = scheduler_.kv().pool().key(block);
  Compared& compared = compared_[static_cast<size_t>(block)];
  if (compared.writes == model_.num_writes(block) && compared.key == key) return;
  const auto found = block_of_hash_.find(key.hash);
  CHECK(found != block_of_hash_.end(), "block ", block, " has a hash of no tokens");
  size_t tokens = found->second;
  for (int offset = setup_.kv.groups[static_cast<size_t>(key.group)].spec.block_size; offset > 0;) {
    for (int i = hasher_.block_size(); i-- > 0;) {
      CHECK(model_.slot(block, --offset) == prefixes_[blocks_[tokens].first + static_cast<size_t>(i)], "block ", block,
            " is found by the hash of other tokens than it holds");
    }
    tokens = blocks_[tokens].parent;
  }
  compared = {.writes = model_.num_writes(block), .key = key};
}

void Simulation::CheckGauges() const {
  const EngineStats stats = scheduler_.stats();
  CHECK(stats.num_running == Size(running_), stats.num_running, " requests run of ", running_.size());
  CHECK(stats.num_waiting == Size(live_) - Size(running_), stats.num_waiting, " requests wait of ",
        live_.size() - running_.size());
  CHECK(stats.preemptions == report_.preemptions, stats.preemptions, " preemptions are counted of ",
        report_.preemptions);
  CHECK(scheduler_.has_requests() == !live_.empty(), live_.size(), " requests are left");
}

void Simulation::CheckEmpty() {
  model_.RunStep(scheduler_.Schedule());
  CHECK(model_.num_sequences() == 0, "the runner still has ", model_.num_sequences(), " sequences");
  CheckBlocks();
  CheckGauges();
  const EngineStats stats = scheduler_.stats();
  CHECK(stats.kv_blocks_used == 0 && stats.kv_cache_usage == 0, stats.kv_blocks_used, " blocks are in use for nobody");
  CHECK(!scheduler_.has_finished(), "the runner is not told of the last end");
  ResetPrefixCache();
}

// ------------------------------------------------------------------------------------------------------ planted faults

void Simulation::Plant() {
  if (fault_ == Fault::kNone || planted_ || report_.steps < fault_step_ || running_.empty()) return;
  switch (fault_) {
    case Fault::kDoubleFree:
      for (const GroupBlocks& blocks : peer_.kv(AnyRunning()).groups) {
        const auto block = std::find_if(blocks.ids.begin(), blocks.ids.end(), [](int32_t id) { return id != 0; });
        if (block == blocks.ids.end() || planted_) continue;
        peer_.pool().Free(std::vector<int32_t>{*block});
        planted_ = true;
      }
      break;
    case Fault::kLostBlock:
      if (peer_.pool().num_free() == 0) break;
      peer_.pool().Allocate(1);
      planted_ = true;
      break;
    case Fault::kStaleHash:
      planted_ = PlantStaleHash();
      break;
    case Fault::kStarvation:
      planted_ = PlantStarvation();
      break;
    case Fault::kWrongOrder:
      planted_ = PlantWrongOrder();
      break;
    default:
      break;
  }
}

// As if a block kept its hash when it was given to new tokens.
bool Simulation::PlantStaleHash() {
  BlockPool& pool = peer_.pool();
  if (stale_ && pool.ref_count(stale_->first) > 0) {
    const auto [block, key] = *std::exchange(stale_, {});
    if (pool.hashed(block)) return false;  // its old tokens were asked for again
    pool.Insert(key, block);
    return true;
  }
  for (const int32_t block : pool.FreeOrder()) {
    if (!pool.hashed(block)) continue;
    stale_ = {block, pool.key(block)};
    break;
  }
  return false;
}

bool Simulation::PlantStarvation() {
  if (config().num_spec_tokens > 0) return false;  // drafts would be scheduled all the same
  const RequestId id = AnyRunning();
  if (InFlight(id) || peer_.expects_output(id) || live_.at(id).deadline_us > 0) return false;
  peer_.ExpectOutput(id);
  return true;
}

bool Simulation::PlantWrongOrder() {
  if (!fcfs()) return false;
  int64_t waiting = 0;
  for (const auto& [id, live] : live_) {
    if (live.phase == Phase::kPreempted) return false;
    waiting += live.phase == Phase::kWaiting ? 1 : 0;
  }
  if (waiting < 2) return false;
  peer_.SwapWaiting();
  return true;
}

void Simulation::PlantWrongOutput() {
  if (planted_ || report_.steps < fault_step_ || flights_.size() < 2) return;
  for (SequenceOutput& older : flights_[0].output.sequences) {
    for (SequenceOutput& newer : flights_[1].output.sequences) {
      if (older.id != newer.id || older.token_ids.empty() || newer.token_ids.empty() || planted_) continue;
      std::swap(older.token_ids.front(), newer.token_ids.front());
      planted_ = live_.count(older.id) > 0;
    }
  }
}

}  // namespace

SimulationReport Simulate(const SimulationSetup& setup, uint64_t num_steps, Fault fault, std::ostream* log) {
  SimulationReport report;
  try {
    Simulation simulation(setup, fault, log);
    try {
      simulation.Run(num_steps);
    } catch (const std::exception& e) {
      simulation.report().failure = e.what();
    }
    report = simulation.report();
  } catch (const std::exception& e) {
    report.failure = e.what();
  }
  return report;
}

}  // namespace vllm
