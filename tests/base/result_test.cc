// Results hold a value or an error, and reading the wrong side is our bug.
#include "base/result.h"

#include <gtest/gtest.h>

#include <memory>

namespace base {
namespace {

Result<int> Half(int value) {
  if (value % 2) return MakeError(ErrorCode::kInvalidArgument, "value: ", value, " is odd");
  return value / 2;
}

TEST(Result, HoldsAValue) {
  const Result<int> half = Half(8);
  ASSERT_TRUE(half.ok());
  EXPECT_EQ(*half, 4);
}

TEST(Result, HoldsAnError) {
  const Result<int> half = Half(7);
  ASSERT_FALSE(half);
  EXPECT_EQ(half.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(half.error().message, "value: 7 is odd");
}

TEST(Result, ReadingTheWrongSideIsAnInternalError) {
  EXPECT_THROW(static_cast<void>(Half(7).value()), InternalError);
  EXPECT_THROW(static_cast<void>(Half(8).error()), InternalError);
}

TEST(Result, MovesValuesThatCannotBeCopied) {
  Result<std::unique_ptr<int>> made = std::make_unique<int>(5);
  const std::unique_ptr<int> taken = *std::move(made);
  EXPECT_EQ(*taken, 5);
}

TEST(Result, ValueOrThrowThrowsTheErrorWithItsCode) {
  EXPECT_EQ(Half(6).ValueOrThrow(), 3);
  try {
    Half(5).ValueOrThrow();
    FAIL() << "no exception";
  } catch (const Exception& exception) {
    EXPECT_EQ(exception.code(), ErrorCode::kInvalidArgument);
    EXPECT_STREQ(exception.what(), "value: 5 is odd");
  }
}

TEST(Result, ThrowJoinsItsParts) {
  try {
    Throw(ErrorCode::kNotFound, "file ", 3, ": gone");
  } catch (const Exception& exception) {
    EXPECT_EQ(exception.error().message, "file 3: gone");
    EXPECT_EQ(exception.error().code, ErrorCode::kNotFound);
  }
}

}  // namespace
}  // namespace base
