// Hostile and unusual tokenizer.json texts: one line that names the place.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/limits.h"
#include "base/result.h"
#include "tests/text/tokenizer/corpus_util.h"

namespace vllm {
namespace {

constexpr const char* kModel = R"("model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]})";

std::string With(const std::string& fields) { return "{" + fields + (fields.empty() ? "" : ",") + kModel + "}"; }

std::string Bpe(const std::string& fields) { return R"({"model":{"type":"BPE",)" + fields + "}}"; }

TEST(TokenizerJson, TheSmallestFileWorks) {
  EXPECT_EQ(Tokenizer::FromTokenizerJson(With(""))->Encode("abba"), (std::vector<int32_t>{2, 1, 0}));
}

TEST(TokenizerJson, MergesMayBePairsOrLines) {
  EXPECT_EQ(Tokenizer::FromTokenizerJson(Bpe(R"("vocab":{"a":0,"b":1,"ab":2},"merges":[["a","b"]])"))->Encode("ab"),
            std::vector<int32_t>{2});
  EXPECT_EQ(Tokenizer::FromTokenizerJson(Bpe(R"("vocab":{"a":0,"b":1,"ab":2},"merges":["#version: 0.2","a b"])"))
                ->Encode("ab"),
            std::vector<int32_t>{2});
}

TEST(TokenizerJson, FilesWithoutAModelTypeAreUnderstood) {
  EXPECT_EQ(Tokenizer::FromTokenizerJson(R"({"model":{"vocab":{"a":0},"merges":[]}})")->Encode("aa").size(), 2u);
  EXPECT_EQ(Tokenizer::FromTokenizerJson(R"({"model":{"vocab":[["?",0],["a",-1.5]],"unk_id":0}})")->Encode("aa").size(),
            2u);
}

TEST(TokenizerJson, RefusalsNameThePlace) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "no valid JSON"},
      {"[]", "the file is no object"},
      {"{}", "the file has no field 'model'"},
      {"{\"model\":3}", "model is no object"},
      {R"({"model":{"type":"Magic","vocab":{}}})", "model.type 'Magic' is not supported"},
      {R"({"model":{"type":7}})", "model.type is no string"},
      {Bpe(R"("vocab":[],"merges":[])"), "model.vocab is no object"},
      {Bpe(R"("vocab":{"a":-1},"merges":[])"), "model.vocab gives token 'a' an id"},
      {Bpe(R"("vocab":{"a":99999999999},"merges":[])"), "model.vocab gives token 'a' an id"},
      {Bpe(R"("vocab":{"a":"0"},"merges":[])"), "model.vocab gives token 'a' an id"},
      {Bpe(R"("vocab":{"a":0})"), "model has no field 'merges'"},
      {Bpe(R"("vocab":{"a":0},"merges":["a"])"), "model.merges[0] is not two tokens"},
      {Bpe(R"("vocab":{"a":0},"merges":["a a a"])"), "model.merges[0] is not two tokens"},
      {Bpe(R"("vocab":{"a":0},"merges":[["a"]])"), "model.merges[0] is not two tokens"},
      {Bpe(R"("vocab":{"a":0},"merges":[["a","a","a"]])"), "model.merges[0] is not two tokens"},
      {Bpe(R"("vocab":{"a":0},"merges":[["a",1]])"), "model.merges[0][1] is no string"},
      {Bpe(R"("vocab":{"a":0},"merges":["a x"])"), "model.merges[0] needs token 'x'"},
      {Bpe(R"("vocab":{"a":0},"merges":["a a"])"), "model.merges[0] needs token 'aa'"},
      {Bpe(R"("vocab":{"a":0},"merges":[7])"), "model.merges[0] is no array"},
      {Bpe(R"("vocab":{"a":0},"merges":[],"dropout":0.5)"), "model.dropout 'dropout' is not supported"},
      {Bpe(R"("vocab":{"a":0},"merges":[],"byte_fallback":1)"), "model.byte_fallback is not true or false"},
      {R"({"model":{"type":"Unigram","vocab":[["a"]]}})", "model.vocab[0] is no pair"},
      {R"({"model":{"type":"Unigram","vocab":[["a","b"]]}})", "model.vocab[0][1] is no number"},
      {R"({"model":{"type":"Unigram","vocab":[["a",1]],"unk_id":1}})", "model.unk_id is not in the vocabulary"},
      {R"({"model":{"type":"WordPiece","vocab":{},"unk_token":"x"}})", "model.unk_token 'x' is not in the vocabulary"},
      {R"({"model":{"type":"WordPiece","vocab":{"x":0},"unk_token":"x","max_input_chars_per_word":99999}})",
       "model.max_input_chars_per_word is no integer"},
      {With(R"("version":"2.0")"), "version '2.0' is not supported"},
      {With(R"("normalizer":{"type":"Magic"})"), "normalizer 'Magic' is not supported"},
      {With(R"("normalizer":{"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"X"}]})"),
       "normalizer.normalizers[1] 'X' is not supported"},
      {With(R"("normalizer":{"type":"Replace","pattern":{"Regex":"("},"content":""})"),
       "normalizer.pattern.Regex is not usable: regular expression '('"},
      {With(R"("normalizer":{"type":"Replace","pattern":{},"content":""})"), "normalizer.pattern has no field 'Regex'"},
      {With(R"("normalizer":{"type":"Precompiled","precompiled_charsmap":"AAAA"})"),
       "normalizer.precompiled_charsmap is not usable"},
      {With(R"("normalizer":{"type":"Precompiled","precompiled_charsmap":"!"})"),
       "normalizer.precompiled_charsmap is no base64"},
      {With(R"("pre_tokenizer":{"type":"UnicodeScripts"})"), "pre_tokenizer 'UnicodeScripts' is not supported"},
      {With(R"("pre_tokenizer":{"type":"Split","pattern":{"Regex":"[a&&b]"},"behavior":"Isolated","invert":false})"),
       "class intersection"},
      {With(R"("pre_tokenizer":{"type":"Split","pattern":{"String":" "},"behavior":"Odd","invert":false})"),
       "pre_tokenizer.behavior 'Odd' is not supported"},
      {With(R"("pre_tokenizer":{"type":"Metaspace","replacement":"ab"})"),
       "pre_tokenizer.replacement is not one character"},
      {With(R"("pre_tokenizer":{"type":"Metaspace","replacement":"_","prepend_scheme":"odd"})"),
       "pre_tokenizer.prepend_scheme 'odd' is not supported"},
      {With(
           R"("pre_tokenizer":{"type":"Metaspace","replacement":"_","prepend_scheme":"first","add_prefix_space":false})"),
       "contradicts"},
      {With(R"("pre_tokenizer":{"type":"FixedLength","length":0})"), "pre_tokenizer.length is no integer"},
      {With(R"("decoder":{"type":"Magic"})"), "decoder 'Magic' is not supported"},
      {With(R"("decoder":{"type":"Strip","content":" ","start":-1,"stop":0})"), "decoder.start is no integer"},
      {With(R"("post_processor":{"type":"Magic"})"), "post_processor 'Magic' is not supported"},
      {With(R"("post_processor":{"type":"TemplateProcessing","single":[],"special_tokens":{}})"),
       "post_processor.single must hold sequence A once"},
      {With(R"("post_processor":{"type":"TemplateProcessing","single":[{"Sequence":{"id":"B"}}]})"),
       "post_processor.single must hold sequence A once"},
      {With(
           R"("post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"x"}}],"special_tokens":{}})"),
       "'x' is not among special_tokens"},
      {With(R"("post_processor":{"type":"BertProcessing","sep":["x"],"cls":["x",1]})"), "is no pair of token and id"},
      {With(R"("added_tokens":[{"id":3}])"), "added_tokens[0] has no field 'content'"},
      {With(
           R"("added_tokens":[{"id":-3,"content":"x","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":false}])"),
       "added_tokens[0].id is no integer"},
  };
  for (const auto& [json, part] : cases) {
    const std::string message = RefusalOf(json);
    EXPECT_NE(message.find(part), std::string::npos) << json << " gave: " << message;
    EXPECT_EQ(message.find('\n'), std::string::npos);
  }
}

