// Scheduler: vLLM V1's rules, one a test. The model is scripted: its tokens depend on the whole prefix, and it checks
// every block that it reads.
#include "engine/sched/scheduler.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <numeric>

#include "tests/engine/sched/scripted_runner.h"

namespace vllm {
namespace {

using Tokens = std::vector<int32_t>;

Tokens Prompt(int length, int first = 0) {
  Tokens ids(static_cast<size_t>(length));
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

// A scheduler and a scripted model, stepped by hand or run to the end, with as many steps in flight as the mode has.
class Bench {
 public:
  struct Options {
    int64_t num_blocks = 100;
    std::vector<int> windows = {0};
    SchedulerConfig config = {
        .max_model_len = 1024, .max_num_batched_tokens = 64, .max_num_seqs = 8, .async_scheduling = false};
    int num_drafts = 0;
  };

  explicit Bench(Options options, Scheduler::Clock clock = Scheduler::SteadyClock)
      : scheduler(Adjusted(options), TestKvConfig(options.num_blocks, options.windows), clock),
        model(TestKvConfig(options.num_blocks, options.windows),
              {.num_drafts = options.num_drafts, .async = options.config.async_scheduling}) {}

  static SchedulerConfig Adjusted(const Options& options) {
    SchedulerConfig config = options.config;
    config.num_spec_tokens = options.num_drafts;
    return config;
  }

  RequestId Add(Tokens prompt, SamplingParams params = {}, int priority = 0, std::string salt = {},
                int64_t deadline_us = 0) {
    const RequestId id = ++last_id_;
    prompts[id] = prompt;
    scheduler.Add({.id = id,
                   .prompt_token_ids = std::move(prompt),
                   .params = std::make_shared<const SamplingParams>(std::move(params)),
                   .cache_salt = std::move(salt),
                   .priority = priority,
                   .arrival_us = static_cast<int64_t>(id),
                   .deadline_us = deadline_us});
    return id;
  }
  RequestId Add(int prompt_length, int64_t max_tokens = 4) {
    return Add(Prompt(prompt_length, 1000 * static_cast<int>(last_id_)), {.max_tokens = max_tokens});
  }

  SchedulerOutput Plan() {
    SchedulerOutput step = scheduler.Schedule();
    Take(scheduler.TakeEnded());
    scheduler.CheckIntegrity();
    return step;
  }
  void Finish(const SchedulerOutput& step, int64_t elapsed_us = 0) {
    ModelRunnerOutput output = model.RunStep(step);
    output.elapsed_us = elapsed_us;
    Take(scheduler.UpdateFromOutput(step, std::move(output)));
    scheduler.CheckIntegrity();
  }
  SchedulerOutput Step() {
    SchedulerOutput step = Plan();
    Finish(step);
    return step;
  }

  // Steps as the engine core does until all requests have ended; false if that takes more than `max_steps`.
  bool Run(int max_steps = 10000) {
    std::deque<SchedulerOutput> flights;
    std::deque<ModelRunnerOutput> outputs;
    const size_t depth = static_cast<size_t>(scheduler.config().max_steps_in_flight());
    for (int i = 0; i < max_steps; ++i) {
      if (!scheduler.has_requests() && flights.empty()) return true;
      bool started = false;
      if (scheduler.has_requests() && flights.size() < depth) {
        SchedulerOutput step = Plan();
        started = step.total_tokens > 0;
        // The model runs at once; its output is only taken in when the step is over.
        if (started) {
          outputs.push_back(model.RunStep(step));
          flights.push_back(std::move(step));
        }
      }
      if (started && flights.size() < depth) continue;
      if (flights.empty()) continue;
      Take(scheduler.UpdateFromOutput(flights.front(), std::move(outputs.front())));
      flights.pop_front();
      outputs.pop_front();
      scheduler.CheckIntegrity();
    }
    return false;
  }

  Tokens Expected(RequestId id, int64_t count) { return ScriptedOutputs(prompts.at(id), count); }

  Scheduler scheduler;
  ScriptedModel model;
  std::map<RequestId, Tokens> prompts;
  std::map<RequestId, Tokens> tokens;
  std::map<RequestId, CoreOutput> ends;
  std::map<RequestId, std::vector<CoreOutput>> outputs;

 private:
  void Take(std::vector<CoreOutput> news) {
    for (CoreOutput& output : news) {
      EXPECT_EQ(ends.count(output.id), 0u) << "output after the end";
      Tokens& all = tokens[output.id];
      all.insert(all.end(), output.new_token_ids.begin(), output.new_token_ids.end());
      if (output.finish) ends[output.id] = output;
      outputs[output.id].push_back(std::move(output));
    }
  }

  RequestId last_id_ = 0;
};

std::vector<std::pair<RequestId, int>> Counts(const SchedulerOutput& step) {
  std::vector<std::pair<RequestId, int>> counts;
  for (const ScheduledTokens& scheduled : step.scheduled) counts.emplace_back(scheduled.id, scheduled.num_tokens);
  return counts;
}
using C = std::vector<std::pair<RequestId, int>>;

// ---- budget and order ----

TEST(Scheduler, SharesOneTokenBudgetInOrderOfArrival) {
  Bench bench({});
  bench.Add(30), bench.Add(30), bench.Add(30);
  EXPECT_EQ(Counts(bench.Step()), (C{{1, 30}, {2, 30}, {3, 4}}));
}

TEST(Scheduler, ServesRunningSequencesBeforeWaitingOnes) {
  Bench bench({});
  bench.Add(100);
  EXPECT_EQ(Counts(bench.Step()), (C{{1, 64}}));
  bench.Add(100);
  EXPECT_EQ(Counts(bench.Step()), (C{{1, 36}, {2, 28}}));
  EXPECT_EQ(Counts(bench.Step()), (C{{1, 1}, {2, 63}}));
}

TEST(Scheduler, ChunksALongPromptAndSamplesOnlyAtItsEnd) {
  Bench bench({});
  bench.Add(130, 1);
  const SchedulerOutput first = bench.Step(), second = bench.Step(), third = bench.Step();
  EXPECT_FALSE(first.scheduled[0].samples);
  EXPECT_FALSE(second.scheduled[0].samples);
  EXPECT_TRUE(third.scheduled[0].samples);
  EXPECT_EQ(third.total_tokens, 2);
  EXPECT_EQ(bench.scheduler.stats().chunked_prefills, 2u);
  EXPECT_EQ(bench.tokens[1], bench.Expected(1, 1));
}

TEST(Scheduler, WithoutChunkingWaitsForTheWholePromptToFit) {
  Bench::Options options;
  options.config.enable_chunked_prefill = false;
  options.config.max_model_len = 64;
  Bench bench(options);
  bench.Add(40), bench.Add(40), bench.Add(10);
  EXPECT_EQ(Counts(bench.Step()), (C{{1, 40}})) << "strict order: the third does not overtake";
  EXPECT_EQ(Counts(bench.Step()), (C{{1, 1}, {2, 40}, {3, 10}}));
}

TEST(Scheduler, RunsAtMostMaxNumSeqs) {
  Bench::Options options;
  options.config.max_num_seqs = 2;
  Bench bench(options);
  for (int i = 0; i < 4; ++i) bench.Add(5, 2);
  EXPECT_EQ(bench.Step().scheduled.size(), 2u);
  EXPECT_EQ(bench.scheduler.stats().num_running, 2);
  EXPECT_EQ(bench.scheduler.stats().num_waiting, 2);
  EXPECT_TRUE(bench.Run());
  EXPECT_EQ(bench.ends.size(), 4u);
}

TEST(Scheduler, LimitsLongPromptsOnlyWhileOthersAreThere) {
  Bench::Options options;
  options.config.long_prefill_token_threshold = 10;
  Bench bench(options);
  bench.Add(100);
  EXPECT_EQ(Counts(bench.Step()), (C{{1, 64}}));
  bench.Add(100);
  EXPECT_EQ(Counts(bench.Step()), (C{{1, 10}, {2, 10}}));
}

TEST(Scheduler, AnAdaptiveThresholdIsAtLeastAFairShareOfTheBudget) {
  Bench::Options options;
  options.config.long_prefill_token_threshold = 10;
  options.config.long_prefill_token_threshold_adaptive = true;
  Bench bench(options);
  bench.Add(100);
  bench.Add(100);
  EXPECT_EQ(Counts(bench.Step()), (C{{1, 32}, {2, 32}}));
}

// ---- a target for the time of a step ----

TEST(Scheduler, PromptsLeaveDecodingSequencesTheirShareOfAStep) {
  Bench::Options options;
  options.config.max_num_batched_tokens = 512;
  options.config.itl_target_us = 100'000;
  Bench bench(options);
  bench.Add(200, 50);  // stays in front of the queue while it is read
  bench.Add(5, 50);
  EXPECT_EQ(Counts(bench.Step()), (C{{1, 200}, {2, 5}}));
  bench.Add(400, 50);
  EXPECT_EQ(Counts(bench.Step()), (C{{1, 1}, {2, 1}, {3, StepBudget::kFirst}}));
  EXPECT_EQ(Counts(bench.Step()), (C{{1, 1}, {2, 1}, {3, StepBudget::kFirst}}));
  ASSERT_TRUE(bench.Run());
  for (const RequestId id : {1, 2, 3}) EXPECT_EQ(bench.tokens[id], bench.Expected(id, 50));
}

TEST(Scheduler, MeasuredStepsChangeWhatPromptsGet) {
  Bench::Options options;
  options.config.max_num_batched_tokens = 512;
  options.config.itl_target_us = 100'000;
  Bench bench(options);
  bench.Add(5, 50);
  bench.Step();
  bench.Add(900, 5);
  const SchedulerOutput step = bench.Plan();
  EXPECT_EQ(Counts(step), (C{{1, 1}, {2, StepBudget::kFirst}}));
  bench.Finish(step, 80'000);
  EXPECT_EQ(Counts(bench.Step()), (C{{1, 1}, {2, 80}}));
}

TEST(Scheduler, ALonePromptIsReadInLargePieces) {
  Bench::Options options;
  options.config.max_num_batched_tokens = 2048;
  options.config.itl_target_us = 1'000;
  Bench bench(options);
  bench.Add(1000);
  const SchedulerOutput step = bench.Plan();
  bench.Finish(step, 10'000'000);
  EXPECT_EQ(step.total_tokens, StepBudget::kLeastAlone);
  EXPECT_EQ(bench.Step().total_tokens, 1000 - StepBudget::kLeastAlone);
}

// ---- deadlines ----

int64_t test_clock_us = 0;

struct Timed : Bench {
  explicit Timed(Options options) : Bench(options, [] { return test_clock_us; }) { test_clock_us = 0; }
};

TEST(Scheduler, AnOverdueSequenceEndsWithWhatItHas) {
  for (const bool async : {false, true}) {
    Bench::Options options;
    options.config.async_scheduling = async;
    Timed bench(options);
    const RequestId timed = bench.Add(Prompt(5), {.max_tokens = 50}, 0, {}, 1'000'000);
    const RequestId other = bench.Add(Prompt(6), {.max_tokens = 3});
    SchedulerOutput step = bench.Step();
    step = bench.Step();
    const SchedulerOutput in_flight = bench.Plan();
    test_clock_us = 1'000'000;
    const SchedulerOutput next = bench.Plan();
    EXPECT_EQ(bench.ends[timed].finish, FinishReason::kAbort);
    EXPECT_EQ(bench.ends[timed].stop_reason, StopReason("timeout"));
    EXPECT_EQ(next.finished, (std::vector<RequestId>{timed}));
    bench.Finish(in_flight);
    bench.Finish(next);
    ASSERT_TRUE(bench.Run());
    EXPECT_EQ(bench.tokens[timed].size(), 2u);
    EXPECT_EQ(bench.tokens[other], bench.Expected(other, 3));
    EXPECT_EQ(bench.scheduler.kv().num_used_blocks(), 0);
  }
}

TEST(Scheduler, OverdueBeforeTheFirstTokenIsAnError) {
  Bench::Options options;
  options.config.max_num_seqs = 1;
  Timed bench(options);
  bench.Add(Prompt(5), {.max_tokens = 9});
  const RequestId waiting = bench.Add(Prompt(6), {.max_tokens = 9}, 0, {}, 250'000);
  bench.Step();
  test_clock_us = 249'999;
  bench.Step();
  EXPECT_FALSE(bench.ends.contains(waiting));
  test_clock_us = 250'000;
  bench.Step();
  EXPECT_EQ(bench.ends[waiting].finish, FinishReason::kError);
  ASSERT_TRUE(bench.ends[waiting].error.has_value());
  EXPECT_EQ(bench.ends[waiting].error->code, base::ErrorCode::kDeadlineExceeded);
  EXPECT_TRUE(bench.Run());
}

TEST(Scheduler, ASequenceThatEndsInTimeIsNotTouchedByItsDeadline) {
  Timed bench({});
  const RequestId id = bench.Add(Prompt(5), {.max_tokens = 2}, 0, {}, 1'000);
  ASSERT_TRUE(bench.Run());
  test_clock_us = 2'000;
  bench.Add(4, 1);
  ASSERT_TRUE(bench.Run());
  EXPECT_EQ(bench.ends[id].finish, FinishReason::kLength);
}

TEST(Scheduler, PriorityAdmitsTheMostImportantFirst) {
  Bench::Options options;
  options.config.policy = SchedulingPolicy::kPriority;
  options.config.max_num_seqs = 1;
  Bench bench(options);
  const RequestId low = bench.Add(Prompt(5), {.max_tokens = 1}, 5);
  const RequestId high = bench.Add(Prompt(6), {.max_tokens = 1}, -1);
  const RequestId same = bench.Add(Prompt(7), {.max_tokens = 1}, -1);
  EXPECT_EQ(bench.Step().scheduled[0].id, high);
  EXPECT_EQ(bench.Step().scheduled[0].id, same);
  EXPECT_EQ(bench.Step().scheduled[0].id, low);
}

// ---- what the runner is told ----

TEST(Scheduler, TellsTheRunnerANewSequenceOnceAndThenOnlyWhatChanged) {
  Bench bench({});
  bench.Add(16, 3);
  const SchedulerOutput first = bench.Step();
  ASSERT_EQ(first.new_requests.size(), 1u);
  EXPECT_EQ(first.new_requests[0].token_ids, bench.prompts[1]);
  EXPECT_EQ(first.new_requests[0].block_ids, (BlockIds{{1}}));
  EXPECT_FALSE(first.new_requests[0].resumed);
  const SchedulerOutput second = bench.Step();
  EXPECT_TRUE(second.new_requests.empty());
  ASSERT_EQ(second.cached_requests.size(), 1u);
  EXPECT_EQ(second.cached_requests[0].num_computed_tokens, 16);
  EXPECT_EQ(second.cached_requests[0].new_block_ids, (BlockIds{{2}}));
}

TEST(Scheduler, TellsTheRunnerOnceWhichSequencesEnded) {
  Bench bench({});
  bench.Add(5, 1);
  bench.Add(5, 5);
  EXPECT_TRUE(bench.Step().finished.empty());
  EXPECT_EQ(bench.Step().finished, (std::vector<RequestId>{1}));
  EXPECT_TRUE(bench.Step().finished.empty());
}

TEST(Scheduler, DoesNotMentionASequenceThatTheRunnerNeverSaw) {
  Bench bench({});
  bench.Add(5, 1);
  bench.scheduler.Abort(1);
  EXPECT_FALSE(bench.scheduler.has_finished());
  EXPECT_TRUE(bench.Plan().finished.empty());
}

TEST(Scheduler, ListsBlocksThatLeftTheWindow) {
  Bench::Options options;
  options.windows = {0, 32};
  Bench bench(options);
  bench.Add(60, 20);
  bench.Step();
  const SchedulerOutput step = bench.Step();
  EXPECT_EQ(step.cached_requests[0].num_null_blocks, (std::vector<int32_t>{0, 1}));
  EXPECT_TRUE(bench.Run());
  EXPECT_EQ(bench.tokens[1], bench.Expected(1, 20));
}

// ---- stopping ----

struct StopCase {
  SamplingParams params;
  int64_t count;
  FinishReason reason;
  StopReason detail;
};

void ExpectStop(const StopCase& stop) {
  Bench bench({});
  bench.Add(Prompt(10), stop.params);
  ASSERT_TRUE(bench.Run());
  EXPECT_EQ(bench.tokens[1], bench.Expected(1, stop.count));
  EXPECT_EQ(bench.ends.at(1).finish, stop.reason);
  EXPECT_EQ(bench.ends.at(1).stop_reason, stop.detail);
}

TEST(CheckStop, EndsAtMaxTokens) { ExpectStop({{.max_tokens = 5}, 5, FinishReason::kLength, {}}); }

TEST(CheckStop, EndsAtEosWithoutAReason) {
  SamplingParams params{.max_tokens = 50};
  params.eos_token_id = ScriptedOutputs(Prompt(10), 3).back();
  ExpectStop({params, 3, FinishReason::kStop, {}});
}

TEST(CheckStop, EndsAtAStopTokenAndNamesIt) {
  const int32_t stop = ScriptedOutputs(Prompt(10), 4).back();
  ExpectStop({{.stop_token_ids = {998, stop, 3}, .max_tokens = 50}, 4, FinishReason::kStop, stop});
}

TEST(CheckStop, PrefersEosToAStopTokenAndBothToLength) {
  const int32_t stop = ScriptedOutputs(Prompt(10), 4).back();
  SamplingParams params{.stop_token_ids = {stop}, .max_tokens = 4};
  ExpectStop({params, 4, FinishReason::kStop, stop});
  params.eos_token_id = stop;
  ExpectStop({params, 4, FinishReason::kStop, {}});
}

TEST(CheckStop, EndsAtTheModelsLength) {
  Bench::Options options;
  options.config.max_model_len = 20;
  Bench bench(options);
  bench.Add(Prompt(15), {.max_tokens = std::nullopt});
  bench.Add(Prompt(15, 50), {.max_tokens = INT64_MAX});
  ASSERT_TRUE(bench.Run());
  for (const RequestId id : {1, 2}) {
    EXPECT_EQ(bench.tokens[id], bench.Expected(id, 5));
    EXPECT_EQ(bench.ends.at(id).finish, FinishReason::kLength);
  }
}

// ---- prefix cache ----

TEST(Scheduler, ReportsTheHitWithTheFirstOutputOnly) {
  Bench bench({});
  bench.Add(Prompt(40), {.max_tokens = 3});
  ASSERT_TRUE(bench.Run());
  bench.Add(Prompt(40), {.max_tokens = 3});
  ASSERT_TRUE(bench.Run());
  EXPECT_EQ(bench.outputs[1][0].cached_tokens, 0);
  EXPECT_EQ(bench.outputs[2][0].cached_tokens, 32);
  EXPECT_EQ(bench.outputs[2][1].cached_tokens, -1);
  EXPECT_EQ(bench.scheduler.stats().prefix_cache_queries, 80u);
  EXPECT_EQ(bench.scheduler.stats().prefix_cache_hits, 32u);
  EXPECT_EQ(bench.tokens[1], bench.tokens[2]);
}

TEST(Scheduler, HitsBlocksOfTheSameStep) {
  Bench bench({});
  bench.Add(Prompt(40), {.max_tokens = 1});
  bench.Add(Prompt(40), {.max_tokens = 1});
  EXPECT_EQ(Counts(bench.Step()), (C{{1, 40}, {2, 8}}));
  EXPECT_EQ(bench.tokens[2], bench.Expected(2, 1));
}

TEST(Scheduler, HitsBlocksThatAnEarlierAnswerFilled) {
  for (const bool async : {false, true}) {
    Bench::Options options;
    options.config.async_scheduling = async;
    Bench bench(options);
    bench.Add(Prompt(20), {.max_tokens = 30});
    ASSERT_TRUE(bench.Run());
    Tokens next = Prompt(20);
    next.insert(next.end(), bench.tokens[1].begin(), bench.tokens[1].end());
    bench.Add(next, {.max_tokens = 2});
    ASSERT_TRUE(bench.Run());
    EXPECT_EQ(bench.outputs[2][0].cached_tokens, 48) << async;
    EXPECT_EQ(bench.tokens[2], bench.Expected(2, 2));
  }
}

TEST(Scheduler, SaltAndSkipReadingPreventHits) {
  Bench bench({});
  bench.Add(Prompt(40), {.max_tokens = 1});
  ASSERT_TRUE(bench.Run());
  bench.Add(Prompt(40), {.max_tokens = 1}, 0, "salt");
  bench.Add(Prompt(40), {.max_tokens = 1, .skip_reading_prefix_cache = true});
  bench.Add(Prompt(40), {.max_tokens = 1, .prompt_logprobs = 1});
  ASSERT_TRUE(bench.Run());
  for (const RequestId id : {2, 3, 4}) EXPECT_EQ(bench.outputs[id][0].cached_tokens, 0) << id;
  EXPECT_EQ(bench.scheduler.stats().prefix_cache_queries, 80u) << "those that do not read are not counted";
}

TEST(Scheduler, DeliversPromptLogprobsOnceEvenIfPreempted) {
  Bench bench({});
  bench.Add(Prompt(20), {.max_tokens = 3, .prompt_logprobs = 1});
  for (int i = 0; i < 3; ++i) {
    const SchedulerOutput step = bench.Plan();
    ModelRunnerOutput output = bench.model.RunStep(step);
    output.sequences[0].prompt_logprobs.resize(20);
    std::vector<CoreOutput> news = bench.scheduler.UpdateFromOutput(step, std::move(output));
    ASSERT_EQ(news.size(), 1u);
    EXPECT_EQ(news[0].prompt_logprobs.size(), i == 0 ? 20u : 0u);
  }
}

TEST(Scheduler, ResetsThePrefixCacheOnlyWhenIdle) {
  Bench bench({});
  bench.Add(Prompt(40), {.max_tokens = 3});
  bench.Step();
  EXPECT_FALSE(bench.scheduler.ResetPrefixCache());
  ASSERT_TRUE(bench.Run());
  EXPECT_TRUE(bench.scheduler.ResetPrefixCache());
  bench.Add(Prompt(40), {.max_tokens = 3});
  ASSERT_TRUE(bench.Run());
  EXPECT_EQ(bench.outputs[2][0].cached_tokens, 0);
}

// ---- preemption ----

TEST(Scheduler, PreemptsTheLastRunningSequenceAndRecomputesIt) {
  for (const bool async : {false, true}) {
    Bench::Options options;
    options.num_blocks = 9;
    options.config.async_scheduling = async;
    Bench bench(options);
    bench.Add(60, 30), bench.Add(50, 30);
    ASSERT_TRUE(bench.Run());
    EXPECT_GE(bench.scheduler.stats().preemptions, 1u);
    for (const RequestId id : {1, 2}) EXPECT_EQ(bench.tokens[id], bench.Expected(id, 30)) << async;
    EXPECT_EQ(bench.scheduler.stats().kv_blocks_used, 0);
  }
}

TEST(Scheduler, ResumesWithItsOutputsAndAdmitsNobodyInAStepThatPreempts) {
  Bench::Options options;
  options.num_blocks = 7;
  options.config.enable_prefix_caching = false;
  Bench bench(options);
  bench.Add(40, 30), bench.Add(24, 20);
  bench.Step();  // three and two blocks
  bench.Add(5, 1);
  SchedulerOutput step;
  do step = bench.Step();
  while (step.preempted.empty());
  EXPECT_EQ(step.preempted, (std::vector<RequestId>{2}));
  EXPECT_TRUE(step.new_requests.empty());
  do step = bench.Step();
  while (step.new_requests.empty());
  EXPECT_EQ(step.scheduled[0].id, 2u) << "the preempted one is at the front";
  const NewRequestData& resumed = step.new_requests.back();
  EXPECT_EQ(resumed.id, 2u);
  EXPECT_TRUE(resumed.resumed);
  EXPECT_GT(resumed.token_ids.size(), 24u);
  EXPECT_EQ(resumed.num_prompt_tokens, 24);
  EXPECT_EQ(step.scheduled[0].num_tokens, static_cast<int>(resumed.token_ids.size()));
}

TEST(Scheduler, PriorityPreemptsTheLeastImportantAndGivesItsBudgetBack) {
  Bench::Options options;
  options.num_blocks = 8;
  options.config.policy = SchedulingPolicy::kPriority;
  Bench bench(options);
  const RequestId low = bench.Add(Prompt(47), {.max_tokens = 20}, 9);  // runs first, three blocks
  bench.Step();
  const RequestId high = bench.Add(Prompt(60, 500), {.max_tokens = 20}, 0);  // four blocks: the pool is full
  bench.Step();
  SchedulerOutput step;
  do step = bench.Step();
  while (step.preempted.empty());
  EXPECT_EQ(step.preempted, (std::vector<RequestId>{low}));
  EXPECT_EQ(Counts(step), (C{{high, 1}}));
  ASSERT_TRUE(bench.Run());
  EXPECT_EQ(bench.tokens[low], bench.Expected(low, 20));
  EXPECT_EQ(bench.tokens[high], bench.Expected(high, 20));
}

TEST(Scheduler, PriorityGoesOnWithOthersAfterPreemptingTheAskingOne) {
  Bench::Options options;
  options.num_blocks = 8;
  options.config.policy = SchedulingPolicy::kPriority;
  options.config.enable_prefix_caching = false;
  Bench bench(options);
  const RequestId low = bench.Add(Prompt(63), {.max_tokens = 20}, 9);  // four blocks
  bench.Step();
  const RequestId high = bench.Add(Prompt(46, 500), {.max_tokens = 20}, 0);  // three blocks: the pool is full
  bench.Step();
  const SchedulerOutput step = bench.Step();
  EXPECT_EQ(step.preempted, (std::vector<RequestId>{low}));
  EXPECT_EQ(Counts(step), (C{{high, 1}}));
}

// vLLM leaves such blocks findable, and a later request then reads what nobody has written.
TEST(Scheduler, PriorityForgetsBlocksOfAStepThatItTakesBack) {
  Bench::Options options;
  options.num_blocks = 6;
  options.config.policy = SchedulingPolicy::kPriority;
  options.config.max_num_batched_tokens = 40;
  options.config.long_prefill_token_threshold = 20;
  Bench bench(options);
  const RequestId low = bench.Add(Prompt(75), {.max_tokens = 5}, 9);
  bench.Add(Prompt(8, 300), {.max_tokens = 1}, 9);
  bench.Step();  // 20 tokens of the first prompt; the second request ends
  const RequestId high = bench.Add(Prompt(16, 500), {.max_tokens = 3}, 0);
  bench.Step();                               // 40 tokens, three blocks; the other has one
  const SchedulerOutput step = bench.Step();  // would fill the third block, but the other needs a second one
  EXPECT_EQ(step.preempted, (std::vector<RequestId>{low}));
  EXPECT_EQ(Counts(step), (C{{high, 1}}));
  ASSERT_TRUE(bench.Run());
  EXPECT_EQ(bench.tokens[low], bench.Expected(low, 5));
  EXPECT_EQ(bench.tokens[high], bench.Expected(high, 3));
}

// ---- larger than the pool ----

TEST(CheckAdmissible, RefusesWhatCanNeverRun) {
  Bench::Options options;
  options.num_blocks = 8;
  options.config.max_model_len = 2048;
  Bench bench(options);
  EXPECT_TRUE(bench.scheduler.CheckAdmissible(112).ok());
  EXPECT_FALSE(bench.scheduler.CheckAdmissible(0).ok());
  const base::Status large = bench.scheduler.CheckAdmissible(113);
  ASSERT_FALSE(large.ok());
  EXPECT_EQ(large.error().code, base::ErrorCode::kInvalidArgument);
  EXPECT_NE(large.error().message.find("113 tokens need 8 KV cache blocks"), std::string::npos)
      << large.error().message;
  EXPECT_FALSE(bench.scheduler.CheckAdmissible(2048).ok());
}

TEST(Scheduler, EndsASequenceThatOutgrowsThePoolAndServesThoseBehind) {
  for (const bool async : {false, true}) {
    for (const bool reserve : {false, true}) {
      Bench::Options options;
      options.num_blocks = 8;
      options.config.max_model_len = 2048;
      options.config.async_scheduling = async;
      options.config.reserve_full_prompt = reserve;
      Bench bench(options);
      const RequestId large = bench.Add(100, 1000);
      const RequestId exact = bench.Add(112, 1);
      const RequestId grows = bench.Add(112, 2);
      const RequestId small = bench.Add(5, 3);
      ASSERT_TRUE(bench.Run()) << async << reserve;
      EXPECT_EQ(bench.ends.at(large).finish, FinishReason::kError);
      EXPECT_EQ(bench.ends.at(large).error->code, base::ErrorCode::kOutOfMemory);
      EXPECT_EQ(bench.tokens[large], bench.Expected(large, 13)) << "all 112 slots and the token sampled from the last";
      EXPECT_EQ(bench.ends.at(exact).finish, FinishReason::kLength);
      EXPECT_EQ(bench.ends.at(grows).finish, FinishReason::kError);
      EXPECT_EQ(bench.tokens[grows], bench.Expected(grows, 1));
      EXPECT_EQ(bench.tokens[small], bench.Expected(small, 3));
      EXPECT_EQ(bench.scheduler.stats().kv_blocks_used, 0);
    }
  }
}

TEST(Scheduler, EndsASequenceWhoseLookaheadNeverFits) {
  Bench::Options options;
  options.num_blocks = 3;
  options.config.num_lookahead_tokens = 8;
  Bench bench(options);
  const RequestId tight = bench.Add(30, 2);
  const RequestId small = bench.Add(5, 2);
  ASSERT_TRUE(bench.Run());
  EXPECT_EQ(bench.ends.at(tight).finish, FinishReason::kError);
  EXPECT_EQ(bench.tokens[small], bench.Expected(small, 2));
}

TEST(Scheduler, EndsASequenceThatOutgrowsThePoolBetweenItsChunksInsteadOfRetryingForEver) {
  for (const bool async : {false, true}) {
    Bench::Options options;
    options.num_blocks = 2;
    options.config.max_num_batched_tokens = 8;
    options.config.num_lookahead_tokens = 4;
    options.config.async_scheduling = async;
    Bench bench(options);
    // The first 8 tokens fit with the drafter's slots, all 13 do not.
    const RequestId tight = bench.Add(13, 2);
    const RequestId small = bench.Add(5, 2);
    ASSERT_TRUE(bench.Run(100)) << async;
    ASSERT_EQ(bench.ends.at(tight).finish, FinishReason::kError);
    EXPECT_EQ(bench.ends.at(tight).error->code, base::ErrorCode::kOutOfMemory);
    EXPECT_NE(bench.ends.at(tight).error->message.find("17 tokens need 2 KV cache blocks, but there are only 1"),
              std::string::npos)
        << bench.ends.at(tight).error->message;
    EXPECT_EQ(bench.tokens[small], bench.Expected(small, 2));
  }
}

TEST(Scheduler, WatermarkDoesNotStarveALoneSequence) {
  Bench::Options options;
  options.num_blocks = 9;
  options.config.watermark = 0.5;
  Bench bench(options);
  bench.Add(120, 4), bench.Add(60, 4);
  ASSERT_TRUE(bench.Run());
  EXPECT_EQ(bench.ends.at(1).finish, FinishReason::kLength);
  EXPECT_EQ(bench.ends.at(2).finish, FinishReason::kLength);
}

// ---- errors and aborts ----

TEST(Scheduler, AnErrorEndsItsSequenceOnlyAndForgetsItsBlocks) {
  Bench bench({});
  bench.model.error = [](RequestId id, int64_t position) -> std::optional<base::Error> {
    if (id == 1 && position == 42) return base::Error{base::ErrorCode::kInternal, "logits are not numbers"};
    return std::nullopt;
  };
  bench.Add(Prompt(40), {.max_tokens = 5});
  bench.Add(Prompt(20, 700), {.max_tokens = 5});
  ASSERT_TRUE(bench.Run());
  EXPECT_EQ(bench.ends.at(1).finish, FinishReason::kError);
  EXPECT_EQ(bench.ends.at(1).error->message, "logits are not numbers");
  EXPECT_EQ(bench.tokens[1].size(), 2u);
  EXPECT_EQ(bench.tokens[2], bench.Expected(2, 5));
  bench.Add(Prompt(40), {.max_tokens = 1});
  ASSERT_TRUE(bench.Run());
  EXPECT_EQ(bench.outputs[3][0].cached_tokens, 0);
}

TEST(Scheduler, AnErrorTellsOfThePreemptionsBeforeIt) {
  Bench::Options options;
  options.num_blocks = 9;
  Bench bench(options);
  bench.model.error = [](RequestId id, int64_t position) -> std::optional<base::Error> {
    if (id == 2 && position == 79) return base::Error{base::ErrorCode::kInternal, "logits are not numbers"};
    return std::nullopt;
  };
  bench.Add(60, 30), bench.Add(50, 30);
  ASSERT_TRUE(bench.Run());
  EXPECT_EQ(bench.ends.at(2).finish, FinishReason::kError);
  EXPECT_EQ(bench.ends.at(2).num_preemptions, static_cast<int>(bench.scheduler.stats().preemptions));
  EXPECT_GE(bench.ends.at(2).num_preemptions, 1);
}

TEST(Scheduler, AbortFreesAtOnceAndIgnoresTheStepInFlight) {
  Bench bench({});
  bench.Add(40, 5);
  const SchedulerOutput step = bench.Plan();
  EXPECT_TRUE(bench.scheduler.Abort(1));
  EXPECT_FALSE(bench.scheduler.Abort(1));
  EXPECT_EQ(bench.scheduler.stats().kv_blocks_used, 0);
  bench.Finish(step);
  EXPECT_TRUE(bench.outputs.empty());
  EXPECT_EQ(bench.Plan().finished, (std::vector<RequestId>{1}));
}

TEST(Scheduler, AbortAtEveryStepLeaksNothing) {
  for (const bool async : {false, true}) {
    for (int at = 0; at < 45; ++at) {
      Bench::Options options;
      options.num_blocks = 14;
      options.windows = {0, 32};
      options.config.async_scheduling = async;
      options.config.max_num_batched_tokens = 24;
      Bench bench(options);
      bench.Add(50, 20), bench.Add(40, 20), bench.Add(20, 20);
      std::deque<SchedulerOutput> flights;
      const size_t depth = async ? 2 : 1;
      for (int i = 0; bench.scheduler.has_requests() && i < 1000; ++i) {
        if (i == at) bench.scheduler.Abort(2);
        SchedulerOutput step = bench.Plan();
        if (step.total_tokens > 0) flights.push_back(std::move(step));
        if (!flights.empty() && (flights.size() >= depth || flights.back().total_tokens == 0 || i % 3 == 0)) {
          bench.Finish(flights.front());
          flights.pop_front();
        }
        while (flights.size() >= depth) {
          bench.Finish(flights.front());
          flights.pop_front();
        }
      }
      while (!flights.empty()) {
        bench.Finish(flights.front());
        flights.pop_front();
      }
      EXPECT_FALSE(bench.scheduler.has_requests()) << at;
      EXPECT_EQ(bench.scheduler.stats().kv_blocks_used, 0) << at;
      for (const RequestId id : {1, 3}) EXPECT_EQ(bench.tokens[id], bench.Expected(id, 20)) << at;
      EXPECT_TRUE(bench.scheduler.ResetPrefixCache());
      bench.model.RunStep(bench.Plan());
      EXPECT_EQ(bench.model.num_sequences(), 0u);
    }
  }
}

// ---- asynchronous scheduling ----

TEST(AsyncScheduling, PlansTheNextTokenBeforeTheLastIsKnown) {
  Bench::Options options;
  options.config.async_scheduling = true;
  Bench bench(options);
  bench.Add(10, 3);
  const SchedulerOutput first = bench.Plan(), second = bench.Plan();
  EXPECT_EQ(Counts(second), (C{{1, 1}}));
  EXPECT_TRUE(second.scheduled[0].samples);
  bench.Finish(first);
  bench.Finish(second);
  EXPECT_EQ(bench.tokens[1], bench.Expected(1, 2));
}

TEST(AsyncScheduling, PlansNoStepBeyondMaxTokens) {
  Bench::Options options;
  options.config.async_scheduling = true;
  Bench bench(options);
  bench.Add(10, 2);
  const SchedulerOutput first = bench.Plan(), second = bench.Plan();
  bench.Finish(first);
  EXPECT_EQ(bench.Plan().total_tokens, 0);
  bench.Finish(second);
  EXPECT_EQ(bench.ends.at(1).finish, FinishReason::kLength);
}

TEST(AsyncScheduling, PlansNoStepBeyondTheModelsLength) {
  Bench::Options options;
  options.config.async_scheduling = true;
  options.config.max_model_len = 12;
  Bench bench(options);
  bench.Add(10, 100);
  ASSERT_TRUE(bench.Run());
  EXPECT_EQ(bench.tokens[1], bench.Expected(1, 2));
}

TEST(AsyncScheduling, DropsTheTokenThatWasComputedPastAStop) {
  Bench::Options options;
  options.config.async_scheduling = true;
  Bench bench(options);
  SamplingParams params{.max_tokens = 50};
  params.eos_token_id = ScriptedOutputs(Prompt(10), 3).back();
  bench.Add(Prompt(10), params);
  ASSERT_TRUE(bench.Run());
  EXPECT_EQ(bench.tokens[1], bench.Expected(1, 3));
}

TEST(AsyncScheduling, DeliversOutputOfAPreemptedSequenceBeforeItResumes) {
  Bench::Options options;
  options.num_blocks = 7;
  options.config.async_scheduling = true;
  Bench bench(options);
  bench.Add(47, 30), bench.Add(47, 30);
  std::deque<SchedulerOutput> flights;
  bool preempted = false;
  for (int i = 0; i < 50 && !preempted; ++i) {
    flights.push_back(bench.Plan());
    preempted = !flights.back().preempted.empty();
    if (flights.size() == 2 && !preempted) {
      bench.Finish(flights.front());
      flights.pop_front();
    }
  }
  ASSERT_TRUE(preempted);
  const size_t known = bench.tokens[2].size();
  bench.Finish(flights.front());
  EXPECT_EQ(bench.tokens[2].size(), known + 1) << "the step in flight still delivers";
  flights.pop_front();
  bench.Finish(flights.front());
  ASSERT_TRUE(bench.Run());
  for (const RequestId id : {1, 2}) EXPECT_EQ(bench.tokens[id], bench.Expected(id, 30));
}

TEST(AsyncScheduling, GivesTheSameTokensAsSynchronous) {
  std::map<RequestId, Tokens> results[2];
  for (const bool async : {false, true}) {
    Bench::Options options;
    options.num_blocks = 24;
    options.windows = {0, 32};
    options.config.async_scheduling = async;
    options.config.max_num_batched_tokens = 24;
    Bench bench(options);
    for (int i = 0; i < 20; ++i) bench.Add(Prompt(10 + 7 * (i % 9), 100 * (i % 3)), {.max_tokens = 5 + i});
    ASSERT_TRUE(bench.Run());
    EXPECT_GT(bench.scheduler.stats().preemptions, 0u);
    EXPECT_GT(bench.scheduler.stats().prefix_cache_hits, 0u);
    EXPECT_GT(bench.scheduler.stats().chunked_prefills, 0u);
    results[async] = bench.tokens;
  }
  EXPECT_EQ(results[0], results[1]);
}

// ---- speculative tokens ----

TEST(SpecTokens, AcceptsAndRejectsWithoutChangingTheOutput) {
  for (const bool async : {false, true}) {
    Bench::Options options;
    options.num_blocks = 24;
    options.num_drafts = 3;
    options.config.async_scheduling = async;
    Bench bench(options);
    for (int i = 0; i < 6; ++i) bench.Add(10 + 9 * i, 40);
    ASSERT_TRUE(bench.Run()) << async;
    for (const auto& [id, tokens] : bench.tokens) EXPECT_EQ(tokens, bench.Expected(id, 40)) << id << async;
    size_t largest = 0;
    for (const CoreOutput& output : bench.outputs[1]) largest = std::max(largest, output.new_token_ids.size());
    EXPECT_GT(largest, 1u) << "drafts were accepted";
    EXPECT_EQ(bench.scheduler.stats().kv_blocks_used, 0);
  }
}

TEST(SpecTokens, TrimsTokensAfterAStop) {
  Bench::Options options;
  options.num_drafts = 4;
  Bench bench(options);
  for (int64_t max_tokens = 1; max_tokens < 12; ++max_tokens) bench.Add(Prompt(12), {.max_tokens = max_tokens});
  ASSERT_TRUE(bench.Run());
  for (const auto& [id, tokens] : bench.tokens) EXPECT_EQ(tokens, bench.Expected(id, static_cast<int64_t>(id)));
}

TEST(SpecTokens, LeaveRoomForTheSampledTokenAtTheModelsLength) {
  for (const bool async : {false, true}) {
    Bench::Options options;
    options.num_drafts = 4;
    options.config.async_scheduling = async;
    options.config.max_model_len = 20;
    Bench bench(options);
    bench.Add(Prompt(12), {.max_tokens = 100});
    ASSERT_TRUE(bench.Run());
    EXPECT_EQ(bench.tokens[1], bench.Expected(1, 8));
  }
}

TEST(SpecTokens, AreNotPaddedWhereTheThresholdWouldCutThem) {
  for (const bool async : {false, true}) {
    Bench::Options options;
    options.num_drafts = 4;
    options.config.long_prefill_token_threshold = 3;
    options.config.async_scheduling = async;
    Bench bench(options);
    bench.Add(Prompt(33), {.max_tokens = 6});
    ASSERT_TRUE(bench.Run());
    // Both start at the last token of the prompt.
    for (int i = 0; i < 2; ++i) bench.Add(Prompt(33), {.max_tokens = 6});
    ASSERT_TRUE(bench.Run());
    EXPECT_EQ(bench.outputs[2][0].cached_tokens, 32);
    for (const auto& [id, tokens] : bench.tokens) EXPECT_EQ(tokens, bench.Expected(id, 6)) << id << async;
  }
}

// ---- configuration ----

TEST(SchedulerConfig, FillsAbsentValuesAsVllmDoes) {
  EngineConfig engine;
  EXPECT_EQ(MakeSchedulerConfig(engine, 8192).max_num_batched_tokens, 2048);
  engine.max_num_seqs = 2;
  EXPECT_EQ(MakeSchedulerConfig(engine, 100).max_num_batched_tokens, 200);
  engine.enable_chunked_prefill = false;
  EXPECT_EQ(MakeSchedulerConfig(engine, 8192).max_num_batched_tokens, 8192);
}

TEST(SchedulerConfig, RefusesContradictions) {
  const auto refused = [](auto change) {
    EngineConfig engine;
    change(engine);
    try {
      MakeSchedulerConfig(engine, 4096);
      return std::string();
    } catch (const base::Exception& e) {
      return std::string(e.what());
    }
  };
  EXPECT_EQ(refused([](EngineConfig&) {}), "");
  EXPECT_NE(refused([](EngineConfig& c) { c.max_num_batched_tokens = 100; }).find("max_num_seqs (128)"),
            std::string::npos);
  EXPECT_NE(refused([](EngineConfig& c) {
              c.max_num_batched_tokens = 2048, c.enable_chunked_prefill = false;
            }).find("smaller than max_model_len (4096)"),
            std::string::npos);
  EXPECT_NE(refused([](EngineConfig& c) { c.long_prefill_token_threshold = 5000; }).find("5000"), std::string::npos);
  EXPECT_NE(refused([](EngineConfig& c) { c.watermark = 1; }).find("watermark"), std::string::npos);
  EXPECT_NE(refused([](EngineConfig& c) { c.scheduling_policy = "lifo"; }).find("'lifo'"), std::string::npos);
  EXPECT_NE(refused([](EngineConfig& c) { c.max_num_seqs = 0; }).find("max_num_seqs (0)"), std::string::npos);
}

TEST(SchedulerConfig, RefusesAStepThatHasNoRoomForATokenAndItsDrafts) {
  SchedulerConfig config{.max_model_len = 64, .max_num_batched_tokens = 4, .max_num_seqs = 2, .num_spec_tokens = 4};
  EXPECT_THROW(CheckSchedulerConfig(config), base::Exception);
  config.max_num_batched_tokens = 5;
  EXPECT_NO_THROW(CheckSchedulerConfig(config));
}

TEST(Scheduler, RefusesAPoolWithoutBlocks) {
  const SchedulerConfig config{.max_model_len = 64};
  EXPECT_THROW(Scheduler(config, TestKvConfig(1)), base::Exception);
}

}  // namespace
}  // namespace vllm
