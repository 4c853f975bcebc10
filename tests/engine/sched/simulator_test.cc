// A seeded simulation of a busy server: random arrivals, lengths, shared prefixes, priorities, aborts and errors, in
// pools that are too small. After every step all invariants hold; every sequence gets exactly the model's tokens;
// nobody starves.
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <random>

#include "engine/sched/scheduler.h"
#include "tests/engine/sched/scripted_runner.h"

namespace vllm {
namespace {

struct World {
  const char* name;
  std::vector<int> windows;
  int64_t num_blocks;
  bool async;
  SchedulingPolicy policy;
  bool caching;
  bool reserve;
  int64_t watermark_percent;
  int num_drafts;
};

struct Live {
  std::vector<int32_t> prompt = {};
  std::vector<int32_t> tokens = {};
  int64_t max_tokens = 0;
  uint64_t since = 0;
  bool ended = false, failed = false;
};

class Simulation {
 public:
  Simulation(const World& world, unsigned seed)
      : random_(seed),
        kv_(TestKvConfig(world.num_blocks, world.windows)),
        scheduler_({.max_model_len = 256,
                    .max_num_batched_tokens = 48,
                    .max_num_seqs = 7,
                    .long_prefill_token_threshold = seed % 2 == 0 ? 20 : 0,
                    .async_scheduling = world.async,
                    .reserve_full_prompt = world.reserve,
                    .watermark = static_cast<double>(world.watermark_percent) / 100,
                    .enable_prefix_caching = world.caching,
                    .policy = world.policy,
                    .num_spec_tokens = world.num_drafts},
                   kv_),
        model_(kv_, {.num_drafts = world.num_drafts, .async = world.async}) {
    model_.error = [](RequestId id, int64_t position) -> std::optional<base::Error> {
      if (id % 41 == 0 && position % 7 == 0) return base::Error{base::ErrorCode::kInternal, "broken"};
      return std::nullopt;
    };
  }

  void Run(int num_steps) {
    for (int i = 0; i < num_steps; ++i) {
      if (random_() % 3 == 0 && live_.size() < 24) Arrive();
      if (random_() % 60 == 0 && !live_.empty()) AbortOne();
      Step();
      if (testing::Test::HasFatalFailure()) return;
    }
    // Without new arrivals everything ends.
    for (int i = 0; scheduler_.has_requests() || !flights_.empty(); ++i) {
      ASSERT_LT(i, 20000) << live_.size() << " sequences are left";
      Step();
      if (testing::Test::HasFatalFailure()) return;
    }
    model_.RunStep(scheduler_.Schedule());
    EXPECT_EQ(model_.num_sequences(), 0u);
    EXPECT_EQ(scheduler_.kv().num_used_blocks(), 0);
    EXPECT_TRUE(live_.empty());
    EXPECT_TRUE(scheduler_.ResetPrefixCache());
  }

  uint64_t num_ended() const { return num_ended_; }
  uint64_t num_failed() const { return num_failed_; }
  EngineStats stats() const { return scheduler_.stats(); }

 private:
  void Arrive() {
    Live live{.max_tokens = static_cast<int64_t>(1 + random_() % 60), .since = step_};
    const int family = static_cast<int>(random_() % 4), shared = static_cast<int>(random_() % 90);
    const int length = static_cast<int>(1 + random_() % (random_() % 8 == 0 ? 250 : 110));
    for (int i = 0; i < length; ++i) {
      live.prompt.push_back(i < shared ? family * 100 + i : static_cast<int32_t>(random_() % kScriptedVocab));
    }
    if (!scheduler_.CheckAdmissible(length).ok()) return;
    const RequestId id = ++last_id_;
    scheduler_.Add({.id = id,
                    .prompt_token_ids = live.prompt,
                    .params = std::make_shared<const SamplingParams>(SamplingParams{.max_tokens = live.max_tokens}),
                    .cache_salt = random_() % 6 == 0 ? "salt" : "",
                    .priority = static_cast<int>(random_() % 3),
                    .arrival_us = static_cast<int64_t>(id)});
    live_[id] = std::move(live);
  }

  void AbortOne() {
    auto victim = live_.begin();
    std::advance(victim, random_() % live_.size());
    EXPECT_TRUE(scheduler_.Abort(victim->first));
    live_.erase(victim);
  }

