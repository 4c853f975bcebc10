// Names of the engine's enumerations.
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

}  // namespace
}  // namespace vllm
