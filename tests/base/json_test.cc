// JSON of clients: bounded depth, errors as values, output that is always valid UTF-8.
#include "base/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

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

TEST(Json, DumpReplacesHalfCharactersAndNonFiniteNumbers) {
  Json value;
  value["t"] = "a\xF0\x9F";
  value["n"] = std::nan("");
  EXPECT_EQ(DumpJson(value), "{\"t\":\"a\xEF\xBF\xBD\",\"n\":null}");
}

}  // namespace
}  // namespace base