  void Step() {
    ++step_;
    SchedulerOutput step = scheduler_.Schedule();
    Take(scheduler_.TakeEnded());
    scheduler_.CheckIntegrity();
    const size_t depth = static_cast<size_t>(scheduler_.config().max_steps_in_flight());
    const bool started = step.total_tokens > 0;
    ASSERT_LE(step.total_tokens, 48);
    if (started) {
      outputs_.push_back(model_.RunStep(step));
      flights_.push_back(std::move(step));
    } else if (!step.finished.empty()) {
      model_.RunStep(step);
    }
    if (flights_.empty() || (started && flights_.size() < depth)) return;
    Take(scheduler_.UpdateFromOutput(flights_.front(), std::move(outputs_.front())));
    flights_.pop_front();
    outputs_.pop_front();
    scheduler_.CheckIntegrity();
    for (const auto& [id, live] : live_) ASSERT_LT(step_ - live.since, 4000u) << "sequence " << id << " starves";
  }

  void Take(std::vector<CoreOutput> outputs) {
    for (const CoreOutput& output : outputs) {
      const auto found = live_.find(output.id);
      ASSERT_NE(found, live_.end()) << "output for a sequence that has ended";
      Live& live = found->second;
      live.tokens.insert(live.tokens.end(), output.new_token_ids.begin(), output.new_token_ids.end());
      if (!output.finish) continue;
      ++num_ended_;
      const int64_t room = 256 - static_cast<int64_t>(live.prompt.size());
      const int64_t whole = std::min(live.max_tokens, room);
      if (output.finish == FinishReason::kError) {
        ++num_failed_;
        ASSERT_TRUE(output.error.has_value());
        ASSERT_EQ(live.tokens, ScriptedOutputs(live.prompt, static_cast<int64_t>(live.tokens.size())));
      } else {
        ASSERT_EQ(live.tokens, ScriptedOutputs(live.prompt, whole));
      }
      live_.erase(found);
    }
  }

  std::mt19937 random_;
  const KvCacheConfig kv_;
  Scheduler scheduler_;
  ScriptedModel model_;
  std::map<RequestId, Live> live_;
  std::deque<SchedulerOutput> flights_;
  std::deque<ModelRunnerOutput> outputs_;
  RequestId last_id_ = 0;
  uint64_t step_ = 0, num_ended_ = 0, num_failed_ = 0;
};

class SchedulerSimulation : public testing::TestWithParam<World> {};

TEST_P(SchedulerSimulation, KeepsEveryInvariantAndStarvesNobody) {
  Simulation simulation(GetParam(), 11);
  simulation.Run(2500);
  EXPECT_GT(simulation.num_ended(), 50u);
  EXPECT_GT(simulation.num_failed(), 0u);
  EXPECT_GT(simulation.stats().preemptions, 0u);
  EXPECT_EQ(simulation.stats().prefix_cache_hits > 0, GetParam().caching);
}

constexpr SchedulingPolicy kFcfs = SchedulingPolicy::kFcfs, kPriority = SchedulingPolicy::kPriority;

INSTANTIATE_TEST_SUITE_P(Worlds, SchedulerSimulation,
                         testing::Values(World{"Sync", {0}, 18, false, kFcfs, true, true, 0, 0},
                                         World{"Async", {0}, 18, true, kFcfs, true, true, 5, 0},
                                         World{"AsyncWithoutReserve", {0}, 15, true, kFcfs, true, false, 0, 0},
                                         World{"AsyncWithoutCaching", {0}, 18, true, kFcfs, false, true, 0, 0},
                                         World{"AsyncPriority", {0}, 18, true, kPriority, true, true, 0, 0},
                                         World{"AsyncHybrid", {0, 32, 64}, 40, true, kFcfs, true, true, 0, 0},
                                         World{"SyncHybridPriority", {32, 0}, 26, false, kPriority, true, false, 0, 0},
                                         World{"AsyncWindow", {24}, 14, true, kFcfs, true, true, 0, 0},
                                         World{"SyncDrafts", {0}, 18, false, kFcfs, true, true, 0, 3},
                                         World{"AsyncDraftsHybrid", {0, 32}, 28, true, kFcfs, true, true, 0, 3}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace vllm
