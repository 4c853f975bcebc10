// Names of pre-tokenizers and how they cut text.
#include <gtest/gtest.h>

#include "base/result.h"
#include "text/tokenizer/loaders.h"

namespace vllm {
namespace {

using tokenizer::PreSplits;

std::vector<std::string> Cut(const std::string& pre, const std::string& text) {
  std::vector<tokenizer::PreTokenizer> list;
  const tokenizer::PreSplits splits = tokenizer::SplitsOf(pre);
  for (const std::string& pattern : splits.patterns) {
    list.emplace_back(tokenizer::PatternSplit{tokenizer::Regex::FromOniguruma(pattern)});
  }
  const tokenizer::Pieces pieces = tokenizer::PreTokenize(list, text, true);
  std::vector<std::string> out;
  for (const auto& span : pieces.spans) out.push_back(pieces.text.substr(span.begin, span.end - span.begin));
  return out;
}

using List = std::vector<std::string>;

TEST(GgufPre, EveryExpressionCompiles) {
  for (const char* name : {"llama3",
                           "llama-bpe",
                           "dbrx",
                           "smaug-bpe",
                           "glm4",
                           "jais-2",
                           "qwen2",
                           "qwen35",
                           "ufakzeka",
                           "seed-coder",
                           "bailingmoe",
                           "exaone-moe",
                           "laguna",
                           "minicpm5",
                           "gpt-4o",
                           "granite-embed-multi-97m",
                           "tiny_aya",
                           "tekken",
                           "kimi-k2",
                           "deepseek-llm",
                           "deepseek-coder",
                           "deepseek-v3",
                           "spark2_5",
                           "youtu",
                           "afmoe",
                           "superbpe",
                           "falcon",
                           "default",
                           "",
                           "starcoder",
                           "smollm",
                           "gpt-2",
                           "olmo",
                           "bloom",
                           "viking",
                           "chameleon"}) {
    List pieces = Cut(name, "Hello, it's 1234567 漢字!\n\n  x");
    std::string joined;
    for (const std::string& piece : pieces) joined += piece;
    EXPECT_EQ(joined, "Hello, it's 1234567 漢字!\n\n  x") << name;
    EXPECT_GT(pieces.size(), 2u) << name;
  }
}

TEST(GgufPre, DigitsAreCutAsTheModelsLearnedThem) {
  EXPECT_EQ(Cut("smollm", "a1234"), (List{"a", "1", "2", "3", "4"}));
  EXPECT_EQ(Cut("llama-bpe", "a1234"), (List{"a", "123", "4"}));
  EXPECT_EQ(Cut("gpt-2", "a1234"), (List{"a", "1234"}));
  EXPECT_EQ(Cut("afmoe", "a1234"), (List{"a", "1", "234"}));
  EXPECT_EQ(Cut("tiny_aya", "a 1234 1234b"), (List{"a", " ", "1", "234", " ", "123", "4", "b"}));
  EXPECT_EQ(Cut("superbpe", "1234567"), (List{"1", "234", "567"}));
}

TEST(GgufPre, ContractionsIgnoreCaseWhereTheOriginalDoes) {
  EXPECT_EQ(Cut("llama-bpe", "I'LL"), (List{"I", "'LL"}));
  EXPECT_EQ(Cut("gpt-2", "I'LL"), (List{"I", "'", "LL"}));
}

TEST(GgufPre, IdeographsStandAloneForKimi) { EXPECT_EQ(Cut("kimi-k2", "abc漢字Def"), (List{"abc", "漢字", "Def"})); }

TEST(GgufPre, LlamaVocabulariesBeginWithBosAndKnowWholeWords) {
  EXPECT_TRUE(tokenizer::SplitsOf("llama-bpe").add_bos);
  EXPECT_TRUE(tokenizer::SplitsOf("llama-bpe").ignore_merges);
  EXPECT_FALSE(tokenizer::SplitsOf("smollm").add_bos);
  EXPECT_FALSE(tokenizer::SplitsOf("gemma4").byte_level);
}

TEST(GgufPre, AnUnknownNameIsRefused) {
  try {
    tokenizer::SplitsOf("no\nsuch");
    FAIL();
  } catch (const base::Exception& e) {
    EXPECT_STREQ(e.what(), "tokenizer.ggml.pre 'no\\x0asuch' is not supported");
  }
}

}  // namespace
}  // namespace vllm
