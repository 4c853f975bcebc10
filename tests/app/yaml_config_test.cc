// The YAML file of --config: flat mappings are read, everything that could surprise is refused with its line.
#include "app/yaml_config.h"

#include <gtest/gtest.h>

#include "base/result.h"

namespace vllm {
namespace {

std::string ErrorOf(const std::string& text) {
  try {
    ParseYamlConfig(text, "c.yaml");
  } catch (const base::Exception& exception) {
    return exception.what();
  }
  return "no error";
}

std::vector<std::string> ValuesOf(const std::string& text) {
  const std::vector<YamlEntry> entries = ParseYamlConfig(text, "c.yaml");
  EXPECT_EQ(entries.size(), 1u);
  return entries.at(0).values;
}

TEST(YamlConfig, ScalarsKeepTheirText) {
  EXPECT_EQ(ValuesOf("a: 0x10"), (std::vector<std::string>{"0x10"}));
  EXPECT_EQ(ValuesOf("a: 1e3 # comment"), (std::vector<std::string>{"1e3"}));
  EXPECT_EQ(ValuesOf("a: 'yes: no'"), (std::vector<std::string>{"yes: no"}));
}

TEST(YamlConfig, SequencesOfScalarsAreLists) {
  EXPECT_EQ(ValuesOf("a:\n  - x\n  - 'y z'\n"), (std::vector<std::string>{"x", "y z"}));
  EXPECT_EQ(ValuesOf("a: [1, 2]"), (std::vector<std::string>{"1", "2"}));
}

TEST(YamlConfig, MappingsAndMixedSequencesAreJson) {
  EXPECT_EQ(ValuesOf("a: {b: [1, true, 'true', null, 0.5], c: {d: x}}"),
            (std::vector<std::string>{R"({"b":[1,true,"true",null,0.5],"c":{"d":"x"}})"}));
  EXPECT_EQ(ValuesOf("a: [[1], 2]"), (std::vector<std::string>{"[[1],2]"}));
}

TEST(YamlConfig, NullsAreMarked) {
  EXPECT_TRUE(ParseYamlConfig("a:\n", "c.yaml").at(0).is_null);
  EXPECT_TRUE(ParseYamlConfig("a: ~\n", "c.yaml").at(0).is_null);
  EXPECT_FALSE(ParseYamlConfig("a: ''\n", "c.yaml").at(0).is_null);
}

TEST(YamlConfig, LinesAreCounted) {
  const std::vector<YamlEntry> entries = ParseYamlConfig("# head\na: 1\n\nb:\n  - 2\n", "c.yaml");
  EXPECT_EQ(entries.at(0).line, 2);
  EXPECT_EQ(entries.at(1).line, 4);
}

TEST(YamlConfig, AnEmptyFileHasNoEntries) {
  EXPECT_TRUE(ParseYamlConfig("", "c.yaml").empty());
  EXPECT_TRUE(ParseYamlConfig("# nothing\n", "c.yaml").empty());
}

TEST(YamlConfig, AliasesAnchorsAndTagsAreRefused) {
  EXPECT_EQ(ErrorOf("a: &x 1\n"), "c.yaml:1: is an anchor (&name); write the value out");
  EXPECT_EQ(ErrorOf("a: !!python/object x\n"), "c.yaml:1: is a tagged value; write it without the tag");
}

TEST(YamlConfig, WhatIsNoMappingIsRefused) {
  EXPECT_EQ(ErrorOf("- a\n"), "c.yaml:1: is no mapping; write 'flag: value' lines");
  EXPECT_EQ(ErrorOf("just text\n"), "c.yaml:1: is no mapping; write 'flag: value' lines");
  EXPECT_EQ(ErrorOf("? [a]\n: b\n"), "c.yaml:1: is a key that is no text");
}

TEST(YamlConfig, SyntaxErrorsNameTheLine) {
  EXPECT_EQ(ErrorOf("a: 1\nb: [1\n").substr(0, 22), "c.yaml:3: is not YAML:");
}

TEST(YamlConfig, AKeyThatStandsTwiceIsRefused) {
  EXPECT_EQ(ErrorOf("max-num-seqs: 1\nmax_num_seqs: 2\n"), "c.yaml:2: 'max_num_seqs' stands twice");
}

TEST(YamlConfig, DeepNestingIsRefusedWithoutRecursion) {
  EXPECT_EQ(ErrorOf("a: " + std::string(100000, '[')).substr(0, 9), "c.yaml:1:");
  EXPECT_EQ(ErrorOf("a: " + std::string(100000, '{')).substr(0, 9), "c.yaml:1:");
  std::string blocks = "a:\n";
  for (int depth = 1; depth < 200; ++depth) blocks += std::string(depth, ' ') + "b:\n";
  EXPECT_NE(ErrorOf(blocks).find("is nested too deep"), std::string::npos);
}

TEST(YamlConfig, LargeFilesAndBytesOutsideUtf8AreRefused) {
  EXPECT_EQ(ErrorOf(std::string((1 << 20) + 1, '#')), "c.yaml: has 1048577 bytes, at most 1048576");
  EXPECT_EQ(ErrorOf("a: \xFF\n"), "c.yaml: is not UTF-8 text");
}

}  // namespace
}  // namespace vllm
