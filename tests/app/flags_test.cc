// The flag table: every row is well formed, and every spelling finds one row.
#include "app/flags.h"

#include <gtest/gtest.h>

#include <set>

#include "base/result.h"
#include "base/strings.h"

namespace vllm {
namespace {

TEST(Flags, EveryRowSaysWhatItDoesOrWhyNot) {
  for (const Flag& flag : Flags()) {
    EXPECT_FALSE(flag.help.empty()) << flag.name;
    EXPECT_NE(flag.commands, 0) << flag.name;
  }
}

TEST(Flags, EveryDefaultIsAValueOfItsFlag) {
  for (const Flag& flag : Flags()) {
    if (flag.default_text.empty()) continue;
    std::vector<std::string> values;
    for (const std::string_view value : base::Split(flag.default_text, flag.type == FlagType::kList ? ' ' : '\0')) {
      values.emplace_back(value);
    }
    if (flag.kind == FlagClass::kRefused && flag.type == FlagType::kList) continue;
    EXPECT_NO_THROW(CheckFlagValue(flag, values, flag.name)) << flag.name;
  }
}

TEST(Flags, LongNamesAreUniqueWithinACommand) {
  for (const Command command : Commands()) {
    std::set<std::string_view> seen;
    for (const Flag& flag : Flags()) {
      if (!(flag.commands & command)) continue;
      EXPECT_TRUE(seen.insert(flag.name).second) << CommandName(command) << " --" << flag.name;
    }
  }
}

TEST(Flags, EveryLongNameIsFoundInEachOfItsCommands) {
  for (const Command command : Commands()) {
    for (const Flag& flag : Flags()) {
      if (!(flag.commands & command)) continue;
      bool negated = true;
      const Flag* found = FindFlag(base::StrCat("--", flag.name), command, &negated);
      ASSERT_NE(found, nullptr);
      EXPECT_EQ(found->name, flag.name) << CommandName(command);
      EXPECT_FALSE(negated);
    }
  }
}

TEST(Flags, VllmsServeFlagsAreAllThere) {
  for (const char* name :
       {"--max-model-len", "--tensor-parallel-size", "--enable-auto-tool-choice", "--gpu-memory-utilization",
        "--served-model-name", "--speculative-config", "--shutdown-timeout", "--reasoning-effort-map"}) {
    bool negated = false;
    EXPECT_NE(FindFlag(name, kServe, &negated), nullptr) << name;
  }
  EXPECT_GT(VllmFlags().size(), 300u);
}

TEST(Flags, NearestPrefersABeginning) { EXPECT_EQ(NearestFlag("--gpu-mem", kServe), "--gpu-memory-utilization"); }

}  // namespace
}  // namespace vllm
