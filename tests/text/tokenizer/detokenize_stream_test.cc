// Streams equal those that vLLM gets from DecodeStream, and stay cheap on bytes that never form a character.
#include "text/tokenizer/detokenize_stream.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/strings.h"
#include "tests/text/tokenizer/corpus_util.h"

namespace vllm {
namespace {

// Byte-level tokens for every byte, so that a text can be cut anywhere: id = byte. 256 and 257 are special, 258 is
// added.
std::unique_ptr<Tokenizer> Bytes() {
  base::Json vocab;
  for (int byte = 0; byte < 256; ++byte) vocab[std::string(tokenizer::ByteSpelling(static_cast<uint8_t>(byte)))] = byte;
  base::Json added = base::Json::array();
  for (const char* name : {"<s>", "</s>", "<tool>"}) {
    added.push_back({{"id", 256 + added.size()},
                     {"content", name},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", name[1] != 't'}});
  }
  return Tokenizer::FromTokenizerJson(
      base::DumpJson({{"added_tokens", added},
                      {"decoder", {{"type", "ByteLevel"}}},
                      {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", base::Json::array()}}}}));
}

std::vector<int32_t> BytesOf(std::string_view text) {
  std::vector<int32_t> ids;
  for (const char c : text) ids.push_back(static_cast<uint8_t>(c));
  return ids;
}

void ExpectStreams(const Tokenizer& tokenizer, const base::Json& golden) {
  for (const base::Json& entry : golden.at("streams")) {
    DetokenizeStream stream(tokenizer, {.skip_special_tokens = entry["skip"].get<bool>()}, Ids(entry["prompt"]));
    const std::vector<int32_t> ids = Ids(entry["ids"]);
    for (size_t i = 0; i < ids.size(); ++i)
      EXPECT_EQ(stream.Push(ids[i]), entry["texts"][i].get<std::string>()) << "token " << i << " of " << entry["ids"];
  }
}

TEST(DetokenizeStream, ByteLevelStreamsEqualTheReference) {
  ExpectStreams(*Tokenizer::FromTokenizerJson(ReadFile(GoldenPath("byte_level.json"))),
                Golden("byte_level_golden.json"));
}

TEST(DetokenizeStream, SentencePieceStreamsEqualTheReference) {
  ExpectStreams(*Tokenizer::FromTokenizerJson(ReadFile(GoldenPath("unigram.json"))), Golden("unigram_golden.json"));
}

TEST(DetokenizeStream, HalfACharacterIsHeldBack) {
  const auto tokenizer = Bytes();
  DetokenizeStream stream(*tokenizer, {}, BytesOf("x"));
  std::string out;
  for (const int32_t id : BytesOf("Hi 🦙 café")) out += stream.Push(id) + "|";
  EXPECT_EQ(out, "H|i| ||||🦙| |c|a|f||é|");
  EXPECT_EQ(stream.Finish(), "");
}

TEST(DetokenizeStream, APromptThatEndsInsideACharacterIsNotRepeated) {
  const auto tokenizer = Bytes();
  DetokenizeStream stream(*tokenizer, {}, BytesOf("hello \xF0\x9F"));
  EXPECT_EQ(stream.Push(0xA6), "");
  EXPECT_EQ(stream.Push(0x99), "🦙");
  EXPECT_EQ(stream.Push('!'), "!");
}

TEST(DetokenizeStream, AHalfCharacterAtTheEndComesOutOnlyByFinish) {
  const auto tokenizer = Bytes();
  DetokenizeStream stream(*tokenizer, {}, {});
  EXPECT_EQ(stream.Push('a'), "a");
  EXPECT_EQ(stream.Push(0xE7), "");
  EXPECT_EQ(stream.Push(0x8C), "");
  EXPECT_EQ(stream.Finish(), "\uFFFD");
}

TEST(DetokenizeStream, EndlessInvalidBytesAreReleasedInTime) {
  const auto tokenizer = Bytes();
  DetokenizeStream stream(*tokenizer, {}, {});
  std::string out;
  for (int i = 0; i < 20000; ++i) out += stream.Push(0xFF);
  for (const int32_t id : BytesOf("é")) out += stream.Push(id);
  out += stream.Finish();
  std::string want;
  for (int i = 0; i < 20000; ++i) want += "\uFFFD";
  EXPECT_EQ(out, want + "é");
}

TEST(DetokenizeStream, SpecialTokensAreHiddenOrShown) {
  const auto tokenizer = Bytes();
  DetokenizeStream hidden(*tokenizer, {}, {}), shown(*tokenizer, {.skip_special_tokens = false}, {});
  EXPECT_EQ(hidden.Push('a') + hidden.Push(256) + hidden.Push(258) + hidden.Push('b'), "a<tool>b");
  EXPECT_EQ(shown.Push('a') + shown.Push(256) + shown.Push(257) + shown.Push('b'), "a<s></s>b");
}

TEST(DetokenizeStream, IdsThatDoNotExistGiveNothing) {
  const auto tokenizer = Bytes();
  DetokenizeStream stream(*tokenizer, {}, {});
  EXPECT_EQ(stream.Push(-1) + stream.Push(100000) + stream.Push('b'), "b");
}

TEST(DetokenizeStream, ALongRunOfHiddenTokensCostsNothing) {
  const auto tokenizer = Bytes();
  DetokenizeStream stream(*tokenizer, {}, std::vector<int32_t>(200000, 'a'));
  for (int i = 0; i < 200000; ++i) ASSERT_EQ(stream.Push(256), "");
  EXPECT_EQ(stream.Push('b'), "b");
}

}  // namespace
}  // namespace vllm
