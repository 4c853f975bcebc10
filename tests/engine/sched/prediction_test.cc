// The prediction gives back the prices that times were made of, and what can be worked out by hand.
#include "tests/engine/sched/prediction_util.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/result.h"
#include "tests/engine/sched/scripted_runner.h"
#include "tests/engine/sched/simulation_random.h"

namespace vllm {
namespace {

StepLoad LoadOfDecodes(int64_t sequences, int64_t length) {
  return {.tokens = sequences, .samples = sequences, .context = sequences * length, .attended = sequences * length};
}

std::vector<StepTime> Times(double (*us)(const StepLoad&)) {
  Random random(3);
  std::vector<StepTime> steps;
  for (int i = 0; i < 400; ++i) {
    StepLoad load = LoadOfDecodes(random.Between(1, 32), random.Between(1, 400));
    if (i % 3 == 0) {
      const int64_t prompt = random.Between(1, 700);
      load.tokens += prompt;
      load.context += prompt;
      load.attended += prompt * (prompt + 1) / 2;
    }
    steps.push_back({.load = load, .elapsed_us = static_cast<int64_t>(us(load))});
  }
  return steps;
}

TEST(StepTimeModel, FindsThePricesThatTimesWereMadeOf) {
  const auto us = [](const StepLoad& load) {
    const auto tokens = static_cast<double>(load.tokens);
    return 2000 + 100 * std::min(tokens, 16.0) + 20 * std::max(0.0, tokens - 16) +
           30 * static_cast<double>(load.samples) + 0.5 * static_cast<double>(load.context) +
           0.02 * static_cast<double>(load.attended);
  };
  const StepTimeModel model = StepTimeModel::Fit(Times(us));
  for (const int64_t sequences : {1, 8, 24}) {
    const StepLoad load = LoadOfDecodes(sequences, 200);
    EXPECT_NEAR(model.Us(load) / us(load), 1, 0.02) << sequences;
  }
  EXPECT_NEAR(PercentileOf(model.ratios(), 50), 1, 0.01);
}

TEST(StepTimeModel, NeverMakesAStepCheaperForMoreWork) {
  // Times that fall with the number of tokens: no price may become negative.
  const StepTimeModel model =
      StepTimeModel::Fit(Times([](const StepLoad& load) { return 5000.0 - static_cast<double>(load.tokens); }));
  EXPECT_GE(model.Us(LoadOfDecodes(64, 100)), model.Us(LoadOfDecodes(1, 100)));
}

TEST(StepTimes, AreReadFromATrace) {
  const std::string path = testing::TempDir() + "steps_trace.json";
  std::ofstream(path) << "[\n{\"name\":\"schedule\",\"args\":{\"tokens\":3}},\n"
                         "{\"name\":\"update\",\"args\":{\"step\":1,\"tokens\":3,\"samples\":1,\"context\":9,"
                         "\"attended\":12,\"elapsed_us\":77}},\n{\"name\":\"update\",\"args\":{\"ste";
  const std::vector<StepTime> steps = ReadStepTimes(path);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].load.context, 9);
  EXPECT_EQ(steps[0].elapsed_us, 77);
  EXPECT_THROW(ReadStepTimes(path + ".absent"), base::Exception);
}

TEST(Prediction, OfRequestsThatTakeTurnsIsTheSumOfTheirSteps) {
  // Every step takes a millisecond; one client, prompts of one step, ten tokens each.
  const StepTimeModel model = StepTimeModel::Fit(Times([](const StepLoad&) { return 1000.0; }));
  const Prediction prediction =
      Predict({.max_model_len = 256, .max_num_seqs = 4, .async_scheduling = false}, TestKvConfig(100), model,
              {.num_requests = 20, .max_concurrency = 1, .input_len = 30, .output_len = 10});
  EXPECT_EQ(prediction.output_tokens, 200);
  EXPECT_EQ(prediction.steps, 200);
  EXPECT_NEAR(prediction.seconds, 0.2, 0.002);
  EXPECT_NEAR(PercentileOf(prediction.ttft_ms, 99), 1, 0.01);
  EXPECT_NEAR(PercentileOf(prediction.itl_ms, 50), 1, 0.01);
}

TEST(Prediction, BatchesWhatArrivesAtOnceAndFindsSharedPrefixes) {
  const StepTimeModel model = StepTimeModel::Fit(Times([](const StepLoad&) { return 1000.0; }));
  const Prediction prediction = Predict({.max_model_len = 256, .max_num_seqs = 8}, TestKvConfig(200), model,
                                        {.num_requests = 32, .input_len = 30, .output_len = 10, .prefix_len = 64});
  EXPECT_EQ(prediction.output_tokens, 320);
  EXPECT_LT(prediction.steps, 60);
  EXPECT_GE(prediction.hit_tokens, 24 * 64);
  EXPECT_THROW(Predict({.max_model_len = 64}, TestKvConfig(20), model, {.num_requests = 1}), base::Exception);
}

}  // namespace
}  // namespace vllm
