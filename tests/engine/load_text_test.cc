// Where tokenizers, chat templates and defaults of generation come from.
#include "engine/load_text.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/load/model_files_util.h"
#include "tests/model/tiny_model_util.h"

namespace vllm {
namespace {

using namespace testing;

// A tiny folder, with whatever a test adds before Open().
struct Files {
  std::string folder = WriteTinyModel("llama");
  void Write(const std::string& name, const std::string& text) const { std::ofstream(folder + "/" + name) << text; }
  Checkpoint Open() const { return LoadCheckpoint(folder); }
};

std::string Rendered(const ChatTemplate& chat_template) {
  const base::Json messages = {{{"role", "user"}, {"content", "hi"}}};
  return chat_template.Render({.messages = messages}).ValueOrThrow();
}

TEST(LoadTextTest, ATokenizerOfAnotherFolderWins) {
  const Files model, other;
  other.Write("tokenizer.json",
              R"({"version":"1.0","added_tokens":[],"normalizer":null,"pre_tokenizer":null,"post_processor":null,)"
              R"("decoder":null,"model":{"type":"BPE","vocab":{"z":0},"merges":[]}})");
  EXPECT_EQ(LoadTokenizer(model.Open(), "")->TokenText(0), "t0");
  EXPECT_EQ(LoadTokenizer(model.Open(), other.folder)->TokenText(0), "z");
}

TEST(LoadTextTest, ATokenizerThatIsNotThereIsTold) {
  const Files model;
  const Checkpoint checkpoint = model.Open();
  EXPECT_EQ(ErrorOf([&] { LoadTokenizer(checkpoint, "/nowhere"); }).code, base::ErrorCode::kNotFound);
}

TEST(LoadTextTest, WithoutATemplateThereIsNone) {
  const Files model;
  EXPECT_EQ(LoadChatTemplate(*LoadTokenizer(model.Open(), ""), ""), nullptr);
}

TEST(LoadTextTest, TheModelsTemplateIsTaken) {
  const Files model;
  model.Write("tokenizer_config.json", R"({"chat_template":"{{ messages[0].content }}"})");
  const auto chat_template = LoadChatTemplate(*LoadTokenizer(model.Open(), ""), "");
  ASSERT_NE(chat_template, nullptr);
  EXPECT_EQ(Rendered(*chat_template), "hi");
}

TEST(LoadTextTest, ATemplateIsAFileOrTheTemplateItself) {
  const Files model;
  model.Write("mine.jinja", "{{ messages }}");
  const auto tokenizer = LoadTokenizer(model.Open(), "");
  EXPECT_NE(LoadChatTemplate(*tokenizer, model.folder + "/mine.jinja"), nullptr);
  EXPECT_NE(LoadChatTemplate(*tokenizer, "{{ messages }}"), nullptr);
  EXPECT_EQ(ErrorOf([&] { LoadChatTemplate(*tokenizer, "mine.jinja"); }).message,
            "chat_template: 'mine.jinja' is neither a file nor a template");
}

TEST(LoadTextTest, ATemplateThatDoesNotParseIsTold) {
  const Files model;
  const auto tokenizer = LoadTokenizer(model.Open(), "");
  EXPECT_NE(ErrorOf([&] { LoadChatTemplate(*tokenizer, "{% for %}"); }).message, "");
}

TEST(LoadTextTest, DefaultsOfGenerationComeFromTheModelUnlessToldOtherwise) {
  const Files model, other;
  model.Write("generation_config.json",
              R"({"temperature":0.6,"top_p":0.9,"top_k":20,"repetition_penalty":1.1,"max_new_tokens":7,)"
              R"("eos_token_id":[2,5]})");
  other.Write("generation_config.json", R"({"temperature":0.1})");
  const Checkpoint checkpoint = model.Open();
  const auto tokenizer = LoadTokenizer(checkpoint, "");
  const GenerationDefaults own = LoadGenerationDefaults(checkpoint, *tokenizer, "auto");
  EXPECT_EQ(own.temperature, 0.6);
  EXPECT_EQ(own.top_p, 0.9);
  EXPECT_EQ(own.top_k, 20);
  EXPECT_EQ(own.repetition_penalty, 1.1);
  EXPECT_EQ(own.max_new_tokens, 7);
  EXPECT_EQ(own.extra_eos_token_ids, (std::vector<int32_t>{2, 5}));
  EXPECT_EQ(LoadGenerationDefaults(checkpoint, *tokenizer, "vllm").temperature, std::nullopt);
  EXPECT_EQ(LoadGenerationDefaults(checkpoint, *tokenizer, other.folder).temperature, 0.1);
}

TEST(LoadTextTest, AGgufFileBringsVocabularyAndTemplate) {
  GgufWriter writer = SmallModel();
  writer.AddString("tokenizer.ggml.model", "gpt2");
  writer.AddString("tokenizer.ggml.pre", "gpt-2");
  std::erase_if(writer.keys, [](const auto& key) { return key.first == "tokenizer.ggml.tokens"; });
  const std::vector<std::string> tokens = {"a", "b", "ab"}, merges = {"a b"};
  writer.AddStrings("tokenizer.ggml.tokens", tokens);
  writer.AddStrings("tokenizer.ggml.merges", merges);
  writer.AddString("tokenizer.chat_template", "{{ messages }}");
  const TempFolder folder;
  const std::string path = folder.Write("model.gguf", writer.Bytes());
  const auto tokenizer = LoadTokenizer(LoadCheckpoint(path), "");
  EXPECT_EQ(tokenizer->TokenText(1), "b");
  EXPECT_NE(LoadChatTemplate(*tokenizer, ""), nullptr);
  const Files model;
  EXPECT_EQ(LoadTokenizer(model.Open(), path)->TokenText(1), "b");
}

TEST(LoadTextTest, AGgufKeyOfTheWrongTypeIsTold) {
  GgufWriter writer = SmallModel();
  writer.AddNumber("tokenizer.ggml.model", MetaType::kU32, uint32_t{7});
  const TempFolder folder;
  const Checkpoint checkpoint = LoadCheckpoint(folder.Write("model.gguf", writer.Bytes()));
  EXPECT_NE(ErrorOf([&] { LoadTokenizer(checkpoint, ""); }).message.find("tokenizer.ggml.model has the wrong type"),
            std::string::npos);
}

}  // namespace
}  // namespace vllm
