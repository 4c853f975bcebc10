// tokenizer_config.json: special tokens, BOS and EOS, chat templates; and its errors.
#include <gtest/gtest.h>

#include "tests/text/tokenizer/corpus_util.h"

namespace vllm {
namespace {

constexpr const char* kJson = R"({"model":{"type":"BPE","vocab":{"a":0,"<s>":1,"</s>":2},"merges":[]}})";

std::unique_ptr<Tokenizer> Make(const std::string& config) { return Tokenizer::FromTokenizerJson(kJson, config); }

TEST(TokenizerConfig, NamedSpecialTokensBecomeSpecialAddedTokens) {
  const auto tokenizer =
      Make(R"({"bos_token":"<s>","eos_token":{"content":"</s>","lstrip":false},"pad_token":null,"unk_token":"<new>"})");
  EXPECT_EQ(tokenizer->bos_id(), 1);
  EXPECT_EQ(tokenizer->eos_id(), 2);
  EXPECT_EQ(tokenizer->unk_id(), 3);
  EXPECT_EQ(tokenizer->pad_id(), std::nullopt);
  EXPECT_TRUE(tokenizer->IsSpecial(2));
  EXPECT_EQ(tokenizer->special_tokens().at("eos_token"), "</s>");
  EXPECT_EQ(tokenizer->Encode("a</s>a"), (std::vector<int32_t>{0, 2, 0}));
  EXPECT_EQ(tokenizer->vocab_size(), 4);
}

TEST(TokenizerConfig, AddBosAndAddEosDecideWhatSurroundsAText) {
  EXPECT_EQ(Make(R"({"bos_token":"<s>","eos_token":"</s>","add_bos_token":true})")->Encode("a"),
            (std::vector<int32_t>{1, 0}));
  EXPECT_EQ(Make(R"({"bos_token":"<s>","eos_token":"</s>","add_bos_token":true,"add_eos_token":true})")->Encode("a"),
            (std::vector<int32_t>{1, 0, 2}));
  EXPECT_EQ(Make(R"({"bos_token":"<s>","add_bos_token":false})")->Encode("a"), (std::vector<int32_t>{0}));
  EXPECT_EQ(Make(R"({"add_bos_token":true})")->Encode("a"), (std::vector<int32_t>{0}));
}

TEST(TokenizerConfig, ExtraAndDecoderTokensAreAdded) {
  const auto tokenizer =
      Make(R"({"added_tokens_decoder":{"7":{"content":"<x>","special":true}},"additional_special_tokens":["<y>"]})");
  EXPECT_TRUE(tokenizer->IsSpecial(tokenizer->TokenId("<x>").value()));
  EXPECT_EQ(tokenizer->Encode("<y><x>"), (std::vector<int32_t>{4, 3}));
}

TEST(TokenizerConfig, TemplatesComeAloneOrByName) {
  EXPECT_EQ(Make(R"({"chat_template":"{{x}}"})")->chat_template(), "{{x}}");
  EXPECT_EQ(Make("")->chat_template(), "");
  const auto named =
      Make(R"({"chat_template":[{"name":"default","template":"d"},{"name":"tool_use","template":"t"}]})");
  EXPECT_EQ(named->chat_template(), "d");
  EXPECT_EQ(named->chat_templates().at("tool_use"), "t");
}

TEST(TokenizerConfig, CleanUpIsForWordModelsOnly) {
  const std::string words = R"({"model":{"type":"WordLevel","vocab":{"a":0,".":1},"unk_token":"a"}})";
  const auto tokenizer = Tokenizer::FromTokenizerJson(words, R"({"clean_up_tokenization_spaces":true})");
  EXPECT_EQ(tokenizer->Decode(std::vector<int32_t>{0, 1}), "a.");
  EXPECT_EQ(tokenizer->Decode(std::vector<int32_t>{0, 1}, {.clean_up_spaces = false}), "a .");
}

TEST(TokenizerConfig, RefusalsNameTheField) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"[]", "the file is no JSON object"},
      {"{", "invalid JSON"},
      {R"({"add_bos_token":"yes"})", "add_bos_token is not true or false"},
      {R"({"bos_token":7})", "bos_token is no string"},
      {R"({"bos_token":{}})", "bos_token has no content"},
      {R"({"chat_template":7})", "chat_template is neither"},
      {R"({"chat_template":[7]})", "chat_template holds an entry without"},
      {R"({"added_tokens_decoder":[]})", "added_tokens_decoder is no object"},
      {R"({"added_tokens_decoder":{"x":{}}})", "added_tokens_decoder has key 'x'"},
      {R"({"added_tokens_decoder":{"1":{}}})", "added_tokens_decoder.1 has no content"},
  };
  for (const auto& [config, part] : cases) {
    const std::string message = RefusalOf(kJson, config);
    EXPECT_NE(message.find(part), std::string::npos) << config << " gave: " << message;
    EXPECT_EQ(message.find("tokenizer_config.json: "), 0u);
  }
}

}  // namespace
}  // namespace vllm
