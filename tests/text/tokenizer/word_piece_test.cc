// WordPiece, WordLevel and BPE with affixes against Hugging Face's.
#include "text/tokenizer/word_piece.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/text/tokenizer/corpus_util.h"

namespace vllm {
namespace {

TEST(WordPiece, ModelsOfWordsEqualTheReference) {
  for (const base::Json& entry : Golden("words.json")) {
    const auto tokenizer = Tokenizer::FromTokenizerJson(base::DumpJson(entry["json"]));
    for (size_t i = 0; i < entry["texts"].size(); ++i) {
      EXPECT_EQ(tokenizer->Encode(entry["texts"][i].get<std::string>()), Ids(entry["ids"][i])) << entry["texts"][i];
      EXPECT_EQ(tokenizer->Decode(Ids(entry["ids"][i]), {.skip_special_tokens = false}),
                entry["decoded"][i].get<std::string>());
    }
  }
}

}  // namespace
}  // namespace vllm
