// SentencePiece models against SentencePiece itself, and damaged ones.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/result.h"
#include "tests/text/tokenizer/corpus_util.h"

namespace vllm {
namespace {

std::string Refusal(std::string_view bytes) {
  try {
    Tokenizer::FromSentencePiece(bytes);
  } catch (const base::Exception& e) {
    return e.what();
  }
  return "";
}

void ExpectEqual(const std::string& kind) {
  const auto tokenizer = Tokenizer::FromSentencePiece(ReadFile(GoldenPath(kind + ".model")));
  const std::vector<std::string> chunks = Chunks(Corpus(2, 60000), 700);
  const base::Json golden = Golden(kind + "_model_golden.json");
  ASSERT_GT(golden["chunks"].size(), 20u);
  for (const base::Json& entry : golden["chunks"]) {
    EXPECT_EQ(Digest(tokenizer->Encode(chunks.at(entry[0].get<size_t>()))), entry[1].get<std::string>())
        << "chunk " << entry[0];
  }
}

TEST(SentencePieceModel, UnigramIdsEqualSentencePiece) { ExpectEqual("unigram"); }

TEST(SentencePieceModel, BpeIdsEqualSentencePiece) { ExpectEqual("bpe"); }

TEST(SentencePieceModel, ControlAndUserSymbolsAreWholeAndBosFollowsTheConfig) {
  const std::string bytes = ReadFile(GoldenPath("bpe.model"));
  const auto plain = Tokenizer::FromSentencePiece(bytes),
             with_bos = Tokenizer::FromSentencePiece(bytes, R"({"add_bos_token":true})");
  EXPECT_EQ(plain->bos_id(), 1);
  EXPECT_TRUE(plain->IsSpecial(plain->TokenId("<|im_end|>").value()));
  EXPECT_FALSE(plain->IsSpecial(plain->TokenId("<tool_call>").value()));
  EXPECT_EQ(plain->Encode("<tool_call>").size(), 1u);
  EXPECT_EQ(with_bos->Encode("<tool_call>").front(), 1);
  EXPECT_EQ(plain->Decode(plain->Encode("hello wörld 漢🦙")), "hello wörld 漢🦙");
}

TEST(SentencePieceModel, DamageIsRefusedInOneLine) {
  EXPECT_NE(Refusal("").find("no pieces"), std::string::npos);
  EXPECT_NE(Refusal(std::string("\x0a\x05\x0a", 3)).find("is cut off"), std::string::npos);
  EXPECT_NE(Refusal("\x0a\x03\x0a\x01\xFF").find("not valid UTF-8"), std::string::npos);
  EXPECT_NE(Refusal("\x0a\x02\x08\x01").find("wrong wire type"), std::string::npos);
  EXPECT_NE(Refusal("\x0b").find("unknown wire type"), std::string::npos);
  EXPECT_NE(Refusal(std::string("\x00\x00", 2)).find("number 0"), std::string::npos);
  EXPECT_NE(Refusal(std::string(11, '\xFF')).find("more than 64 bits"), std::string::npos);
  EXPECT_NE(Refusal("\x0a\x03\x0a\x01"
                    "a")
                .find("trainer_spec.bos_id 1 is outside"),
            std::string::npos);
}

TEST(SentencePieceModel, AMutilatedFileNeverCrashes) {
  const std::string good = ReadFile(GoldenPath("unigram.model"));
  Random random(4);
  for (int round = 0; round < 300; ++round) {
    std::string bad = good;
    for (int i = 0; i < 4; ++i) bad[random.Next(bad.size())] = static_cast<char>(random.Next(256));
    Refusal(bad);
  }
  for (size_t size = 1; size < good.size(); size += 211) Refusal(std::string_view(good).substr(0, size));
}

}  // namespace
}  // namespace vllm
