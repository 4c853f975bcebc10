// The options map: provenance, typed reading, and messages that say where a wrong value came from.
#include "base/options.h"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

namespace base {
namespace {

std::string MessageOf(const std::function<void()>& action) {
  try {
    action();
  } catch (const Exception& exception) {
    return exception.what();
  }
  return "no exception";
}

TEST(Options, DashesAndUnderscoresAreOneName) {
  Options options;
  options.Set("max-model-len", "7");
  EXPECT_EQ(options.FindInt("max_model_len"), 7);
  EXPECT_EQ(options.FindInt("max-model-len"), 7);
  EXPECT_FALSE(options.Has("max_model"));
}

TEST(Options, CommandLineWinsOverFileAndFileOverEnvironment) {
  Options options;
  options.Set("port", "2", OptionSource::kCommandLine, "--port");
  options.Set("port", "1", OptionSource::kConfigFile, "c.yaml: port");
  EXPECT_EQ(options.Int("port", 0), 2);
  options.Set("host", "e", OptionSource::kEnvironment, "HOST");
  options.Set("host", "f", OptionSource::kConfigFile, "c.yaml: host");
  EXPECT_EQ(options.String("host", ""), "f");
}

TEST(Options, TheLastValueOfOneSourceWins) {
  Options options;
  options.Set("port", "1", OptionSource::kCommandLine, "--port");
  options.Set("port", "2", OptionSource::kCommandLine, "--port");
  EXPECT_EQ(options.Int("port", 0), 2);
}

TEST(Options, AppendJoinsValuesOfOneSourceOnly) {
  Options options;
  options.Set("api_key", "env", OptionSource::kEnvironment, "VLLM_API_KEY");
  options.Append("api_key", {"a"}, OptionSource::kCommandLine, "--api-key");
  options.Append("api_key", {"b", "c"}, OptionSource::kCommandLine, "--api-key");
  EXPECT_EQ(options.List("api_key"), (std::vector<std::string>{"a", "b", "c"}));
}

TEST(Options, AbsentOptionsGiveTheFallback) {
  const Options options;
  EXPECT_EQ(options.Int("n", 5), 5);
  EXPECT_EQ(options.String("s", "x"), "x");
  EXPECT_TRUE(options.Bool("b", true));
  EXPECT_EQ(options.FindDouble("d"), std::nullopt);
  EXPECT_TRUE(options.List("l").empty());
}

TEST(Options, AWrongValueNamesOriginAndValue) {
  Options options;
  options.Set("max_num_seqs", "many", OptionSource::kCommandLine, "--max-num-seqs");
  EXPECT_EQ(MessageOf([&] { static_cast<void>(options.FindInt("max_num_seqs")); }),
            "--max-num-seqs: 'many' is not a whole number");
}

TEST(Options, AWrongChoiceListsTheChoices) {
  Options options;
  options.Set("numerics", "fast", OptionSource::kConfigFile, "c.yaml: numerics");
  const std::string_view choices[] = {"exact", "default"};
  EXPECT_EQ(MessageOf([&] { static_cast<void>(options.FindChoice("numerics", choices)); }),
            "c.yaml: numerics: 'fast' is not one of exact, default");
}

TEST(Options, SeveralValuesAreNotOne) {
  Options options;
  options.SetList("port", {"1", "2"}, OptionSource::kConfigFile, "c.yaml: port");
  EXPECT_EQ(MessageOf([&] { static_cast<void>(options.FindInt("port")); }), "c.yaml: port: '1 2' must be one value");
}

TEST(Options, BooleansHaveFourSpellingsEach) {
  for (const char* yes : {"true", "1", "Yes", "ON"}) EXPECT_TRUE(*ParseBool(yes)) << yes;
  for (const char* no : {"false", "0", "No", "OFF"}) EXPECT_FALSE(*ParseBool(no)) << no;
  EXPECT_FALSE(ParseBool("maybe").ok());
  EXPECT_FALSE(ParseBool("").ok());
}

TEST(Options, IntegersAreWholeTexts) {
  EXPECT_EQ(*ParseInt("-12"), -12);
  for (const char* bad : {"", " 1", "1 ", "1.0", "0x10", "+1", "9223372036854775808"})
    EXPECT_FALSE(ParseInt(bad).ok()) << bad;
}

TEST(Options, NumbersAreFinite) {
  EXPECT_EQ(*ParseDouble("0.25"), 0.25);
  EXPECT_EQ(*ParseDouble("1e-3"), 1e-3);
  for (const char* bad : {"", "nan", "inf", "1e999", "1,5"}) EXPECT_FALSE(ParseDouble(bad).ok()) << bad;
}

TEST(Options, SizesFollowTheLetterCaseOfVllm) {
  EXPECT_EQ(*ParseSize("4096"), 4096);
  EXPECT_EQ(*ParseSize("1k"), 1000);
  EXPECT_EQ(*ParseSize("1K"), 1024);
  EXPECT_EQ(*ParseSize("25.6k"), 25600);
  EXPECT_EQ(*ParseSize("2m"), 2000000);
  EXPECT_EQ(*ParseSize("1G"), int64_t{1} << 30);
  EXPECT_EQ(*ParseSize("-1"), -1);
}

TEST(Options, SizesWithAByteUnitSayWhichTheyMean) {
  EXPECT_EQ(*ParseSize("2GiB"), int64_t{2} << 30);
  EXPECT_EQ(*ParseSize("512MB"), 512000000);
  EXPECT_EQ(*ParseSize("3kB"), 3000);
  EXPECT_EQ(*ParseSize("16B"), 16);
  EXPECT_EQ(*ParseSize("1.5GiB"), int64_t{3} << 29);
}

TEST(Options, ImpossibleSizesAreRefused) {
  for (const char* bad : {"", "k", "1x", "1kk", "1Ki", "1.5", "1.5K", "1..5k", "99999999999G", "4 k"})
    EXPECT_FALSE(ParseSize(bad).ok()) << bad;
}

TEST(Options, JsonValuesAreParsedAndBounded) {
  Options options;
  options.Set("kwargs", R"({"a":[1]})");
  EXPECT_EQ((*options.FindJson("kwargs"))["a"][0], 1);
  options.Set("kwargs", std::string(1000, '['));
  EXPECT_EQ(MessageOf([&] { static_cast<void>(options.FindJson("kwargs")); }).substr(0, 40),
            "kwargs: JSON nested deeper than 128 leve");
}

TEST(Options, NamesListsWhatIsSet) {
  Options options;
  options.Set("b", "1");
  options.Set("a-c", "1");
  EXPECT_EQ(options.Names(), (std::vector<std::string>{"a_c", "b"}));
}

}  // namespace
}  // namespace base
