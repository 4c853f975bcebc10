// Whole tokenizers against Hugging Face's: mixed corpora, special tokens, byte fallback, long inputs.
#include "text/tokenizer/tokenizer.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/limits.h"
#include "base/result.h"
#include "tests/text/tokenizer/corpus_util.h"

namespace vllm {
namespace {

TEST(Tokenizer, ByteLevelBpeEqualsTheReference) {
  const auto tokenizer = Tokenizer::FromTokenizerJson(ReadFile(GoldenPath("byte_level.json")));
  ExpectGolden(*tokenizer, Golden("byte_level_golden.json"), {.add_special_tokens = true});
}

TEST(Tokenizer, UnigramWithByteFallbackEqualsTheReference) {
  const auto tokenizer = Tokenizer::FromTokenizerJson(ReadFile(GoldenPath("unigram.json")));
  ExpectGolden(*tokenizer, Golden("unigram_golden.json"), {.add_special_tokens = false});
}

TEST(Tokenizer, SpacesAfterControlTokensAndByteFallbackEqualTheReference) {
  for (const base::Json& entry : Golden("fallback.json")) {
    const auto tokenizer = Tokenizer::FromTokenizerJson(base::DumpJson(entry["json"]));
    for (size_t i = 0; i < entry["texts"].size(); ++i) {
      const auto text = entry["texts"][i].get<std::string>();
      EXPECT_EQ(tokenizer->Encode(text), Ids(entry["ids"][i])) << text;
      EXPECT_EQ(tokenizer->Decode(Ids(entry["ids"][i]), {.skip_special_tokens = false}),
                entry["decoded"][i].get<std::string>())
          << text;
    }
    EXPECT_EQ(tokenizer->Decode(Ids(entry["broken"][0])), entry["broken"][1].get<std::string>());
    EXPECT_EQ(tokenizer->Decode(Ids(entry["broken"][0])), "\uFFFD\uFFFDa");
  }
}

TEST(Tokenizer, TypedControlTokensAreIdsOrTextOnRequest) {
  const auto tokenizer = Tokenizer::FromTokenizerJson(ReadFile(GoldenPath("byte_level.json")));
  const int32_t end = tokenizer->TokenId("<|im_end|>").value();
  const std::string text = "A<|im_end|>\nB";
  const auto count = [&](bool parse) {
    const std::vector<int32_t> ids = tokenizer->Encode(text, {.parse_special = parse});
    EXPECT_EQ(tokenizer->Decode(ids, {.skip_special_tokens = false}), "<|begin_of_text|>" + text);
    return std::count(ids.begin(), ids.end(), end);
  };
  EXPECT_EQ(count(true), 1);
  EXPECT_EQ(count(false), 0);
}

TEST(Tokenizer, ATypedBosDoublesTheOneThatIsAdded) {
  const auto tokenizer =
      Tokenizer::FromTokenizerJson(ReadFile(GoldenPath("byte_level.json")), R"({"bos_token":"<|begin_of_text|>"})");
  const int32_t bos = tokenizer->bos_id().value();
  EXPECT_TRUE(tokenizer->adds_bos());
  EXPECT_FALSE(tokenizer->adds_eos());
  const std::vector<int32_t> ids = tokenizer->Encode("<|begin_of_text|>hi");
  EXPECT_EQ(std::count(ids.begin(), ids.end(), bos), 2);
  EXPECT_EQ(tokenizer->Encode("", {.add_special_tokens = true}), std::vector<int32_t>{bos});
}

TEST(Tokenizer, LongInputsComeBackWhole) {
  for (const char* name : {"byte_level.json", "unigram.json"}) {
    const auto tokenizer = Tokenizer::FromTokenizerJson(ReadFile(GoldenPath(name)));
    for (const char* unit : {"a", "us", "é", "1", "漢", "<|im_end|>hello\n", "-"}) {
      std::string text;
      while (text.size() < 128 * 1024) text += unit;
      const std::vector<int32_t> ids = tokenizer->Encode(text, {.add_special_tokens = false});
      EXPECT_EQ(tokenizer->Decode(ids, {.skip_special_tokens = false}), text) << name << " " << unit;
    }
  }
}

// Runs `body` on a thread with 1 MiB of stack.
void OnASmallStack(const std::function<void()>& body) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, size_t{1} << 20), 0);
  pthread_t thread = {};
  const auto run = [](void* argument) -> void* {
    (*static_cast<const std::function<void()>*>(argument))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, const_cast<std::function<void()>*>(&body)), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

