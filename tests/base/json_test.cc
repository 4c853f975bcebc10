// JSON of clients: bounded depth, errors as values, output that is always valid UTF-8.
#include "base/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/limits.h"

namespace base {
namespace {

std::string Nested(int depth) { return std::string(depth, '[') + std::string(depth, ']'); }

TEST(Json, KeepsTheOrderOfKeys) {
  const Result<Json> value = ParseJson(R"({"b":1,"a":[true,null]})", 8);
  ASSERT_TRUE(value.ok());
  EXPECT_EQ(DumpJson(*value), R"({"b":1,"a":[true,null]})");
}

TEST(Json, DepthAtTheLimitPassesAndOneMoreIsRefused) {
  EXPECT_TRUE(ParseJson(Nested(8), 8).ok());
  const Result<Json> deep = ParseJson(Nested(9), 8);
  ASSERT_FALSE(deep.ok());
  EXPECT_EQ(deep.error().message, "JSON nested deeper than 8 levels");
}

TEST(Json, SiblingsDoNotAddToTheDepth) { EXPECT_TRUE(ParseJson("[[],[],{},[[]],{\"a\":{}}]", 3).ok()); }

TEST(Json, AMillionOpenBracketsAreRefusedWithoutRecursion) {
  EXPECT_FALSE(ParseJson(std::string(1000000, '['), 128).ok());
}

TEST(Json, SyntaxErrorsNameTheByte) {
  const Result<Json> value = ParseJson("{\"a\":}", 8);
  ASSERT_FALSE(value.ok());
  EXPECT_EQ(value.error().message, "invalid JSON at byte 6");
}

TEST(Json, TextAfterTheValueIsAnError) { EXPECT_FALSE(ParseJson("{} x", 8).ok()); }

TEST(Json, EmptyTextIsAnError) { EXPECT_FALSE(ParseJson("", 8).ok()); }

TEST(Json, TheLastValueOfARepeatedNameCountsAtTheFirstsPlace) {
  const Result<Json> value = ParseJson(R"({"a":1,"b":2,"a":{"c":3}})", 8);
  ASSERT_TRUE(value.ok());
  EXPECT_EQ(DumpJson(*value), R"({"a":{"c":3},"b":2})");
}

TEST(Json, EveryKindOfValueIsRead) {
  const char* text = R"([null,true,false,-1,18446744073709551615,1.5,"\u00e9\n",[],{},{"a":[{"b":[1]}]}])";
  const Result<Json> value = ParseJson(text, 8);
  ASSERT_TRUE(value.ok());
  EXPECT_EQ(*value, Json::parse(text));
}

TEST(Json, TooManyNamesOfOneObjectAreRefused) {
  std::string text = "{\"x\":0";
  for (size_t i = 0; i < kMaxJsonObjectKeys; ++i) text += StrCat(",\"", i, "\":0");
  const Result<Json> value = ParseJson(text + "}", 8);
  ASSERT_FALSE(value.ok());
  EXPECT_EQ(value.error().message, "JSON object of more than 65536 names");
}

TEST(Json, TooManyValuesAreRefused) {
  const auto list = [](std::string_view value, size_t count) {
    std::string text = "[";
    for (size_t i = 0; i < count; ++i) text += StrCat(i ? "," : "", value);
    return text + "]";
  };
  const size_t room = kMaxJsonValues - kJsonValuesOfAText;  // beside the list itself
  EXPECT_TRUE(ParseJson(list("0", room), 8).ok());
  EXPECT_FALSE(ParseJson(list("0", room + 1), 8).ok());
  for (const char* heavy : {R"("")", "[]", "{}"}) {
    EXPECT_TRUE(ParseJson(list(heavy, room / kJsonValuesOfAText), 8).ok()) << heavy;
    EXPECT_FALSE(ParseJson(list(heavy, room / kJsonValuesOfAText + 1), 8).ok()) << heavy;
  }
  EXPECT_FALSE(ParseJson(list(R"({"a":0})", room / (2 * kJsonValuesOfAText)), 8).ok());
}

TEST(Json, NumbersBeyondADoubleAndInvalidUtf8AreErrors) {
  EXPECT_FALSE(ParseJson("1e999", 8).ok());
  EXPECT_FALSE(ParseJson("\"\xff\"", 8).ok());
}

TEST(Json, DumpReplacesHalfCharactersAndNonFiniteNumbers) {
  Json value;
  value["t"] = "a\xF0\x9F";
  value["n"] = std::nan("");
  EXPECT_EQ(DumpJson(value), "{\"t\":\"a\xEF\xBF\xBD\",\"n\":null}");
}

TEST(Json, AStringAloneIsWrittenAsWithinADocument) {
  std::vector<std::string> texts = {"", "plain", "\"\\/", "é漢🙂", "a\xF0\x9F", "\xC0\xAF\"", "\xED\xA0\x80", "end\\"};
  for (int c = 0; c < 256; ++c) texts.push_back("a" + std::string(1, static_cast<char>(c)) + "b");
  for (const std::string& text : texts) {
    std::string out = "x";
    AppendJsonString(out, text);
    EXPECT_EQ(out, "x" + DumpJson(Json(text))) << text;
  }
}

}  // namespace
}  // namespace base
