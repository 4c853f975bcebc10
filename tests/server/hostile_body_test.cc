// Bodies made to break a parser: each is refused, and the server lives on.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/limits.h"
#include "tests/server/api_server_util.h"
#include "tests/server/script_model_util.h"

namespace vllm {
namespace {

using testing::ExactConfig;
using testing::TempFolder;
using testing::TestServer;

TestServer& Server() {
  static const TempFolder folder;
  static TestServer server(ExactConfig(WriteScriptModel(folder, {"one ", "two ", "three"})));
  return server;
}

std::string Repeat(std::string_view text, int count) {
  std::string all;
  all.reserve(text.size() * count);
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

int PostField(std::string_view field, std::string_view value) {
  return Server()
      .Post("/v1/chat/completions",
            base::StrCat(R"({"model":"m","messages":[{"role":"user","content":"x"}],"max_tokens":1,")", field,
                         "\":", value, "}"))
      .status;
}

class NestedBodies : public ::testing::TestWithParam<int> {};

TEST_P(NestedBodies, AreRefusedOrServedWhereverTheyStand) {
  const int depth = GetParam();
  const std::string arrays = Repeat("[", depth) + Repeat("]", depth);
  const std::string objects = Repeat("{\"a\":", depth) + "1" + Repeat("}", depth);
  for (const char* field : {"tools", "foo", "metadata", "chat_template_kwargs"}) {
    if (depth > 3000 && std::string_view(field) != "foo") continue;
    for (const std::string& value : {arrays, objects, Repeat("[", depth)}) {
      const int status = PostField(field, value);
      EXPECT_TRUE(status == 400 || status == 413 || (depth == 100 && status == 200)) << field << status;
    }
  }
  const std::string tool = R"([{"type":"function","function":{"name":"f","parameters":)" + arrays + "}}]";
  const int status = PostField("tools", tool);
  EXPECT_TRUE(status == 400 || status == 413) << status;
  EXPECT_EQ(Server().Get("/health").status, 200);
  EXPECT_EQ(Server().Post("/v1/completions", R"({"prompt":"x","max_tokens":1})").status, 200);
}

INSTANTIATE_TEST_SUITE_P(Depths, NestedBodies, ::testing::Values(100, 3000, 100000, 5000000));

TEST(HostileBodies, NestedArgumentsInAStringAreRefused) {
  for (const int depth : {100, 3000, 1000000}) {
    const int status =
        Server()
            .Post("/v1/chat/completions",
                  R"({"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":")" +
                      Repeat("[", depth) + Repeat("]", depth) + R"("}}]}],"max_tokens":1})")
            .status;
    EXPECT_TRUE(status == 400 || (depth == 100 && status == 200)) << depth << status;
  }
}

TEST(HostileBodies, FiftyMegabytesOfTextAreA413) {
  EXPECT_EQ(PostField("foo", "\"" + std::string(50 << 20, 'a') + "\""), 413);
  EXPECT_EQ(Server().Get("/health").status, 200);
}

TEST(HostileBodies, MillionsOfValuesAreRefused) {
  EXPECT_EQ(PostField("foo", "[" + Repeat("0,", base::kMaxJsonValues) + "0]"), 400);
}

TEST(HostileBodies, AnObjectOfVeryManyNamesIsRefusedWithoutSearchingThem) {
  std::string object = "{\"k\":0";
  for (int i = 0; i < 1000000; ++i) object += base::StrCat(",\"", i, "\":0");
  EXPECT_EQ(PostField("foo", object + "}"), 400);
}

TEST(HostileBodies, ManyObjectsOfManyNamesAreReadInLinearTime) {
  std::string object = "{\"k\":0";
  for (int i = 0; i < 60000; ++i) object += base::StrCat(",\"", i, "\":0");
  object += "}";
  EXPECT_EQ(PostField("foo", "[" + object + Repeat("," + object, 7) + "]"), 200);
}

}  // namespace
}  // namespace vllm