TEST(TokenizerJson, DeepNestingIsRefused) {
  std::string normalizer = R"({"type":"NFC"})";
  for (int i = 0; i < 20; ++i) normalizer = R"({"type":"Sequence","normalizers":[)" + normalizer + "]}";
  EXPECT_NE(RefusalOf(With("\"normalizer\":" + normalizer)).find("nested too deep"), std::string::npos);
  EXPECT_NE(RefusalOf(std::string(100000, '[')).find("no valid JSON"), std::string::npos);
}

TEST(TokenizerJson, AnOverlongTokenIsRefused) {
  EXPECT_NE(RefusalOf(Bpe("\"vocab\":{\"" + std::string(base::kMaxTokenBytes + 1, 'a') + "\":0},\"merges\":[]"))
                .find("holds a token of"),
            std::string::npos);
}

TEST(TokenizerJson, AMutilatedFileNeverCrashes) {
  const std::string good = ReadFile(GoldenPath("byte_level.json"));
  Random random(9);
  for (int round = 0; round < 60; ++round) {
    std::string bad = good;
    for (int i = 0; i < 3; ++i) {
      const size_t at = random.Next(2) == 0 ? random.Next(3000) : bad.size() - 1 - random.Next(3000);
      bad[at] = "{}[]\",:0x"[random.Next(9)];
    }
    RefusalOf(bad);
  }
  for (size_t size = 0; size < good.size(); size += 997) EXPECT_NE(RefusalOf(good.substr(0, size)), "");
}

}  // namespace
}  // namespace vllm
