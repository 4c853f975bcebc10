// EngineCore: the engine thread between callers and a scripted runner.
#include "engine/engine_core.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <thread>

#include "tests/engine/sched/scripted_runner.h"

namespace vllm {
namespace {

using Tokens = std::vector<int32_t>;
using std::chrono::seconds;

Tokens Prompt(int length, int first = 0) {
  Tokens ids(static_cast<size_t>(length));
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

CoreRequest MakeRequest(RequestId id, Tokens prompt, int64_t max_tokens) {
  return {.id = id,
          .prompt_token_ids = std::move(prompt),
          .params = std::make_shared<const SamplingParams>(SamplingParams{.max_tokens = max_tokens})};
}

// Collects what the core delivers. Waits are hang guards.
class Collector {
 public:
  void operator()(std::vector<CoreOutput> outputs) {
    const std::lock_guard lock(mutex_);
    for (CoreOutput& output : outputs) {
      if (ends_.count(output.id) > 0) ++outputs_after_end_;
      Tokens& tokens = tokens_[output.id];
      tokens.insert(tokens.end(), output.new_token_ids.begin(), output.new_token_ids.end());
      if (output.finish) ends_[output.id] = std::move(output);
    }
    changed_.notify_all();
  }

  bool WaitForEnd(RequestId id) {
    return Wait([&] { return ends_.count(id) > 0; });
  }
  bool WaitForTokens(RequestId id, size_t count) {
    return Wait([&] { return tokens_[id].size() >= count; });
  }
  CoreOutput End(RequestId id) {
    const std::lock_guard lock(mutex_);
    return ends_.at(id);
  }
  bool ended(RequestId id) {
    const std::lock_guard lock(mutex_);
    return ends_.count(id) > 0;
  }
  Tokens tokens(RequestId id) {
    const std::lock_guard lock(mutex_);
    return tokens_[id];
  }
  int outputs_after_end() {
    const std::lock_guard lock(mutex_);
    return outputs_after_end_;
  }

 private:
  template <class Condition>
  bool Wait(Condition condition) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, seconds(60), condition);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<RequestId, Tokens> tokens_;
  std::map<RequestId, CoreOutput> ends_;
  int outputs_after_end_ = 0;
};

struct Options {
  int64_t num_blocks = 200;
  std::vector<int> windows = {0};
  bool async = true;
  std::optional<int64_t> max_num_queued_reqs = {}, max_num_queued_tokens = {};
  base::TraceSink* trace = nullptr;
};

class Engine {
 public:
  explicit Engine(Options options = {})
      : kv(TestKvConfig(options.num_blocks, options.windows)),
        runner(kv, {.async = options.async}),
        core_options_{.scheduler = {.max_model_len = 1024,
                                    .max_num_batched_tokens = 64,
                                    .max_num_seqs = 8,
                                    .async_scheduling = options.async},
                      .kv_cache = kv,
                      .max_num_queued_reqs = options.max_num_queued_reqs,
                      .max_num_queued_tokens = options.max_num_queued_tokens,
                      .trace = options.trace} {}

  // After the runner's hooks are set.
  EngineCore& Start() {
    core = std::make_unique<EngineCore>(core_options_, &runner,
                                        [this](std::vector<CoreOutput> outputs) { collector(std::move(outputs)); });
    return *core;
  }

