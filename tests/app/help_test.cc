// Help: grouped, short by default, searchable, and complete on demand.
#include "app/help.h"

#include <gtest/gtest.h>

#include "base/result.h"

namespace vllm {
namespace {

std::string HelpOf(Command command, const std::string& topic, bool command_given = true) {
  CommandLine line;
  line.command = command;
  line.help_topic = topic;
  line.command_given = command_given;
  return HelpText(line);
}

bool Has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Help, WithoutACommandTheCommandsAreListed) {
  EXPECT_TRUE(Has(HelpOf(kServe, "", false), "vllm perplexity FILE -m MODEL"));
}

TEST(Help, OfACommandShowsWhatIsHonouredInGroups) {
  const std::string help = HelpOf(kServe, "");
  EXPECT_TRUE(Has(help, "\nCache:\n"));
  EXPECT_TRUE(Has(help, "-c, --ctx-size, --max-model-len SIZE"));
  EXPECT_FALSE(Has(help, "--tensor-parallel-size"));
}

TEST(Help, OfAllShowsReasons) { EXPECT_TRUE(Has(HelpOf(kServe, "all"), "refused: one engine in one process")); }

TEST(Help, OfAGroupShowsThatGroup) {
  const std::string help = HelpOf(kServe, "cache");
  EXPECT_TRUE(Has(help, "--block-size"));
  EXPECT_FALSE(Has(help, "--port"));
}

TEST(Help, OfAFlagShowsTheRowsWithItsName) {
  const std::string help = HelpOf(kServe, "--max-num");
  EXPECT_TRUE(Has(help, "--max-num-seqs"));
  EXPECT_FALSE(Has(help, "--block-size"));
}

TEST(Help, AnUnknownTopicListsTheGroups) {
  try {
    HelpOf(kServe, "xyzzy");
    FAIL() << "no exception";
  } catch (const base::Exception& exception) {
    EXPECT_TRUE(Has(exception.what(), "'xyzzy' is neither a flag nor a group (all, model, server,"))
        << exception.what();
  }
}

TEST(Help, VersionNamesVllmAndTheInstructionSet) {
  EXPECT_EQ(VersionText("avx512"), "vllm.cpp 0.1.0 (vLLM 0.33.0 semantics), avx512\n");
}

TEST(Help, TablesHaveARowForEachEntry) {
  EXPECT_TRUE(Has(MarkdownTable("flags"), "| `--max-model-len` `-c` `--ctx-size` | all but bench serve |"));
  EXPECT_TRUE(Has(MarkdownTable("environment"), "| `VT_CPU_ISA` |"));
}

}  // namespace
}  // namespace vllm
