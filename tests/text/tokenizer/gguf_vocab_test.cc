// Tokenizers from GGUF metadata: each model kind, special ids, and refusals. The real files are compared in the
// end-to-end lane.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <functional>

#include "base/result.h"
#include "tests/text/tokenizer/corpus_util.h"

namespace vllm {
namespace {

GgufVocab Gpt2() {
  GgufVocab vocab;
  vocab.model = "gpt2";
  vocab.pre = "smollm";
  vocab.tokens = {"<|end|>", "a", "b", "ab", "Ġ", "Ġa", "1", "2", "<think>", "漢!", "Ã", "©"};
  vocab.types = {3, 1, 1, 1, 1, 1, 1, 1, 4, 1, 1, 1};
  vocab.merges = {"a b", "Ġ a"};
  vocab.eos = 0;
  vocab.chat_template = "{{ messages }}";
  return vocab;
}

GgufVocab Llama(const std::string& architecture) {
  GgufVocab vocab;
  vocab.architecture = architecture;
  vocab.model = "llama";
  vocab.tokens = {"<unk>", "<s>", "▁", "a", "▁a", "aa", "  ", "b"};
  for (int byte = 0; byte < 256; ++byte) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", static_cast<unsigned>(byte));
    vocab.tokens.push_back(name);
  }
  vocab.scores.assign(vocab.tokens.size(), 0);
  for (size_t i = 0; i < vocab.scores.size(); ++i) vocab.scores[i] = -static_cast<float>(i);
  vocab.types.assign(vocab.tokens.size(), 6);
  for (size_t i = 0; i < 8; ++i) vocab.types[i] = i < 2 ? 3 : i == 6 ? 4 : 1;
  vocab.bos = 1;
  vocab.unk = 0;
  return vocab;
}

std::string Refusal(GgufVocab vocab, const std::function<void(GgufVocab&)>& spoil) {
  spoil(vocab);
  try {
    Tokenizer::FromGguf(vocab);
  } catch (const base::Exception& e) {
    return e.what();
  }
  return "";
}

TEST(GgufVocab, ByteLevelVocabulariesMergeAndSplitDigits) {
  const auto tokenizer = Tokenizer::FromGguf(Gpt2());
  EXPECT_EQ(tokenizer->Encode("ab a12<|end|><think>"), (std::vector<int32_t>{3, 5, 6, 7, 0, 8}));
  EXPECT_EQ(tokenizer->Decode(tokenizer->Encode("ab a12é")), "ab a12é");
  EXPECT_TRUE(tokenizer->IsSpecial(0));
  EXPECT_FALSE(tokenizer->IsSpecial(8));
  EXPECT_EQ(tokenizer->eos_id(), 0);
  EXPECT_EQ(tokenizer->TokenBytes(9), "漢!");
  EXPECT_EQ(tokenizer->chat_template(), "{{ messages }}");
  EXPECT_FALSE(tokenizer->adds_bos());
}

TEST(GgufVocab, BosFollowsTheFileOrElseThePreTokenizer) {
  GgufVocab vocab = Gpt2();
  vocab.bos = 0;
  vocab.pre = "llama-bpe";
  EXPECT_TRUE(Tokenizer::FromGguf(vocab)->adds_bos());
  vocab.add_bos = false;
  EXPECT_FALSE(Tokenizer::FromGguf(vocab)->adds_bos());
}

TEST(GgufVocab, LlamaVocabulariesPutASpaceBeforeTheTextAndFallBackToBytes) {
  const auto tokenizer = Tokenizer::FromGguf(Llama("llama"));
  EXPECT_EQ(tokenizer->Encode("aa é"), (std::vector<int32_t>{1, 4, 3, 2, 8 + 0xC3, 8 + 0xA9}));
  EXPECT_EQ(tokenizer->Decode(tokenizer->Encode("aa é")), "aa é");
}

TEST(GgufVocab, GemmaVocabulariesOrderMergesByPositionAndHoldRunsOfSpaces) {
  GgufVocab vocab = Llama("gemma3");
  std::reverse(vocab.scores.begin(), vocab.scores.end());
  const auto tokenizer = Tokenizer::FromGguf(vocab);
  EXPECT_EQ(tokenizer->Encode("aa  b"), (std::vector<int32_t>{1, 5, 6, 7}));
  EXPECT_EQ(tokenizer->Decode(tokenizer->Encode("aa  b")), "aa  b");
  EXPECT_FALSE(tokenizer->IsAdded(6));
}

TEST(GgufVocab, UnigramVocabulariesAreNormalizedAsSentencePieceDoes) {
  GgufVocab vocab;
  vocab.model = "t5";
  vocab.tokens = {"<pad>", "</s>", "<unk>", "▁a", "a", "▁", "▁ab"};
  vocab.scores = {0, 0, 0, -2, -3, -4, -1};
  vocab.types = {3, 3, 2, 1, 1, 1, 1};
  vocab.unk = 2;
  vocab.eos = 1;
  vocab.remove_extra_whitespaces = true;
  const auto tokenizer = Tokenizer::FromGguf(vocab);
  EXPECT_EQ(tokenizer->Encode("  aa   ab "), (std::vector<int32_t>{3, 4, 6, 1}));
  EXPECT_EQ(tokenizer->Encode("xy"), (std::vector<int32_t>{5, 2, 1}));
}

TEST(GgufVocab, RefusalsNameTheKey) {
  const std::vector<std::pair<std::function<void(GgufVocab&)>, std::string>> cases = {
      {[](GgufVocab& v) { v.model = "rwkv"; }, "tokenizer.ggml.model 'rwkv' is not supported"},
      {[](GgufVocab& v) { v.pre = "odd"; }, "tokenizer.ggml.pre 'odd' is not supported"},
      {[](GgufVocab& v) { v.tokens.clear(); }, "tokenizer.ggml.tokens is missing or empty"},
      {[](GgufVocab& v) { v.types.pop_back(); }, "tokenizer.ggml.token_type holds 11 numbers for 12 tokens"},
      {[](GgufVocab& v) { v.scores = {1}; }, "tokenizer.ggml.scores holds 1 numbers"},
      {[](GgufVocab& v) { v.tokens[2] = "\xFF"; }, "tokenizer.ggml.tokens[2] is not valid UTF-8"},
      {[](GgufVocab& v) { v.tokens[2].assign(1 << 20, 'a'); }, "tokenizer.ggml.tokens[2] has 1048576 bytes"},
      {[](GgufVocab& v) { v.merges[1] = "ab"; }, "tokenizer.ggml.merges[1] 'ab' is not two tokens"},
      {[](GgufVocab& v) { v.merges[1] = "a x"; }, "tokenizer.ggml.merges[1] needs token 'x'"},
      {[](GgufVocab& v) { v.merges[1] = "b a"; }, "tokenizer.ggml.merges[1] needs token 'ba'"},
      {[](GgufVocab& v) { v.merges.clear(); }, "tokenizer.ggml.merges is missing or empty"},
      {[](GgufVocab& v) { v.eos = 12; }, "tokenizer.ggml.eos_token_id is 12, outside of the 12 tokens"},
      {[](GgufVocab& v) { v.bos = -1; }, "tokenizer.ggml.bos_token_id is -1"},
      {[](GgufVocab& v) { v.eot = int64_t{1} << 40; }, "tokenizer.ggml.eot_token_id"},
      {[](GgufVocab& v) { v.chat_template = "\xFF"; }, "tokenizer.chat_template is not valid UTF-8"},
      {[](GgufVocab& v) {
         v.model = "llama";
         v.merges.clear();
       },
       "tokenizer.ggml.scores is missing"},
      {[](GgufVocab& v) { v.model = "t5"; }, "tokenizer.ggml.scores is missing"},
      {[](GgufVocab& v) { v.scores.assign(12, __builtin_nanf("")); }, "tokenizer.ggml.scores holds a NaN"},
  };
  for (const auto& [spoil, part] : cases) {
    const std::string message = Refusal(Gpt2(), spoil);
    EXPECT_NE(message.find(part), std::string::npos) << part << " but: " << message;
  }
}

}  // namespace
}  // namespace vllm
