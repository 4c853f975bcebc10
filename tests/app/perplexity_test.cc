// Perplexity: the chunks and the sums of llama.cpp's protocol.
#include "app/perplexity.h"

#include <gtest/gtest.h>

#include <cmath>

namespace vllm {
namespace {

TEST(Perplexity, WholeChunksStartWithBosAndTheRestIsDropped) {
  const std::vector<int32_t> tokens = {10, 11, 12, 13, 14, 15, 16};
  EXPECT_EQ(PerplexityChunks(tokens, 3, 1), (std::vector<std::vector<int32_t>>{{1, 11, 12}, {1, 14, 15}}));
}

TEST(Perplexity, WithoutBosTheChunksAreTheText) {
  const std::vector<int32_t> tokens = {10, 11, 12, 13};
  EXPECT_EQ(PerplexityChunks(tokens, 2, -1), (std::vector<std::vector<int32_t>>{{10, 11}, {12, 13}}));
}

TEST(Perplexity, AShortTextHasNoChunk) {
  const std::vector<int32_t> tokens = {10, 11};
  EXPECT_TRUE(PerplexityChunks(tokens, 3, -1).empty());
}

TEST(Perplexity, IsTheExponentialOfTheMeanLoss) {
  PerplexitySum sum;
  sum.Add(std::log(0.5));
  sum.Add(std::log(0.125));
  EXPECT_DOUBLE_EQ(sum.perplexity(), 4);
  // Standard deviation of the losses log 2 and 3 log 2 is log 2; over sqrt(count - 1) = 1.
  EXPECT_NEAR(sum.error(), std::log(2) * 4, 1e-12);
}

}  // namespace
}  // namespace vllm
