// The log goes to stderr and respects its level.
#include "base/log.h"

#include <gtest/gtest.h>

namespace base {
namespace {

TEST(Log, WritesTheMessageAsItIsToStderr) {
  testing::internal::CaptureStderr();
  LogWarning("100% {} of ", 3);
  const std::string written = testing::internal::GetCapturedStderr();
  EXPECT_NE(written.find("100% {} of 3\n"), std::string::npos) << written;
  EXPECT_EQ(written.substr(0, 2), "W ");
}

TEST(Log, MessagesBelowTheLevelAreDropped) {
  testing::internal::CaptureStderr();
  SetLogLevel(LogLevel::kError);
  LogWarning("hidden");
  LogError("shown");
  SetLogLevel(LogLevel::kInfo);
  const std::string written = testing::internal::GetCapturedStderr();
  EXPECT_EQ(written.find("hidden"), std::string::npos);
  EXPECT_NE(written.find("shown"), std::string::npos);
}

}  // namespace
}  // namespace base
