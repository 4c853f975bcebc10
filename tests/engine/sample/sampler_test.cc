// The sampler against vLLM's kernels (goldens), against statistics, and on hostile rows.
#include "engine/sample/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/sample/gumbel.h"
#include "engine/sample/truncate.h"

namespace vllm {
namespace {

using Json = nlohmann::json;
constexpr float kInf = std::numeric_limits<float>::infinity();

Json ReadGolden() {
  std::ifstream file(VLLM_SOURCE_DIR "/tests/data/sampler/cases.json");
  return Json::parse(file);
}

// The same integers as tools/golden/sampler.py.
std::vector<float> RowOf(const Json& c, int vocab) {
  std::vector<float> row(vocab);
  for (int64_t i = 0; i < vocab; ++i) {
    const uint64_t x = (i * 2654435761ull + c["salt"].get<uint64_t>() * 2246822519ull) & 0xFFFFFFFFull;
    double value = static_cast<double>(x >> 16) / 65536 * 16 - 8;
    if (c.value("grid", false)) value = std::nearbyint(value * 2) / 2;
    row[i] = static_cast<float>(value);
  }
  return row;
}

SamplingParams ParamsOf(const Json& c) {
  SamplingParams p;
  p.temperature = c["temperature"];
  p.repetition_penalty = c.value("repetition_penalty", 1.0);
  p.frequency_penalty = c.value("frequency_penalty", 0.0);
  p.presence_penalty = c.value("presence_penalty", 0.0);
  p.top_k = c.value("top_k", 0);
  p.top_p = c.value("top_p", 1.0);
  p.min_p = c.value("min_p", 0.0);
  p.min_tokens = c.value("min_tokens", 0);
  p.all_stop_token_ids = c.value("stops", std::vector<int32_t>{});
  if (c.contains("allowed")) p.allowed_token_ids = c["allowed"].get<std::vector<int32_t>>();
  for (const Json& pair : c.value("bias", Json::array())) p.logit_bias.emplace_back(pair[0], pair[1]);
  p.bad_words_ids = c.value("bad_words", std::vector<std::vector<int32_t>>{});
  return p;
}

SampledToken SampleGolden(const Json& c, int vocab, LogprobsMode mode, std::optional<int> logprobs) {
  SamplingParams params = ParamsOf(c);
  params.logprobs = logprobs;
  std::vector<float> row = RowOf(c, vocab);
  const std::vector<int32_t> prompt = c["prompt"], output = c["output"];
  return Sampler(mode).Sample({.params = &params,
                               .logits = row,
                               .prompt_ids = prompt,
                               .output_ids = output,
                               .seed = static_cast<uint64_t>(c["seed"].get<int64_t>()),
                               .position = static_cast<int64_t>(prompt.size() + output.size())});
}

double Number(const Json& value) { return value.is_null() ? -kInf : value.get<double>(); }

// A row with a request of its own, for tests without goldens.
struct Draw {
  SamplingParams params = {};
  std::vector<float> logits = {};
  std::vector<int32_t> prompt = {1}, output = {};
  uint64_t seed = 1;
  int64_t position = 1;
  std::vector<uint32_t> mask = {};
  SampledToken Run(LogprobsMode mode = LogprobsMode::kRawLogprobs) const {
    std::vector<float> row = logits;
    return Sampler(mode).Sample({&params, row, prompt, output, seed, position, mask});
  }
};

TEST(SamplerTest, DrawsTheSameTokensAsVllm) {
  const Json golden = ReadGolden();
  for (const Json& c : golden["cases"]) {
    for (const std::optional<int> logprobs : {std::optional<int>(), std::optional<int>(2)}) {
      const SampledToken got = SampleGolden(c, golden["vocab"], LogprobsMode::kRawLogprobs, logprobs);
      EXPECT_FALSE(got.error) << c["name"];
      EXPECT_EQ(got.token_id, c["sampled"].get<int>()) << c["name"];
    }
  }
}

TEST(SamplerTest, ProcessesEveryLogitAsVllm) {
  const Json golden = ReadGolden();
  const int vocab = golden["vocab"];
  for (const Json& c : golden["cases"]) {
    const SampledToken got = SampleGolden(c, vocab, LogprobsMode::kProcessedLogits, -1);
    ASSERT_EQ(got.logprobs.size(), vocab + 1u) << c["name"];
    for (size_t i = 1; i < got.logprobs.size(); ++i) {
      const double expected = Number(c["processed"][got.logprobs[i].token_id]);
      if (std::isinf(expected)) {
        EXPECT_EQ(got.logprobs[i].logprob, -kInf) << c["name"] << " token " << got.logprobs[i].token_id;
      } else {
        EXPECT_NEAR(got.logprobs[i].logprob, expected, 3e-6 * (1 + std::fabs(expected))) << c["name"];
      }
    }
  }
}

TEST(SamplerTest, ReportsLogprobsInAllFourModes) {
  const Json golden = ReadGolden();
  const std::pair<const char*, LogprobsMode> modes[] = {{"raw_logprobs", LogprobsMode::kRawLogprobs},
                                                        {"processed_logprobs", LogprobsMode::kProcessedLogprobs},
                                                        {"raw_logits", LogprobsMode::kRawLogits},
                                                        {"processed_logits", LogprobsMode::kProcessedLogits}};
  for (const Json& c : golden["cases"]) {
    for (const auto& [name, mode] : modes) {
      const PositionLogprobs got = SampleGolden(c, golden["vocab"], mode, 3).logprobs;
      const Json& expected = c[name];
      ASSERT_EQ(got.size(), 4u);
      EXPECT_EQ(got[0].token_id, expected["ids"][0].get<int>()) << c["name"] << " " << name;
      EXPECT_EQ(got[0].rank, expected["rank"].get<int>()) << c["name"] << " " << name;
      for (int i = 0; i < 4; ++i) {
        const double score = Number(expected["scores"][i]);
        if (std::isinf(score)) {
          EXPECT_EQ(got[i].logprob, -kInf);
        } else {
          EXPECT_NEAR(got[i].logprob, score, 1e-5) << c["name"] << " " << name << " " << i;
        }
      }
    }
  }
}

TEST(SamplerTest, HashesNoiseAsVllm) {
  const Json golden = ReadGolden();
  for (const Json& c : golden["noise"]) {
    const NoiseKey key = {static_cast<uint64_t>(c["seed"].get<int64_t>()), c["position"].get<int64_t>()};
    EXPECT_EQ(NoiseBits(key, c["token"].get<uint32_t>()), c["bits"].get<uint32_t>());
  }
}

TEST(SamplerTest, DrawsFollowTheDistribution) {
  const std::vector<double> probabilities = {0.4, 0.25, 0.15, 0.1, 0.05, 0.03, 0.015, 0.005};
  for (const bool truncated : {false, true}) {
    Draw draw;
    if (truncated) draw.params.top_k = 7;  // another code path; token 7 drops out
    for (const double p : probabilities) draw.logits.push_back(static_cast<float>(std::log(p)) + 3);
    constexpr int kDraws = 50'000;
    std::vector<int> counts(8);
    for (int i = 0; i < kDraws; ++i) {
      draw.seed = 77 + i / 100;
      draw.position = 1 + i % 100;
      ++counts[draw.Run().token_id];
    }
    const double total = truncated ? 0.995 : 1;
    double chi_square = 0;
    for (size_t i = 0; i < (truncated ? 7u : 8u); ++i) {
      const double expected = probabilities[i] / total * kDraws;
      chi_square += (counts[i] - expected) * (counts[i] - expected) / expected;
    }
    EXPECT_LT(chi_square, 24.3) << "99.9 % of chi-square with 7 degrees of freedom";
    if (truncated) {
      EXPECT_EQ(counts[7], 0);
    }
  }
}

TEST(SamplerTest, LargeRowsDrawTheSameWithAndWithoutTheShortCut) {
  Draw draw;
  draw.logits.resize(20'011);
  for (size_t i = 0; i < draw.logits.size(); ++i) draw.logits[i] = static_cast<float>(std::sin(i * 0.37) * 2 + 500'000);
  for (int position = 1; position < 300; ++position) {
    draw.position = position;
    const NoiseKey key = {draw.seed, position - 1};
    double best = -1e9;
    int winner = -1;
    for (size_t i = 0; i < draw.logits.size(); ++i) {
      const double score = draw.logits[i] - 500'000.0 + GumbelOf(NoiseBits(key, static_cast<uint32_t>(i)));
      if (score > best) best = score, winner = static_cast<int>(i);
    }
    ASSERT_EQ(draw.Run().token_id, winner);
  }
}

TEST(SamplerTest, SeedsRepeatAndDiffer) {
  Draw draw;
  draw.logits.assign(1000, 0.0f);
  std::vector<int> first, again, other;
  for (draw.position = 1; draw.position < 50; ++draw.position) {
    draw.seed = 5;
    first.push_back(draw.Run().token_id);
    again.push_back(draw.Run().token_id);
    draw.seed = 6;  // as the second of n choices
    other.push_back(draw.Run().token_id);
  }
  EXPECT_EQ(first, again);
  EXPECT_NE(first, other);
  EXPECT_GT(std::set<int>(first.begin(), first.end()).size(), 40u);
}

TEST(SamplerTest, ARowDependsOnItselfAlone) {
  Draw row;
  row.logits.resize(512);
  for (size_t i = 0; i < row.logits.size(); ++i) row.logits[i] = static_cast<float>(std::cos(i * 1.7) * 4);
  row.params.repetition_penalty = 1.2;
  row.params.top_p = 0.9;
  row.params.logprobs = 2;
  row.output = {3, 4, 4};
  Draw neighbour = row;
  neighbour.params.presence_penalty = 2;
  neighbour.output = {9, 9, 10, 11};
  neighbour.seed = 99;
  const SampledToken alone = row.Run();
  for (int i = 0; i < 5; ++i) {
    neighbour.Run();
    const SampledToken beside = row.Run();
    EXPECT_EQ(beside.token_id, alone.token_id);
    EXPECT_EQ(beside.logprobs[0].logprob, alone.logprobs[0].logprob);
  }
}

TEST(SamplerTest, GreedyTakesTheLowestIdOfEquals) {
  for (const size_t vocab : {5u, 16u, 70u, 4097u}) {
    Draw draw;
    draw.params.temperature = 0;
    draw.logits.assign(vocab, -3.0f);
    draw.logits[vocab - 2] = draw.logits[vocab - 1] = 2.5f;
    EXPECT_EQ(draw.Run().token_id, static_cast<int>(vocab) - 2);
  }
}

TEST(SamplerTest, NanEndsTheRequestWithAnError) {
  for (const double temperature : {0.0, 1.0}) {
    for (const size_t at : {0u, 17u, 99u}) {
      Draw draw;
      draw.params.temperature = temperature;
      draw.logits.assign(100, 1.0f);
      draw.logits[at] = std::numeric_limits<float>::quiet_NaN();
      const SampledToken got = draw.Run();
      ASSERT_TRUE(got.error);
      EXPECT_EQ(got.error->code, base::ErrorCode::kInternal);
    }
  }
}

TEST(SamplerTest, InfiniteLogitsShareTheMass) {
  Draw draw;
  draw.logits.assign(40, 0.0f);
  draw.logits[3] = draw.logits[8] = kInf;
  draw.logits[9] = -kInf;
  draw.params.logprobs = 1;
  for (const double top_p : {1.0, 0.3}) {
    draw.params.top_p = top_p;
    std::set<int> seen;
    for (draw.position = 1; draw.position < 60; ++draw.position) {
      const SampledToken got = draw.Run();
      ASSERT_FALSE(got.error);
      seen.insert(got.token_id);
      EXPECT_NEAR(got.logprobs[0].logprob, std::log(0.5), 1e-6);
    }
    if (top_p == 1) {
      EXPECT_EQ(seen, (std::set<int>{3, 8}));
    }
  }
}

TEST(SamplerTest, AFullyMaskedRowIsAnError) {
  Draw draw;
  draw.logits.assign(20, 0.5f);
  draw.params.allowed_token_ids = {{4}};
  draw.params.min_tokens = 3;
  draw.params.all_stop_token_ids = {4};
  ASSERT_TRUE(draw.Run().error);
  draw.output = {4, 4, 4};
  EXPECT_EQ(draw.Run().token_id, 4);
}

TEST(SamplerTest, HugeLogitsOverATinyTemperatureStillSample) {
  Draw draw;
  draw.logits.assign(20, -3e38f);
  draw.logits[7] = 3e38f;
  draw.params.temperature = 0.01;
  EXPECT_EQ(draw.Run().token_id, 7);
}

TEST(SamplerTest, GrammarMaskComesBeforeRawLogprobs) {
  Draw draw;
  draw.params.temperature = 0;
  draw.params.logprobs = 0;
  draw.logits.assign(70, 0.0f);
  draw.logits[1] = 9;
  draw.mask = {0, 1u << 3, 1u << 2};  // tokens 35 and 66
  const SampledToken got = draw.Run();
  EXPECT_EQ(got.token_id, 35);
  EXPECT_NEAR(got.logprobs[0].logprob, std::log(0.5), 1e-6);
  EXPECT_EQ(got.logprobs[0].rank, 2);
}

TEST(SamplerTest, ReportsExactlyTheTokensAskedFor) {
  Draw draw;
  draw.params.temperature = 0;
  draw.params.logprob_token_ids = {30, 2};
  for (int i = 0; i < 50; ++i) draw.logits.push_back(static_cast<float>(-i));
  const PositionLogprobs got = draw.Run().logprobs;
  ASSERT_EQ(got.size(), 3u);
  EXPECT_EQ(got[0].token_id, 0);
  EXPECT_EQ(got[1].token_id, 30);
  EXPECT_EQ(got[2].token_id, 2);
  EXPECT_NEAR(got[0].logprob - got[1].logprob, 30, 1e-5);
  EXPECT_NEAR(got[0].logprob - got[2].logprob, 2, 1e-5);
}

TEST(SamplerTest, AGreedyRowNeedsNothingButItsMaximum) {
  SamplingParams greedy;
  greedy.temperature = 0;
  const SampleRow row = {.params = &greedy, .max = RowMax{.value = 2.5f, .index = 77}};
  EXPECT_FALSE(Sampler::NeedsLogits(row));
  EXPECT_EQ(Sampler(LogprobsMode::kRawLogprobs).Sample(row).token_id, 77);
  SampleRow broken = row;
  broken.max = RowMax{.value = std::nanf(""), .has_nan = true};
  EXPECT_TRUE(Sampler(LogprobsMode::kRawLogprobs).Sample(broken).error.has_value());
  broken.max = RowMax{.value = -kInf, .index = 0};
  EXPECT_TRUE(Sampler(LogprobsMode::kRawLogprobs).Sample(broken).error.has_value());
}

TEST(SamplerTest, WhateverReadsOrChangesARowNeedsItsLogits) {
  const std::vector<uint32_t> mask = {1};
  const auto needs = [](auto change) {
    SamplingParams params;
    params.temperature = 0;
    SampleRow row = {.params = &params};
    change(params, row);
    return Sampler::NeedsLogits(row);
  };
  EXPECT_TRUE(needs([](SamplingParams& p, SampleRow&) { p.temperature = 1; }));
  EXPECT_TRUE(needs([](SamplingParams& p, SampleRow&) { p.logprobs = 0; }));
  EXPECT_TRUE(needs([](SamplingParams& p, SampleRow&) { p.logprob_token_ids = {3}; }));
  EXPECT_TRUE(needs([](SamplingParams& p, SampleRow&) { p.presence_penalty = 1; }));
  EXPECT_TRUE(needs([](SamplingParams& p, SampleRow&) { p.bad_words_ids = {{3}}; }));
  EXPECT_TRUE(needs([&](SamplingParams&, SampleRow& row) { row.allowed_mask = mask; }));
  EXPECT_TRUE(needs([](SamplingParams& p, SampleRow&) { p.min_tokens = 1, p.all_stop_token_ids = {2}; }));
}

TEST(SamplerTest, AMaximumFoundBeforehandChangesNoResult) {
  const Json golden = ReadGolden();
  for (const Json& c : golden["cases"]) {
    for (const LogprobsMode mode : {LogprobsMode::kRawLogprobs, LogprobsMode::kProcessedLogprobs}) {
      SamplingParams params = ParamsOf(c);
      params.logprobs = 3;
      std::vector<float> row = RowOf(c, golden["vocab"]);
      const std::vector<int32_t> prompt = c["prompt"], output = c["output"];
      RowMax max = MaxOf(row);
      max.index = FirstIndexOf(row, max.value);
      const SampledToken got = Sampler(mode).Sample({.params = &params,
                                                     .logits = row,
                                                     .prompt_ids = prompt,
                                                     .output_ids = output,
                                                     .seed = static_cast<uint64_t>(c["seed"].get<int64_t>()),
                                                     .position = static_cast<int64_t>(prompt.size() + output.size()),
                                                     .max = max});
      const SampledToken expected = SampleGolden(c, golden["vocab"], mode, 3);
      EXPECT_EQ(got.token_id, expected.token_id) << c["name"];
      ASSERT_EQ(got.logprobs.size(), expected.logprobs.size());
      for (size_t i = 0; i < got.logprobs.size(); ++i) EXPECT_EQ(got.logprobs[i].logprob, expected.logprobs[i].logprob);
    }
  }
}

TEST(TruncateTest, TopPKeepsTheShortestHeadThatHoldsTheMassOnPeakedAndOnFlatRows) {
  for (const float spread : {0.001f, 1.0f, 4.0f, 12.0f})
    for (const float p : {0.1f, 0.5f, 0.9f, 0.999f}) {
      std::vector<float> row(4001);
      for (size_t i = 0; i < row.size(); ++i) row[i] = spread * std::sin(static_cast<float>(i) * 0.77f);
      row[17] = -kInf;
      const float max = MaxOf(row).value;
      std::vector<float> sorted = row;
      std::sort(sorted.rbegin(), sorted.rend());
      double total = 0, mass = 0;
      for (const float logit : sorted) total += std::exp(static_cast<double>(logit) - max);
      size_t count = 0;
      while (mass < p * total) mass += std::exp(static_cast<double>(sorted[count++]) - max);
      const std::vector<Candidate> kept = Truncate(row, max, {.top_p = p});
      // One more or less where rounding decides.
      EXPECT_NEAR(static_cast<double>(kept.size()), static_cast<double>(count), 1) << spread << " " << p;
      for (const Candidate& candidate : kept) EXPECT_GE(candidate.value, sorted[count]);
    }
}

TEST(RowMathTest, TopKIsTheHeadOfTheSortedRowForEveryK) {
  std::vector<float> row(3000);
  for (size_t i = 0; i < row.size(); ++i) row[i] = static_cast<float>((i * 7919) % 500);  // six of every value
  std::vector<Candidate> sorted;
  for (size_t i = 0; i < row.size(); ++i) sorted.push_back({row[i], static_cast<int32_t>(i)});
  std::sort(sorted.begin(), sorted.end(), [](const Candidate& a, const Candidate& b) {
    return a.value != b.value ? a.value > b.value : a.id < b.id;
  });
  for (const int64_t k : {1, 2, 5, 6, 7, 40, 374, 375, 376, 1500, 2999, 3000}) {
    const std::vector<Candidate> top = TopK(row, k);
    ASSERT_EQ(static_cast<int64_t>(top.size()), k);
    for (int64_t i = 0; i < k; ++i) ASSERT_EQ(top[i].id, sorted[i].id) << k << " " << i;
    EXPECT_EQ(KthLargest(row, k), sorted[k - 1].value) << k;
  }
}

TEST(LogprobsOfTest, GivesTheTokenThenTheTopOnes) {
  std::vector<float> logits(1000);
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>((i * 37) % 1000) * 0.01f;
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
  const PositionLogprobs got = LogprobsOf(logits, MaxOf(logits), 5, 4);
  ASSERT_EQ(got.size(), 5u);
  EXPECT_EQ(got[0].token_id, 5);
  EXPECT_EQ(got[0].rank, 1000 - 185);
  EXPECT_NEAR(got[0].logprob, 1.85 - std::log(sum), 1e-5);
  for (int i = 1; i < 5; ++i) {
    EXPECT_EQ((got[i].token_id * 37) % 1000, 1000 - i);
    EXPECT_EQ(got[i].rank, i);
  }
  EXPECT_EQ(LogprobsOf(logits, MaxOf(logits), 5, 0).size(), 1u);
  EXPECT_EQ(LogprobsOf(logits, MaxOf(logits), 5, -1).size(), 1001u);
}

TEST(LogprobsOfTest, TreatsNanAsImpossible) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> logits = {nan, 1.0f, nan, 1.0f, -kInf};
  const PositionLogprobs got = LogprobsOf(logits, MaxOf(logits), 0, 2);
  EXPECT_EQ(got[0].logprob, -kInf);
  EXPECT_NEAR(got[1].logprob, std::log(0.5), 1e-6);
  EXPECT_EQ(got[2].token_id, 3);
}

}  // namespace
}  // namespace vllm
