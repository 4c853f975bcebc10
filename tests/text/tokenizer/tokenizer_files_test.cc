// Model folders: which files are read, and which win.
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/result.h"
#include "tests/text/tokenizer/corpus_util.h"

namespace vllm {
namespace {

class TokenizerFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("токен " + std::to_string(getpid()));
    std::filesystem::create_directories(folder_ / "additional_chat_templates");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  std::unique_ptr<Tokenizer> Load() { return Tokenizer::FromDirectory(folder_.string()); }
  std::filesystem::path folder_;
};

constexpr const char* kJson = R"({"model":{"type":"BPE","vocab":{"a":0,"<s>":1},"merges":[]}})";

TEST_F(TokenizerFiles, AnEmptyFolderIsRefusedByName) {
  try {
    Load();
    FAIL();
  } catch (const base::Exception& e) {
    EXPECT_EQ(e.code(), base::ErrorCode::kNotFound);
    EXPECT_NE(std::string(e.what()).find("neither tokenizer.json nor tokenizer.model"), std::string::npos);
  }
}

TEST_F(TokenizerFiles, ConfigAndTemplatesAreFound) {
  Write("tokenizer.json", kJson);
  Write("tokenizer_config.json", R"({"chat_template":"config"})");
  Write("special_tokens_map.json", R"({"bos_token":"<s>"})");
  EXPECT_EQ(Load()->chat_template(), "config");
  EXPECT_EQ(Load()->bos_id(), 1);
  Write("chat_template.json", R"({"chat_template":"json"})");
  EXPECT_EQ(Load()->chat_template(), "json");
  Write("chat_template.jinja", "jinja");
  Write("additional_chat_templates/rag.jinja", "rag");
  EXPECT_EQ(Load()->chat_template(), "jinja");
  EXPECT_EQ(Load()->chat_templates().at("rag"), "rag");
}

TEST_F(TokenizerFiles, ASentencePieceModelIsReadWhenThereIsNoJson) {
  Write("tokenizer.model", ReadFile(GoldenPath("bpe.model")));
  EXPECT_EQ(Load()->TokenId("<unk>"), 0);
  Write("tokenizer.json", kJson);
  EXPECT_EQ(Load()->TokenId("<unk>"), std::nullopt);
}

TEST_F(TokenizerFiles, MessagesNameTheFile) {
  Write("tokenizer.json", "{}");
  try {
    Load();
    FAIL();
  } catch (const base::Exception& e) {
    EXPECT_NE(std::string(e.what()).find("/tokenizer.json: "), std::string::npos);
  }
  Write("chat_template.jinja", "\xFF");
  EXPECT_THROW(Load(), base::Exception);
}

}  // namespace
}  // namespace vllm
