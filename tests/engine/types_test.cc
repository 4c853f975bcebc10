// Names of the engine's enumerations, and pieces of a choice joined.
#include "engine/types.h"

#include <gtest/gtest.h>

namespace vllm {
namespace {

TEST(FinishReasonNameTest, NamesAreVllms) {
  EXPECT_EQ(FinishReasonName(FinishReason::kStop), "stop");
  EXPECT_EQ(FinishReasonName(FinishReason::kLength), "length");
  EXPECT_EQ(FinishReasonName(FinishReason::kAbort), "abort");
  EXPECT_EQ(FinishReasonName(FinishReason::kError), "error");
  EXPECT_THROW(FinishReasonName(static_cast<FinishReason>(9)), base::InternalError);
}

TEST(MergeChoiceTest, PiecesAreAppendedAndTheEndIsKept) {
  ChoiceOutput choice{.text = "a", .token_ids = {1}, .logprobs = {{{1, -0.5f, 1}}}};
  MergeChoice(choice, {.text = "b", .token_ids = {2, 3}, .finish = FinishReason::kStop, .stop_reason = 3});
  MergeChoice(choice, {.text = "c", .logprobs = {{{4, -1.f, 1}}}});
  EXPECT_EQ(choice.text, "abc");
  EXPECT_EQ(choice.token_ids, (std::vector<int32_t>{1, 2, 3}));
  EXPECT_EQ(choice.logprobs.size(), 2u);
  EXPECT_EQ(choice.finish, FinishReason::kStop);
  EXPECT_EQ(std::get<int32_t>(choice.stop_reason), 3);
}

}  // namespace
}  // namespace vllm
