// Every pre-tokenizer and split behaviour against Hugging Face's.
#include "text/tokenizer/pre_tokenizer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/text/tokenizer/corpus_util.h"

namespace vllm {
namespace {

std::vector<std::string> Cut(const tokenizer::Parts& parts, const std::string& text, bool first) {
  const tokenizer::Pieces pieces = tokenizer::PreTokenize(parts.pre_tokenizers, text, first);
  std::vector<std::string> out;
  for (const auto& span : pieces.spans) out.push_back(pieces.text.substr(span.begin, span.end - span.begin));
  return out;
}

TEST(PreTokenizer, EveryKindEqualsTheReference) {
  const base::Json golden = Golden("components.json");
  const base::Json& texts = golden["texts"];
  for (const base::Json& entry : golden["pre_tokenizers"]) {
    const tokenizer::Parts parts = PartsWith("pre_tokenizer", entry[0]);
    for (size_t i = 0; i < texts.size(); ++i) {
      EXPECT_EQ(Cut(parts, texts[i].get<std::string>(), true), entry[1][i].get<std::vector<std::string>>())
          << entry[0].dump() << " of " << texts[i];
    }
  }
}

TEST(PreTokenizer, MetaspaceFirstAddsNothingInsideTheText) {
  const tokenizer::Parts parts =
      PartsWith("pre_tokenizer", {{"type", "Metaspace"}, {"replacement", "▁"}, {"prepend_scheme", "first"}});
  EXPECT_EQ(Cut(parts, "a b", true), (std::vector<std::string>{"▁a", "▁b"}));
  EXPECT_EQ(Cut(parts, "a b", false), (std::vector<std::string>{"a", "▁b"}));
}

}  // namespace
}  // namespace vllm
