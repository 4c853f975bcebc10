// CHECK: a broken invariant is an exception with place and values, and costs nothing else.
#include "base/check.h"

#include <gtest/gtest.h>

namespace base {
namespace {

TEST(Check, FailureNamesFileExpressionAndValues) {
  try {
    const int rows = 3;
    CHECK(rows == 4, "rows ", rows);
    FAIL() << "no exception";
  } catch (const InternalError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("check_test.cc:"), std::string::npos) << message;
    EXPECT_NE(message.find("CHECK(rows == 4) failed: rows 3"), std::string::npos) << message;
  }
}

TEST(Check, TrueConditionDoesNotEvaluateTheValues) {
  int evaluated = 0;
  CHECK(true, ++evaluated);
  EXPECT_EQ(evaluated, 0);
}

}  // namespace
}  // namespace base
