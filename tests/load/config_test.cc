// Typed reads of configurations: the three verbs, ranges, unknown keys, and JSON that is wrong.
#include "load/config.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "base/limits.h"
#include "base/strings.h"
#include "tests/load/model_files_util.h"

namespace vllm {
namespace {

using testing::ErrorOf;

Config Parse(std::string_view json) { return Config::Parse(json, "config.json"); }

template <class Call>
void ExpectMessage(Call call, std::string_view expected) {
  EXPECT_EQ(ErrorOf(call).message, expected);
}

void ExpectInvalid(std::string_view json, std::string_view part) {
  const base::Error error = ErrorOf([&] { Parse(json); });
  EXPECT_EQ(error.code, base::ErrorCode::kBadFile);
  EXPECT_TRUE(error.message.starts_with("config.json: ")) << error.message;
  EXPECT_NE(error.message.find(part), std::string::npos) << "'" << part << "' is not in: " << error.message;
  EXPECT_EQ(error.message.find('\n'), std::string::npos);
}

TEST(Config, EveryTypeReads) {
  const Config config = Parse(R"({"b": true, "i": 7, "big": -9007199254740993, "d": 1e-6, "s": "silu", "ints": [1, 2],
      "reals": [1, 2.5], "texts": ["a", "ü"], "flags": [true, false], "n": {"x": 3}})");
  EXPECT_TRUE(config.need<bool>("b"));
  EXPECT_EQ(config.need<int>("i"), 7);
  EXPECT_EQ(config.need<int64_t>("big"), -9007199254740993);
  EXPECT_EQ(config.need<double>("d"), 1e-6);
  EXPECT_EQ(config.need<double>("i"), 7.0);
  EXPECT_EQ(config.need<std::string>("s"), "silu");
  EXPECT_EQ(config.need<std::vector<int64_t>>("ints"), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(config.need<std::vector<double>>("reals"), (std::vector<double>{1, 2.5}));
  EXPECT_EQ(config.need<std::vector<std::string>>("texts"), (std::vector<std::string>{"a", "ü"}));
  EXPECT_EQ(config.need<std::vector<bool>>("flags"), (std::vector<bool>{true, false}));
  EXPECT_EQ(config.need<int>("n.x"), 3);
  EXPECT_EQ(config.object("n").need<int>("x"), 3);
  EXPECT_EQ(config.list_size("ints"), 2u);
  EXPECT_EQ(config.keys().size(), 10u);
}

TEST(Config, AnIntegralRealReadsAsAnInteger) {
  EXPECT_EQ(Parse(R"({"theta": 1e6})").need<int64_t>("theta"), 1'000'000);
  ExpectMessage([] { Parse(R"({"theta": 1.5})").need<int64_t>("theta"); },
                "config.json: theta '1.5' is not an integer; correct it or download the model again");
}

TEST(Config, AMissingKeyAndANullAreNamed) {
  const Config config = Parse(R"({"a": null})");
  for (const char* key : {"a", "z"}) {
    ExpectMessage(
        [&] { config.need<int>(key); },
        base::StrCat("config.json: ", key, " is missing; add it (an integer of 32 bits) or download the model again"));
    EXPECT_EQ(config.get<int>(key, 5), 5);
    EXPECT_FALSE(config.has(key));
    EXPECT_FALSE(config.find<int>(key).has_value());
  }
}

TEST(Config, AWrongTypeIsRefusedWithTheValue) {
  const Config config = Parse(R"({"hidden_size": "x", "list": [1, "a"], "flag": 1, "big": 4294967296})");
  ExpectMessage([&] { config.get<int64_t>("hidden_size", 1); },
                "config.json: hidden_size 'x' is not an integer; correct it or download the model again");
  ExpectMessage([&] { config.need<std::vector<int>>("list"); },
                "config.json: list '[2 values]' is not a list of integers; correct it or download the model again");
  ExpectMessage([&] { config.need<bool>("flag"); },
                "config.json: flag '1' is not true or false; correct it or download the model again");
  ExpectMessage([&] { config.need<int>("big"); },
                "config.json: big '4294967296' is not an integer of 32 bits; correct it or download the model again");
  ExpectMessage([&] { config.object("flag"); },
                "config.json: flag '1' is not an object; correct it or download the model again");
  ExpectMessage([&] { config.list_size("flag"); },
                "config.json: flag '1' is not a list; correct it or download the model again");
}

TEST(Config, ValuesOutsideTheirRangeAreRefused) {
  const Config config = Parse(R"({"hidden_size": -3, "layers": 1099511627776, "eps": -1.0, "nan": NaN})");
  ExpectMessage([&] { config.need_in("hidden_size", 1, 1 << 20); },
                "config.json: hidden_size '-3' is not in 1..1048576; correct it or download the model again");
  ExpectMessage([&] { config.get_in("layers", 1, 1, 4096); },
                "config.json: layers '1099511627776' is not in 1..4096; correct it or download the model again");
  EXPECT_NE(ErrorOf([&] { config.need_in_real("eps", 0, 1); }).message, "");
  EXPECT_NE(ErrorOf([&] { config.get_in_real("nan", 0, 0, 1); }).message, "");
  EXPECT_EQ(config.get_in("absent", 9, 1, 4096), 9);
  EXPECT_EQ(config.get_in_real("absent", 0.5, 0, 1), 0.5);
}

TEST(Config, ExpectRefusesAnyOtherValue) {
  const Config config = Parse(R"({"act": "gelu", "bias": true, "none": null})");
  ExpectMessage([&] { config.expect<std::string>("act", "silu"); },
                "config.json: act 'gelu' is not supported (supported: silu); use another model");
  ExpectMessage([&] { config.expect("bias", false); },
                "config.json: bias 'true' is not supported (supported: false); use another model");
  EXPECT_NO_THROW(config.expect("none", 3));
  EXPECT_NO_THROW(config.expect("absent", 3));
  EXPECT_NO_THROW(config.expect("bias", true));
}

TEST(Config, AKeyThatNobodyReadIsRefused) {
  const Config config = Parse(R"({"a": 1, "attn_scale_trick": 2})");
  config.need<int>("a");
  ExpectMessage([&] { config.CheckAllKnown({}); },
                "config.json: attn_scale_trick '2' is a key that this version does not know and that may change the "
                "model's output; remove it if it does not matter");
  const std::array<std::string_view, 1> ignored = {"attn_scale_trick"};
  EXPECT_NO_THROW(config.CheckAllKnown(ignored));
}

TEST(Config, AnAbsentOrNullKeyNeedsNoReader) { EXPECT_NO_THROW(Parse(R"({"a": null})").CheckAllKnown({})); }

TEST(Config, UnknownKeysInsideObjectsAreFound) {
  const std::string_view json = R"({"rope": {"type": "yarn", "odd": 1}})";
  const auto message = [](const Config& config) { return ErrorOf([&] { config.CheckAllKnown({}); }).message; };
  EXPECT_TRUE(message(Parse(json)).starts_with("config.json: rope '{2 keys}' is a key"));
  const Config nested = Parse(json);
  nested.object("rope").need<std::string>("type");
  EXPECT_TRUE(message(nested).starts_with("config.json: rope.odd '1' is a key")) << message(nested);
  const Config dotted = Parse(json);
  dotted.need<std::string>("rope.type");
  EXPECT_TRUE(message(dotted).starts_with("config.json: rope.odd '1' is a key")) << message(dotted);
  const Config whole = Parse(json);
  ASSERT_NE(whole.raw("rope"), nullptr);
  EXPECT_EQ(whole.raw("rope")->keys.size(), 2u);
  EXPECT_EQ(message(whole), "");
}

TEST(Config, AnIgnoredPrefixCoversAllThatStartsSo) {
  const Config config = Parse(R"({"general.name": "x", "general.url": "y", "other": 1})");
  const std::array<std::string_view, 1> ignored = {"general.*"};
  const std::string message = ErrorOf([&] { config.CheckAllKnown(ignored); }).message;
  EXPECT_TRUE(message.starts_with("config.json: other '1' is a key")) << message;
}

TEST(Config, ALiteralKeyWithDotsWinsOverThePath) {
  const Config config = Parse(R"({"a": {"b": 1}, "a.b": 2})");
  EXPECT_EQ(config.need<int>("a.b"), 2);
}

TEST(Config, AnAbsentObjectReadsAsEmpty) {
  const Config nested = Parse("{}").object("rope").object("deeper");
  EXPECT_TRUE(nested.empty());
  ExpectMessage([&] { nested.need<int>("x"); },
                "config.json: rope.deeper.x is missing; add it (an integer of 32 bits) or download the model again");
  EXPECT_TRUE(Config().empty());
}

TEST(Config, RefuseNamesKeyAndValue) {
  const Config config = Parse(R"({"heads": 3})");
  ExpectMessage([&] { config.Refuse("heads", "does not divide hidden_size"); },
                "config.json: heads '3' does not divide hidden_size");
  ExpectMessage([&] { config.Refuse("none", "is needed"); }, "config.json: none (absent) is needed");
}

TEST(Config, AsInPythonTheLastOfTwoEqualKeysCounts) {
  const Config config = Parse(R"({"a": 1, "b": 2, "a": 3})");
  EXPECT_EQ(config.need<int>("a"), 3);
  EXPECT_EQ(config.keys(), (std::vector<std::string>{"a", "b"}));
}

TEST(Config, PythonsNumbersBeyondJsonRead) {
  const Config config =
      Parse(R"({"a": Infinity, "b": -Infinity, "c": NaN, "d": 1000000000000000019884624838656, "e": [0.0, Infinity]})");
  EXPECT_EQ(config.need<double>("a"), HUGE_VAL);
  EXPECT_EQ(config.need<double>("b"), -HUGE_VAL);
  EXPECT_TRUE(std::isnan(config.need<double>("c")));
  EXPECT_EQ(config.need<double>("d"), 1000000000000000019884624838656.0);
  EXPECT_EQ(config.need<std::vector<double>>("e")[1], HUGE_VAL);
  EXPECT_NE(ErrorOf([&] { config.need<int64_t>("d"); }).message, "");
}

TEST(Config, TextThatIsNoJsonObjectIsRefused) {
  ExpectInvalid("", "is empty");
  ExpectInvalid("  \n", "is empty");
  ExpectInvalid("[]", "is not a JSON object");
  ExpectInvalid("3", "is not a JSON object");
  ExpectInvalid("{\"a\": 1", "invalid JSON");
  ExpectInvalid("{\"a\": 1} x", "invalid JSON");
  ExpectInvalid("{\"a\": 1}{}", "more text after the closing brace");
  ExpectInvalid("{\"a\": nul}", "invalid JSON");
  ExpectInvalid("{\"a\": tru}", "invalid");
  ExpectInvalid("{\"a\": 01}", "is no value");
  ExpectInvalid("{\"a\": Infinite}", "is no value");
  ExpectInvalid("{\"a\" 1}", "invalid JSON");
  ExpectInvalid("{\"a\": 1,}", "invalid JSON");
  ExpectInvalid("{\"a\": \"\xff\"}", "invalid JSON");
  ExpectInvalid("{\"a\": \"\\q\"}", "invalid");
  ExpectInvalid(std::string_view("{\"a\": 1\0}", 9), "invalid JSON");
}

TEST(Config, DeepAndLargeTextsAreRefused) {
  std::string deep = "{\"a\":";
  for (int i = 0; i < 20'000; ++i) deep += '[';
  for (int i = 0; i < 20'000; ++i) deep += ']';
  ExpectInvalid(deep + "}", "nested deeper than 64 levels");
  std::string many = "{\"a\":[0";
  for (int64_t i = 0; i < base::kMaxConfigValues; ++i) many += ",0";
  ExpectInvalid(many + "]}", "holds more than 262144 values");
  ExpectInvalid("{\"a\":\"" + std::string(base::kMaxConfigBytes, 'x') + "\"}", "is larger than 16777216 bytes");
}

TEST(Config, MessagesStayOnOneLine) {
  const std::string json = "{\"a\\nb\": \"" + std::string(300, 'y') + "\"}";
  const base::Error error = ErrorOf([&] { Parse(json).CheckAllKnown({}); });
  EXPECT_TRUE(error.message.starts_with("config.json: a\\nb 'yyy")) << error.message;
  EXPECT_LT(error.message.size(), 250u);
}

TEST(Config, AFileIsReadOrNamed) {
  const testing::TempFolder folder;
  const std::string path = folder.Write("generation_config.json", R"({"temperature": 0.6, "eos_token_id": [1, 2]})");
  EXPECT_EQ(Config::FromFile(path).need<double>("temperature"), 0.6);
  const base::Error missing = ErrorOf([&] { Config::FromFile(folder.path() + "/none.json"); });
  EXPECT_EQ(missing.code, base::ErrorCode::kNotFound);
  EXPECT_EQ(missing.message, folder.path() + "/none.json: does not exist");
  EXPECT_EQ(ErrorOf([&] { Config::FromFile(folder.path()); }).message, folder.path() + ": is not a regular file");
}

}  // namespace
}  // namespace vllm