TEST(Tokenizer, LongInputsEqualTheReferenceOnASmallStack) {
  for (const bool byte_level : {true, false}) {
    const std::string name = byte_level ? "byte_level" : "unigram";
    const auto tokenizer = Tokenizer::FromTokenizerJson(ReadFile(GoldenPath(name + ".json")));
    const base::Json golden = Golden(name + "_golden.json").at("long");
    OnASmallStack([&] {
      const std::vector<std::string> texts = LongInputs();
      ASSERT_EQ(texts.size(), golden.size());
      for (size_t i = 0; i < texts.size(); ++i)
        EXPECT_EQ(Digest(tokenizer->Encode(texts[i], {.add_special_tokens = byte_level})), golden[i].get<std::string>())
            << name << ": " << texts[i].substr(0, 20);
    });
  }
}

TEST(Tokenizer, InvalidBytesCountAsReplacementCharacters) {
  const auto tokenizer = Tokenizer::FromTokenizerJson(ReadFile(GoldenPath("byte_level.json")));
  EXPECT_EQ(tokenizer->Encode("a\xFF\xE7\x8C z"), tokenizer->Encode("a\uFFFD\uFFFD z"));
}

TEST(Tokenizer, ATextBeyondTheLimitIsRefused) {
  const auto tokenizer = Tokenizer::FromTokenizerJson(ReadFile(GoldenPath("byte_level.json")));
  EXPECT_THROW(tokenizer->Encode(std::string(base::kMaxTokenizeBytes + 1, 'a')), base::Exception);
}

TEST(Tokenizer, TokensAreKnownByTextBytesAndId) {
  const auto tokenizer = Tokenizer::FromTokenizerJson(ReadFile(GoldenPath("byte_level.json")));
  const int32_t space = tokenizer->TokenId("Ġ").value();
  EXPECT_EQ(tokenizer->TokenText(space), "Ġ");
  EXPECT_EQ(tokenizer->TokenBytes(space), " ");
  const int32_t end = tokenizer->TokenId("<|im_end|>").value();
  EXPECT_TRUE(tokenizer->IsSpecial(end));
  EXPECT_TRUE(tokenizer->IsAdded(end));
  EXPECT_EQ(tokenizer->TokenBytes(end), "<|im_end|>");
  EXPECT_FALSE(tokenizer->IsSpecial(tokenizer->TokenId("[ADDED]").value()));
  EXPECT_EQ(tokenizer->TokenId("no such token"), std::nullopt);
  EXPECT_EQ(tokenizer->TokenText(-1), "");
  EXPECT_EQ(tokenizer->TokenBytes(1 << 20), "");
  EXPECT_FALSE(tokenizer->Exists(tokenizer->vocab_size()));
  EXPECT_EQ(tokenizer->Decode(std::vector<int32_t>{-1, 1 << 20}), "");
}

TEST(Tokenizer, TheLongestTokenIsKnown) {
  const auto tokenizer = Tokenizer::FromTokenizerJson(
      R"({"model":{"type":"BPE","vocab":{"a":0,"漢字é":1},"merges":[]}})", R"({"bos_token":"<bos>"})");
  EXPECT_EQ(tokenizer->max_token_chars(), 5u);
}

TEST(Tokenizer, ThreadsShareOne) {
  const auto tokenizer = Tokenizer::FromTokenizerJson(ReadFile(GoldenPath("byte_level.json")));
  const std::string text = Corpus(8, 20000);
  const std::vector<int32_t> want = tokenizer->Encode(text);
  std::vector<std::thread> threads;
  std::vector<int> good(4);
  for (int& same : good) {
    threads.emplace_back([&] {
      same = tokenizer->Encode(text) == want && tokenizer->Decode(want) == tokenizer->Decode(tokenizer->Encode(text));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, std::vector<int>(4, 1));
}

}  // namespace
}  // namespace vllm
