// Percentiles as numpy computes them.
#include "app/bench.h"

#include <gtest/gtest.h>

namespace vllm {
namespace {

TEST(Bench, PercentilesInterpolateBetweenSortedValues) {
  EXPECT_DOUBLE_EQ(Percentile({3, 1, 2, 4}, 50), 2.5);
  EXPECT_DOUBLE_EQ(Percentile({3, 1, 2, 4}, 10), 1.3);
  EXPECT_DOUBLE_EQ(Percentile({3, 1, 2, 4}, 99), 3.97);
}

TEST(Bench, EndsAreTheExtremes) {
  EXPECT_DOUBLE_EQ(Percentile({5, 7}, 0), 5);
  EXPECT_DOUBLE_EQ(Percentile({5, 7}, 100), 7);
  EXPECT_DOUBLE_EQ(Percentile({5}, 75), 5);
}

}  // namespace
}  // namespace vllm
