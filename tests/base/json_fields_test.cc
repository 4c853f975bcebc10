// Typed reads of a client's JSON object.
#include "base/json_fields.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/check.h"

namespace base {
namespace {

TEST(JsonFields, NullCountsAsAbsent) {
  const Json body = Json::parse(R"({"a":null,"b":0})");
  JsonFields fields(body);
  EXPECT_FALSE(fields.Has("a") || fields.Has("c"));
  EXPECT_TRUE(fields.Has("b"));
  EXPECT_EQ(fields.Int("a", 7), 7);
  EXPECT_FALSE(fields.error());
}

TEST(JsonFields, IntegersHaveNoFractionAndFit64Bits) {
  const Json body = Json::parse(
      R"({"a":5,"b":-5,"c":2.0,"d":2.5,"e":9223372036854775807,"f":9223372036854775808,"g":1e300,"h":"5","i":true})");
  JsonFields good(body);
  EXPECT_EQ(good.FindInt("a"), 5);
  EXPECT_EQ(good.FindInt("b"), -5);
  EXPECT_EQ(good.FindInt("c"), 2);
  EXPECT_EQ(good.FindInt("e"), INT64_MAX);
  EXPECT_FALSE(good.error());
  for (const char* name : {"d", "f", "g", "h", "i"}) {
    JsonFields fields(body);
    EXPECT_EQ(fields.FindInt(name), std::nullopt);
    ASSERT_TRUE(fields.error()) << name;
    EXPECT_EQ(fields.error()->field, name);
  }
}

TEST(JsonFields, NumbersBooleansAndTextsAreNotMixed) {
  const Json body = Json::parse(R"({"n":1.5,"b":true,"s":"x"})");
  JsonFields good(body);
  EXPECT_EQ(good.FindDouble("n"), 1.5);
  EXPECT_EQ(good.FindBool("b"), true);
  EXPECT_EQ(good.FindString("s"), "x");
  EXPECT_FALSE(good.error());
  JsonFields a(body), b(body), c(body);
  EXPECT_FALSE(a.FindDouble("s") || b.FindBool("n") || c.FindString("b"));
  EXPECT_TRUE(a.error() && b.error() && c.error());
}

TEST(JsonFields, IdListsFit32Bits) {
  const Json body = Json::parse(R"({"a":[1,-2,3.0],"b":[2147483648],"c":["x"],"d":5,"e":[]})");
  JsonFields good(body);
  EXPECT_EQ(good.FindIds("a"), (std::vector<int32_t>{1, -2, 3}));
  EXPECT_EQ(good.FindIds("e"), std::vector<int32_t>());
  EXPECT_FALSE(good.error());
  for (const char* name : {"b", "c", "d"}) {
    JsonFields fields(body);
    EXPECT_FALSE(fields.FindIds(name));
    EXPECT_TRUE(fields.error()) << name;
  }
}

TEST(JsonFields, StringsAreOneOrAList) {
  const Json body = Json::parse(R"({"a":"x","b":["x","y"],"c":[1],"d":{},"e":[]})");
  JsonFields good(body);
  EXPECT_EQ(good.Strings("a"), std::vector<std::string>{"x"});
  EXPECT_EQ(good.Strings("b"), (std::vector<std::string>{"x", "y"}));
  EXPECT_TRUE(good.Strings("e").empty() && good.Strings("none").empty());
  EXPECT_FALSE(good.error());
  JsonFields c(body), d(body);
  c.Strings("c");
  d.Strings("d");
  EXPECT_TRUE(c.error() && d.error());
}

TEST(JsonFields, TheFirstMistakeIsKeptWithTheInputCutShort) {
  const Json body = {{"a", std::string(500, 'x')}, {"b", "y"}};
  JsonFields fields(body);
  fields.FindInt("a");
  fields.FindInt("b");
  ASSERT_TRUE(fields.error());
  EXPECT_EQ(fields.error()->field, "a");
  EXPECT_LT(fields.error()->message.size(), 300u);
  EXPECT_NE(fields.error()->message.find("'loc': ('body', 'a')"), std::string::npos);
}

TEST(JsonFields, AnInputCutInsideACharacterStaysValid) {
  const Json body = {{"a", std::string(98, 'x') + "éé"}};
  JsonFields fields(body);
  fields.FindInt("a");
  ASSERT_TRUE(fields.error());
  EXPECT_EQ(DumpJson(Json(fields.error()->message)).find("\\u"), std::string::npos);
}

TEST(JsonFields, OnlyObjectsHaveFields) {
  const Json list = Json::array();
  EXPECT_THROW(JsonFields{list}, InternalError);
}

}  // namespace
}  // namespace base
