// The passes over rows: each compilation of them gives the same bits, and what plain loops give.
#include "engine/sample/row_passes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace vllm {
namespace {

std::vector<const RowPasses*> AllPasses() {
  std::vector<const RowPasses*> all = {&kRowPassesBase};
  if (&BestRowPasses() != &kRowPassesBase) all.push_back(&BestRowPasses());
  return all;
}

std::vector<float> Row(int64_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 4);
  std::vector<float> row(static_cast<size_t>(n));
  for (float& value : row) value = std::round(normal(random) * 64) / 64;  // with equals
  if (n > 5) row[5] = -INFINITY;
  return row;
}

const std::vector<int64_t> kSizes = {1, 3, 4, 7, 8, 9, 15, 16, 31, 32, 33, 100, 255, 256, 257, 1000, 5003};

TEST(RowPassesTest, FindMaximaAndNan) {
  for (const RowPasses* passes : AllPasses())
    for (const int64_t n : kSizes)
      for (int64_t nan = -1; nan < n; nan += 1 + n / 9) {
        std::vector<float> row = Row(n, 1);
        if (nan >= 0) row[nan] = NAN;
        float expected = -INFINITY;
        for (const float value : row) expected = value > expected ? value : expected;
        bool has_nan = false;
        EXPECT_EQ(passes->max_of(row.data(), n, &has_nan), expected) << n;
        EXPECT_EQ(has_nan, nan >= 0) << n;
      }
}

TEST(RowPassesTest, FindAndCountWhatReachesABound) {
  for (const RowPasses* passes : AllPasses())
    for (const int64_t n : kSizes) {
      const std::vector<float> row = Row(n, 2);
      for (const float bound : {-20.0f, 0.0f, row[n / 2], 9.0f, 100.0f}) {
        int64_t count = 0;
        for (const float value : row) count += value >= bound;
        EXPECT_EQ(passes->count_at_least(row.data(), n, bound), count);
        std::vector<int32_t> places(n), expected;
        for (int64_t i = 0; i < n; ++i)
          if (row[i] >= bound) expected.push_back(static_cast<int32_t>(i));
        places.resize(passes->places_at_least(row.data(), n, bound, places.data()));
        EXPECT_EQ(places, expected);
        for (int64_t begin = 0; begin <= n; begin += 1 + n / 13) {
          int64_t least = begin, above = begin;
          while (least < n && !(row[least] >= bound)) ++least;
          while (above < n && !(row[above] > bound)) ++above;
          EXPECT_EQ(passes->next_at_least(row.data(), begin, n, bound), least) << n << " " << begin;
          EXPECT_EQ(passes->next_above(row.data(), begin, n, bound), above) << n << " " << begin;
        }
      }
    }
}

TEST(RowPassesTest, ExponentialsAndBinsAreNearAndTheSameBitsEverywhere) {
  constexpr int32_t kLast = 500;
  for (const int64_t n : kSizes) {
    const std::vector<float> row = Row(n, 3);
    bool has_nan = false;
    const float max = kRowPassesBase.max_of(row.data(), n, &has_nan);
    double sum = 0, near = 0, base_near = 0, other_near = 0;
    for (const float value : row) sum += std::exp(static_cast<double>(value) - max);
    for (const float value : row) near += value - max >= -5 ? std::exp(static_cast<double>(value) - max) : 0;
    const double base_sum = kRowPassesBase.exp_sum(row.data(), n, max, 5, &base_near);
    EXPECT_NEAR(base_sum, sum, sum * 1e-6);
    EXPECT_NEAR(base_near, near, near * 1e-6);
    std::vector<float> base_mass(n), mass(n), divided = row;
    std::vector<int32_t> base_bin(n), bin(n);
    kRowPassesBase.masses(row.data(), n, max, 64, kLast, base_mass.data(), base_bin.data());
    for (int64_t i = 0; i < n; ++i) {
      EXPECT_NEAR(base_mass[i], std::exp(static_cast<double>(row[i]) - max), 3e-7);
      EXPECT_EQ(base_bin[i], static_cast<int32_t>(std::min((max - row[i]) * 64, static_cast<float>(kLast))));
    }
    for (const RowPasses* passes : AllPasses()) {
      EXPECT_EQ(passes->exp_sum(row.data(), n, max, 5, &other_near), base_sum);
      EXPECT_EQ(other_near, base_near);
      passes->masses(row.data(), n, max, 64, kLast, mass.data(), bin.data());
      EXPECT_EQ(mass, base_mass);
      EXPECT_EQ(bin, base_bin);
      divided = row;
      passes->divide(divided.data(), n, 0.7f);
      for (int64_t i = 0; i < n; ++i) EXPECT_EQ(divided[i], row[i] / 0.7f);
    }
  }
}

TEST(RowPassesTest, NoisyGroupsAreTheSameEverywhere) {
  for (const int64_t n : kSizes) {
    const std::vector<float> row = Row(n, 4);
    for (const float bound : {-5.0f, 0.0f, 8.0f, 30.0f})
      for (int64_t begin = 0; begin <= n; begin += kNoiseGroup) {
        const int64_t expected = kRowPassesBase.next_noisy(row.data(), begin, n, 8, 12345, bound);
        EXPECT_EQ(expected % kNoiseGroup, 0);
        if (bound == 30) {
          EXPECT_EQ(expected, std::max(begin, n / kNoiseGroup * kNoiseGroup));
        }
        for (const RowPasses* passes : AllPasses())
          EXPECT_EQ(passes->next_noisy(row.data(), begin, n, 8, 12345, bound), expected);
      }
  }
}

}  // namespace
}  // namespace vllm
