// The data sets of vllm bench serve, with a tokenizer whose tokens are bytes.
#include "app/serving/dataset.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "tests/load/model_files_util.h"
#include "tests/server/fake_engine.h"

namespace vllm {
namespace {

// The vocabulary of the bytes that are ordinary characters of their own.
std::string LettersJson() {
  std::string vocab;
  for (char c = '#'; c < 'z'; ++c)
    if (c != '\\') vocab += "\"" + std::string(1, c) + "\":" + std::to_string(c - '#') + ",";
  const std::string all = testing::ByteTokenizerJson(), from = "\"vocab\":{", to = "},\"merges\"";
  vocab.back() = '}';
  return all.substr(0, all.find(from) + from.size()) + vocab + all.substr(all.find(to) + 1);
}

const Tokenizer& Bytes() {
  static const std::unique_ptr<Tokenizer> tokenizer = Tokenizer::FromTokenizerJson(LettersJson());
  return *tokenizer;
}

base::Options Given(std::initializer_list<std::pair<const char*, std::string>> pairs) {
  base::Options options;
  for (const auto& [name, value] : pairs) options.Set(name, value);
  return options;
}

std::vector<SampleRequest> Make(const base::Options& options, uint64_t seed = 0) {
  return MakeDataset(options, {.tokenizer = &Bytes(), .seed = seed});
}

std::string Error(const base::Options& options) {
  try {
    Make(options);
  } catch (const base::Exception& error) {
    return error.what();
  }
  return "";
}

TEST(Dataset, RandomPromptsHaveTheLengthsThatWereAsked) {
  const auto samples = Make(Given({{"num_prompts", "20"}, {"random_input_len", "40"}, {"random_output_len", "9"}}));
  ASSERT_EQ(samples.size(), 20u);
  for (const SampleRequest& sample : samples) {
    EXPECT_EQ(sample.prompt.size(), 40u);
    EXPECT_EQ(sample.prompt_len, 40);
    EXPECT_EQ(sample.output_len, 9);
  }
}

TEST(Dataset, EqualSeedsGiveEqualPromptsAndOthersOthers) {
  const base::Options options = Given({{"num_prompts", "5"}, {"random_input_len", "30"}});
  EXPECT_EQ(Make(options, 1)[4].prompt, Make(options, 1)[4].prompt);
  EXPECT_NE(Make(options, 1)[4].prompt, Make(options, 2)[4].prompt);
}

TEST(Dataset, TheRangeRatioSpreadsBothLengths) {
  const auto samples = Make(Given({{"num_prompts", "200"},
                                   {"random_output_len", "100"},
                                   {"random_range_ratio", R"({"input":0,"output":0.5})"},
                                   {"random_input_len", "8"}}));
  int64_t least = 1000, most = 0;
  for (const SampleRequest& sample : samples) {
    least = std::min(least, sample.output_len);
    most = std::max(most, sample.output_len);
  }
  EXPECT_GE(least, 50);
  EXPECT_LE(least, 60);
  EXPECT_GE(most, 140);
  EXPECT_LE(most, 150);
}

TEST(Dataset, RandomPromptsShareTheirPrefix) {
  const auto samples = Make(Given({{"num_prompts", "3"}, {"random_prefix_len", "32"}, {"random_input_len", "8"}}));
  EXPECT_EQ(samples[0].prompt.substr(0, 32), samples[1].prompt.substr(0, 32));
  EXPECT_NE(samples[0].prompt, samples[1].prompt);
}

TEST(Dataset, PrefixRepetitionSharesItsPrefixesEvenly) {
  const auto samples = Make(Given({{"dataset_name", "prefix_repetition"},
                                   {"num_prompts", "9"},
                                   {"prefix_repetition_num_prefixes", "3"},
                                   {"prefix_repetition_prefix_len", "24"},
                                   {"prefix_repetition_suffix_len", "4"}}));
  ASSERT_EQ(samples.size(), 9u);
  std::multiset<std::string> beginnings;
  for (const SampleRequest& sample : samples) beginnings.insert(sample.prompt.substr(0, 24));
  EXPECT_EQ(std::set<std::string>(beginnings.begin(), beginnings.end()).size(), 3u);
  EXPECT_EQ(beginnings.count(*beginnings.begin()), 3u);
}

TEST(Dataset, ShareGptTakesFirstTurnsOfUsableLengthAndRepeatsThem) {
  const testing::TempFolder folder;
  folder.Write("share.json", R"([{"conversations":[{"value":"hello,there"},{"value":"general"}]},
    {"conversations":[{"value":"one"},{"value":"two more"}]}, {"conversations":[{"value":"alone"}]}, {}])");
  const auto samples = Make(
      Given({{"dataset_name", "sharegpt"}, {"dataset_path", folder.path() + "/share.json"}, {"num_prompts", "3"}}));
  ASSERT_EQ(samples.size(), 3u);
  for (const SampleRequest& sample : samples) {
    EXPECT_EQ(sample.prompt, "hello,there");
    EXPECT_EQ(sample.prompt_len, 11);
    EXPECT_EQ(sample.output_len, 7);
  }
}

TEST(Dataset, CustomReadsLines) {
  const testing::TempFolder folder;
  folder.Write("lines.jsonl", "{\"prompt\":\"ab\",\"output_tokens\":3}\n\n{\"prompt\":\"abcd\",\"output_tokens\":5}\n");
  const auto samples = Make(Given({{"dataset_name", "custom"},
                                   {"dataset_path", folder.path() + "/lines.jsonl"},
                                   {"num_prompts", "0"},
                                   {"custom_output_len", "-1"},
                                   {"skip_chat_template", "true"},
                                   {"disable_shuffle", "true"}}));
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(samples[0].prompt, "ab");
  EXPECT_EQ(samples[0].output_len, 3);
  EXPECT_EQ(samples[1].prompt_len, 4);
}

TEST(Dataset, CustomPromptsGoThroughTheChatTemplate) {
  const testing::TempFolder folder;
  folder.Write("lines.jsonl", "{\"prompt\":\"ab\"}\n");
  const ChatTemplate chat =
      ChatTemplate::Create("<{{ messages[0].content }}>{% if add_generation_prompt %}!{% endif %}").ValueOrThrow();
  const auto samples = MakeDataset(
      Given({{"dataset_name", "custom"}, {"dataset_path", folder.path() + "/lines.jsonl"}, {"num_prompts", "1"}}),
      {.tokenizer = &Bytes(), .chat_template = &chat});
  EXPECT_EQ(samples[0].prompt, "<ab>!");
  EXPECT_EQ(samples[0].output_len, 256);
}

TEST(Dataset, MistakesNameTheirOptionOrLine) {
  const testing::TempFolder folder;
  folder.Write("lines.jsonl", "{\"prompt\":\"ab\"}\n{\"text\":1}\n");
  const std::string lines = folder.path() + "/lines.jsonl";
  EXPECT_NE(Error(Given({{"dataset_name", "custom"}, {"dataset_path", lines}})).find("lines.jsonl:2"),
            std::string::npos);
  EXPECT_NE(Error(Given({{"dataset_name", "sharegpt"}})).find("--dataset-path"), std::string::npos);
  EXPECT_NE(Error(Given({{"random_input_len", "0"}})).find("--random-input-len 0"), std::string::npos);
  EXPECT_NE(Error(Given({{"random_range_ratio", "1"}})).find("[0, 1)"), std::string::npos);
  EXPECT_NE(Error(Given({{"dataset_path", lines}})).find("does not go with"), std::string::npos);
  EXPECT_NE(Error(Given({{"dataset_name", "prefix_repetition"}, {"num_prompts", "2"}})).find("--num-prompts 2"),
            std::string::npos);
}

}  // namespace
}  // namespace vllm