  // Until the stats show no block in use; false after a hang guard.
  bool WaitUntilIdle() {
    for (int i = 0; i < 6000; ++i) {
      const EngineStats stats = core->stats();
      if (stats.num_running == 0 && stats.num_waiting == 0 && stats.kv_blocks_used == 0) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }

  KvCacheConfig kv;
  Collector collector;
  ScriptedRunner runner;
  std::unique_ptr<EngineCore> core;

 private:
  EngineCore::Options core_options_;
};

TEST(EngineCore, AnswersARequest) {
  for (const bool async : {false, true}) {
    Engine engine({.async = async});
    engine.runner.Close(true);
    EngineCore& core = engine.Start();
    ASSERT_TRUE(core.Add(MakeRequest(1, Prompt(20), 10)).ok());
    for (int i = 0; i < 6000 && engine.runner.in_flight() < (async ? 2 : 1); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    engine.runner.Close(false);
    ASSERT_TRUE(engine.collector.WaitForEnd(1));
    EXPECT_EQ(engine.collector.tokens(1), ScriptedOutputs(Prompt(20), 10));
    EXPECT_EQ(engine.collector.End(1).finish, FinishReason::kLength);
    EXPECT_TRUE(engine.WaitUntilIdle());
    EXPECT_EQ(engine.runner.max_in_flight(), async ? 2 : 1) << "steps in flight";
    EXPECT_TRUE(core.healthy());
  }
}

TEST(EngineCore, AsyncAndSyncGiveTheSameTokensUnderPressure) {
  std::map<RequestId, Tokens> results[2];
  for (const bool async : {false, true}) {
    Engine engine({.num_blocks = 24, .windows = {0, 32}, .async = async});
    EngineCore& core = engine.Start();
    for (RequestId id = 1; id <= 30; ++id) {
      ASSERT_TRUE(
          core.Add(MakeRequest(id, Prompt(10 + static_cast<int>(id) * 3, 50 * static_cast<int>(id % 4)), 20)).ok());
    }
    for (RequestId id = 1; id <= 30; ++id) {
      ASSERT_TRUE(engine.collector.WaitForEnd(id));
      results[async][id] = engine.collector.tokens(id);
      EXPECT_EQ(results[async][id].size(), 20u);
    }
    EXPECT_GT(core.stats().preemptions, 0u);
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST(EngineCore, TellsTheRunnerOfTheLastEndWithoutAFurtherRequest) {
  Engine engine;
  EngineCore& core = engine.Start();
  ASSERT_TRUE(core.Add(MakeRequest(1, Prompt(20), 3)).ok());
  ASSERT_TRUE(engine.collector.WaitForEnd(1));
  const int64_t steps = static_cast<int64_t>(core.stats().steps);
  for (int i = 0; i < 6000 && engine.runner.num_steps() <= steps; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  engine.core.reset();
  EXPECT_EQ(engine.runner.model.num_sequences(), 0u);
}

TEST(EngineCore, RunsNoStepWhileIdle) {
  Engine engine;
  EngineCore& core = engine.Start();
  ASSERT_TRUE(core.Add(MakeRequest(1, Prompt(20), 3)).ok());
  ASSERT_TRUE(engine.collector.WaitForEnd(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const int64_t steps = engine.runner.num_steps();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(engine.runner.num_steps(), steps);
}

TEST(EngineCore, RefusesWhatCanNeverRun) {
  Engine engine({.num_blocks = 8});
  EngineCore& core = engine.Start();
  for (const int length : {0, 113, 1024}) {
    const base::Status status = core.Add(MakeRequest(1, Prompt(length), 3));
    ASSERT_FALSE(status.ok()) << length;
    EXPECT_EQ(status.error().code, base::ErrorCode::kInvalidArgument);
  }
  ASSERT_TRUE(core.Add(MakeRequest(1, Prompt(100), 1000)).ok());
  ASSERT_TRUE(core.Add(MakeRequest(2, Prompt(5), 3)).ok());
  ASSERT_TRUE(engine.collector.WaitForEnd(1));
  EXPECT_EQ(engine.collector.End(1).error->code, base::ErrorCode::kOutOfMemory);
  ASSERT_TRUE(engine.collector.WaitForEnd(2));
  EXPECT_EQ(engine.collector.tokens(2), ScriptedOutputs(Prompt(5), 3));
}

TEST(EngineCore, RefusesBeyondItsQueueAndTakesAllOrNone) {
  Engine engine({.max_num_queued_reqs = 10});
  engine.runner.Close(true);
  EngineCore& core = engine.Start();
  std::vector<CoreRequest> batch;
  for (RequestId id = 1; id <= 9; ++id) batch.push_back(MakeRequest(id, Prompt(5), 2));
  ASSERT_TRUE(core.Add(std::move(batch)).ok());
  batch.clear();
  batch.push_back(MakeRequest(10, Prompt(5), 2));
  batch.push_back(MakeRequest(11, Prompt(5), 2));
  const base::Status full = core.Add(std::move(batch));
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().code, base::ErrorCode::kOverloaded);
  EXPECT_EQ(core.num_sequences(), 9);
  EXPECT_TRUE(core.Add(MakeRequest(12, Prompt(5), 2)).ok());
  engine.runner.Close(false);
  for (const RequestId id : {1, 9, 12}) EXPECT_TRUE(engine.collector.WaitForEnd(id));
  EXPECT_TRUE(engine.WaitUntilIdle());
  EXPECT_TRUE(core.Add(MakeRequest(13, Prompt(5), 2)).ok()) << "room again";
  EXPECT_TRUE(engine.collector.WaitForEnd(13));
}

TEST(EngineCore, RefusesWhileTooManyPromptTokensWait) {
  Engine engine({.max_num_queued_tokens = 10});
  engine.runner.Close(true);
  EngineCore& core = engine.Start();
  ASSERT_TRUE(core.Add(MakeRequest(1, Prompt(5), 40)).ok());
  ASSERT_TRUE(core.Add(MakeRequest(2, Prompt(9), 40)).ok()) << "the limit was not reached before it";
  const base::Status full = core.Add(MakeRequest(3, Prompt(1), 2));
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().code, base::ErrorCode::kOverloaded);
  EXPECT_NE(full.error().message.find("prefill token backlog"), std::string::npos);
  EXPECT_EQ(core.stats().rejected_tokens, 1u);
  EXPECT_EQ(core.stats().rejected_reqs, 0u);
  core.Abort(2);
  EXPECT_TRUE(core.Add(MakeRequest(4, Prompt(7), 2)).ok()) << "an aborted prompt counts no more";
  EXPECT_FALSE(core.Add(MakeRequest(5, Prompt(1), 2)).ok());
  engine.runner.Close(false);
  for (const RequestId id : {1, 4}) EXPECT_TRUE(engine.collector.WaitForEnd(id));
  EXPECT_TRUE(engine.WaitUntilIdle());
  EXPECT_TRUE(core.Add(MakeRequest(6, Prompt(20), 2)).ok()) << "prompts that have been read count no more";
  EXPECT_TRUE(engine.collector.WaitForEnd(6));
}

TEST(EngineCore, BoundsAddsThatAreAbortedBeforeTheThreadSeesThem) {
  Engine engine({.max_num_queued_reqs = 10});
  engine.runner.Close(true);
  EngineCore& core = engine.Start();
  ASSERT_TRUE(core.Add(MakeRequest(1, Prompt(5), 2)).ok());
  bool refused = false;
  for (RequestId id = 2; id < 100 && !refused; ++id) {
    refused = !core.Add(MakeRequest(id, Prompt(5), 2)).ok();
    core.Abort(id);
  }
  EXPECT_TRUE(refused);
  engine.runner.Close(false);
  EXPECT_TRUE(engine.collector.WaitForEnd(1));
  EXPECT_TRUE(engine.WaitUntilIdle());
}

TEST(EngineCore, AbortEndsWithoutAnOutput) {
  for (const bool async : {false, true}) {
    Engine engine({.async = async});
    EngineCore& core = engine.Start();
    ASSERT_TRUE(core.Add(MakeRequest(1, Prompt(20), 900)).ok());
    ASSERT_TRUE(core.Add(MakeRequest(2, Prompt(30), 50)).ok());
    ASSERT_TRUE(engine.collector.WaitForTokens(1, 5));
    core.Abort(1);
    core.Abort(1);
    core.Abort(77);
    ASSERT_TRUE(engine.collector.WaitForEnd(2));
    EXPECT_TRUE(engine.WaitUntilIdle());
    EXPECT_FALSE(engine.collector.ended(1));
    EXPECT_EQ(engine.collector.tokens(2), ScriptedOutputs(Prompt(30), 50));
    EXPECT_EQ(core.num_sequences(), 0);
  }
}

TEST(EngineCore, AbortWhileAStepRunsDropsThatStepsOutput) {
  Engine engine;
  engine.runner.Close(true);
  EngineCore& core = engine.Start();
  ASSERT_TRUE(core.Add(MakeRequest(1, Prompt(20), 10)).ok());
  for (int i = 0; i < 6000 && engine.runner.in_flight() < 2; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  ASSERT_EQ(engine.runner.in_flight(), 2);
  core.Abort(1);
  engine.runner.Close(false);
  EXPECT_TRUE(engine.WaitUntilIdle());
  EXPECT_TRUE(engine.collector.tokens(1).empty());
}

TEST(EngineCore, AnAbortGivesItsBlocksBackWhileTheStepStillRuns) {
  Engine engine;
  engine.runner.Close(true);
  EngineCore& core = engine.Start();
  ASSERT_TRUE(core.Add(MakeRequest(1, Prompt(200), 10)).ok());
  const auto eventually = [&](auto holds) {
    for (int i = 0; i < 6000 && !holds(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return holds();
  };
  ASSERT_TRUE(eventually([&] { return engine.runner.in_flight() == 2; }));
  core.Abort(1);
  EXPECT_TRUE(eventually([&] {
    const EngineStats stats = core.stats();
    return stats.num_running == 0 && stats.kv_blocks_used == 0;
  }));
  EXPECT_EQ(engine.runner.in_flight(), 2);  // and nobody has let them go
  ASSERT_TRUE(core.Add(MakeRequest(2, Prompt(30, 500), 4)).ok());
  engine.runner.Close(false);
  ASSERT_TRUE(engine.collector.WaitForEnd(2));
  EXPECT_EQ(engine.collector.tokens(2).size(), 4u);
  EXPECT_TRUE(engine.collector.tokens(1).empty());
}

TEST(EngineCore, AnErrorOfOneSequenceHarmsNobody) {
  Engine engine;
  engine.runner.model.error = [](RequestId id, int64_t position) -> std::optional<base::Error> {
    if (id == 1 && position > 22) return base::Error{base::ErrorCode::kInternal, "broken logits"};
    return std::nullopt;
  };
  EngineCore& core = engine.Start();
  ASSERT_TRUE(core.Add(MakeRequest(1, Prompt(20), 10)).ok());
  ASSERT_TRUE(core.Add(MakeRequest(2, Prompt(30), 10)).ok());
  ASSERT_TRUE(engine.collector.WaitForEnd(1));
  ASSERT_TRUE(engine.collector.WaitForEnd(2));
  EXPECT_EQ(engine.collector.End(1).finish, FinishReason::kError);
  EXPECT_EQ(engine.collector.End(1).error->message, "broken logits");
  EXPECT_EQ(engine.collector.End(2).finish, FinishReason::kLength);
  EXPECT_TRUE(core.healthy());
}

TEST(EngineCore, AFailedStepKillsTheEngineAndEndsEveryRequest) {
  for (const bool async : {false, true}) {
    Engine engine({.async = async});
    engine.runner.before_step = [](const SchedulerOutput& step) {
      if (step.step == 5) throw std::runtime_error("device lost");
    };
    EngineCore& core = engine.Start();
    std::vector<CoreRequest> requests;
    for (RequestId id = 1; id <= 12; ++id) requests.push_back(MakeRequest(id, Prompt(20), 100));
    ASSERT_TRUE(core.Add(std::move(requests)).ok());
    for (RequestId id = 1; id <= 12; ++id) {
      ASSERT_TRUE(engine.collector.WaitForEnd(id));
      EXPECT_EQ(engine.collector.End(id).finish, FinishReason::kError);
      EXPECT_EQ(engine.collector.End(id).error->code, base::ErrorCode::kInternal);
      EXPECT_NE(engine.collector.End(id).error->message.find("device lost"), std::string::npos);
    }
    EXPECT_FALSE(core.healthy());
    const base::Status later = core.Add(MakeRequest(99, Prompt(20), 100));
    ASSERT_FALSE(later.ok());
    EXPECT_EQ(later.error().code, base::ErrorCode::kInternal);
    EXPECT_FALSE(core.ResetPrefixCache());
    core.Abort(1);
    EXPECT_TRUE(core.Drain(0));
    EXPECT_EQ(engine.collector.outputs_after_end(), 0);
  }
}

TEST(EngineCore, ABrokenRunnerContractKillsTheEngineNotTheProcess) {
  class WrongRunner : public ModelRunner {
   public:
    std::future<ModelRunnerOutput> ExecuteModel(SchedulerOutput) override {
      std::promise<ModelRunnerOutput> promise;
      promise.set_value({});  // an output for nobody
      return promise.get_future();
    }
  };
  WrongRunner runner;
  Collector collector;
  EngineCore core({.scheduler = {.max_model_len = 64}, .kv_cache = TestKvConfig(10)}, &runner,
                  [&](std::vector<CoreOutput> outputs) { collector(std::move(outputs)); });
  ASSERT_TRUE(core.Add(MakeRequest(1, Prompt(20), 4)).ok());
  ASSERT_TRUE(collector.WaitForEnd(1));
  EXPECT_EQ(collector.End(1).error->code, base::ErrorCode::kInternal);
  EXPECT_FALSE(core.healthy());
}

TEST(EngineCore, ResetsThePrefixCacheOnlyWhenIdle) {
  Engine engine;
  EngineCore& core = engine.Start();
  ASSERT_TRUE(core.Add(MakeRequest(1, Prompt(40), 900)).ok());
  ASSERT_TRUE(engine.collector.WaitForTokens(1, 2));
  EXPECT_FALSE(core.ResetPrefixCache());
  core.Abort(1);
  ASSERT_TRUE(engine.WaitUntilIdle());
  EXPECT_TRUE(core.ResetPrefixCache());
  ASSERT_TRUE(core.Add(MakeRequest(2, Prompt(40), 2)).ok());
  ASSERT_TRUE(engine.collector.WaitForEnd(2));
  EXPECT_EQ(core.stats().prefix_cache_hits, 0u);
  ASSERT_TRUE(core.Add(MakeRequest(3, Prompt(40), 2)).ok());
  ASSERT_TRUE(engine.collector.WaitForEnd(3));
  EXPECT_EQ(core.stats().prefix_cache_hits, 32u);
}

TEST(EngineCore, DrainWaitsForWhatRunsAndRefusesTheRest) {
  Engine engine;
  EngineCore& core = engine.Start();
  ASSERT_TRUE(core.Add(MakeRequest(1, Prompt(40), 100)).ok());
  EXPECT_TRUE(core.Drain(60'000));
  EXPECT_TRUE(engine.collector.ended(1)) << "delivered before Drain returned";
  EXPECT_EQ(engine.collector.End(1).finish, FinishReason::kLength);
  const base::Status late = core.Add(MakeRequest(2, Prompt(40), 100));
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().code, base::ErrorCode::kOverloaded);
}

TEST(EngineCore, DrainAbortsWhatIsLeftAndSaysSo) {
  Engine engine;
  engine.runner.before_step = [](const SchedulerOutput&) { std::this_thread::sleep_for(std::chrono::milliseconds(2)); };
  EngineCore& core = engine.Start();
  ASSERT_TRUE(core.Add(MakeRequest(1, Prompt(40), 900)).ok());
  EXPECT_FALSE(core.Drain(20));
  ASSERT_TRUE(engine.collector.ended(1));
  EXPECT_EQ(engine.collector.End(1).finish, FinishReason::kAbort);
  EXPECT_TRUE(engine.WaitUntilIdle());
}

TEST(EngineCore, StopsWithStepsInFlight) {
  Engine engine;
  EngineCore& core = engine.Start();
  for (RequestId id = 1; id <= 20; ++id) ASSERT_TRUE(core.Add(MakeRequest(id, Prompt(40), 500)).ok());
  ASSERT_TRUE(engine.collector.WaitForTokens(1, 3));
  engine.core.reset();
  EXPECT_EQ(engine.runner.in_flight(), 0);
}

TEST(EngineCore, ServesManyThreadsThatAddAndAbort) {
  Engine engine({.num_blocks = 40, .windows = {0, 32}});
  EngineCore& core = engine.Start();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const RequestId id = static_cast<RequestId>(t * 1000 + i + 1);
        ASSERT_TRUE(core.Add(MakeRequest(id, Prompt(10 + i % 37, 100 * (i % 5)), 5 + i % 20)).ok());
        if (i % 3 == 0) core.Abort(id);
        if (i % 10 == 0) core.stats();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(core.Drain(60'000));
  EXPECT_TRUE(engine.WaitUntilIdle());
  for (int t = 0; t < 4; ++t) {
    for (int i = 0; i < 50; ++i) {
      if (i % 3 == 0) continue;
      const RequestId id = static_cast<RequestId>(t * 1000 + i + 1);
      EXPECT_EQ(engine.collector.tokens(id), ScriptedOutputs(Prompt(10 + i % 37, 100 * (i % 5)), 5 + i % 20));
    }
  }
}

TEST(EngineCore, TracesStepsAndTheirPhases) {
  const std::string path = testing::TempDir() + "engine_trace.json";
  {
    base::TraceSink trace(path);
    Engine engine({.trace = &trace});
    EngineCore& core = engine.Start();
    ASSERT_TRUE(core.Add(MakeRequest(1, Prompt(20), 3)).ok());
    ASSERT_TRUE(engine.collector.WaitForEnd(1));
    engine.core.reset();
  }
  std::ifstream file(path);
  const nlohmann::json events = nlohmann::json::parse(file);
  std::map<std::string, int> counts;
  int64_t tokens = 0, attended = 0;
  for (const nlohmann::json& event : events) {
    const std::string name = event.value("name", "");
    ++counts[name];
    if (name != "update") continue;
    tokens += event["args"]["tokens"].get<int64_t>();
    attended += event["args"]["attended"].get<int64_t>();
    EXPECT_TRUE(event["args"].contains("elapsed_us"));
  }
  EXPECT_EQ(tokens, 22) << "the prompt and two of the three outputs";
  EXPECT_EQ(attended, 22 * 23 / 2);
  EXPECT_GE(counts["schedule"], 3);
  EXPECT_GE(counts["wait"], 3);
  EXPECT_GE(counts["update"], 3);
  EXPECT_EQ(counts["deliver"], 3);
}

}  // namespace
}  // namespace vllm
