// Routes, the key guard, and what the server says about itself; over an engine without a model.
#include "server/api_server.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "tests/server/fake_engine.h"
#include "tests/server/http_client_util.h"

namespace vllm {
namespace {

using testing::ByteTokenizerJson;
using testing::FakeEngine;
using testing::Fetch;
using testing::HttpAnswer;

class ApiServerTest : public ::testing::Test {
 protected:
  explicit ApiServerTest(ApiOptions api = {}) : server_(engine_, HttpServerOptions{.port = 0}, std::move(api)) {
    server_.Start();
  }
  HttpAnswer Get(std::string_view path) { return Fetch(server_.port(), "GET", path); }

  FakeEngine engine_{ByteTokenizerJson()};
  ApiServer server_;
};

TEST_F(ApiServerTest, AnUnknownPathIsA404InTheApisShape) {
  const HttpAnswer answer = Get("/v1/nothing");
  EXPECT_EQ(answer.status, 404);
  EXPECT_EQ(answer.body, R"({"error":{"message":"Not Found","type":"Not Found","param":null,"code":404}})");
}

TEST_F(ApiServerTest, AWrongMethodIsA405) {
  EXPECT_EQ(Get("/v1/completions").status, 405);
  EXPECT_EQ(Fetch(server_.port(), "DELETE", "/v1/models").status, 405);
}

TEST_F(ApiServerTest, ModelsAreListedByServedNames) {
  const auto models = base::Json::parse(Get("/v1/models").body);
  ASSERT_EQ(models["data"].size(), 2u);
  EXPECT_EQ(models["data"][0]["id"], "m");
  EXPECT_EQ(models["data"][1]["id"], "alias");
  EXPECT_EQ(models["data"][0]["max_model_len"], 64);
}

TEST_F(ApiServerTest, TheVersionNamesOursAndVllms) {
  const auto version = base::Json::parse(Get("/version").body);
  EXPECT_EQ(version["vllm"], "0.33.0");
  EXPECT_FALSE(version["version"].get<std::string>().empty());
}

TEST_F(ApiServerTest, HealthFollowsTheEngine) {
  EXPECT_EQ(Get("/health").status, 200);
  EXPECT_EQ(Get("/ping").status, 200);
  EXPECT_EQ(Fetch(server_.port(), "POST", "/ping").status, 200);
  engine_.alive = false;
  EXPECT_EQ(Get("/health").status, 503);
}

TEST_F(ApiServerTest, MetricsAreAnExposition) {
  const HttpAnswer answer = Get("/metrics");
  EXPECT_EQ(answer.status, 200);
  EXPECT_TRUE(answer.headers.at("content-type").starts_with("text/plain; version=0.0.4"));
}

TEST_F(ApiServerTest, TheCacheResetIsForDevelopersOnly) {
  EXPECT_EQ(Fetch(server_.port(), "POST", "/reset_prefix_cache").status, 404);
  ApiServer dev(engine_, {.port = 0}, {.dev_mode = true});
  dev.Start();
  EXPECT_EQ(Fetch(dev.port(), "POST", "/reset_prefix_cache").status, 200);
}

TEST_F(ApiServerTest, ATextThatTheTokenizerRefusesIsTheClientsFault) {
  FakeEngine small(R"({"version":"1.0","added_tokens":[],"normalizer":null,"pre_tokenizer":null,"post_processor":null,)"
                   R"("decoder":null,"model":{"type":"BPE","vocab":{"a":0},"merges":[]}})");
  ApiServer server(small, {.port = 0}, {});
  server.Start();
  const HttpAnswer answer = Fetch(server.port(), "POST", "/tokenize", R"({"prompt":"b"})");
  EXPECT_TRUE(answer.status == 400 || answer.status == 200) << answer.body;  // never the server's
}

TEST_F(ApiServerTest, TokensGoThereAndBack) {
  const auto tokens = base::Json::parse(
      Fetch(server_.port(), "POST", "/tokenize", R"({"prompt":"ab<|end|>","return_token_strs":true})").body);
  EXPECT_EQ(tokens["tokens"], base::Json::parse("[97,98,256]"));
  EXPECT_EQ(tokens["count"], 3);
  EXPECT_EQ(tokens["max_model_len"], 64);
  EXPECT_EQ(tokens["token_strs"], base::Json::parse(R"(["a","b","<|end|>"])"));
  const HttpAnswer text = Fetch(server_.port(), "POST", "/detokenize", R"({"tokens":[97,98,256]})");
  EXPECT_EQ(text.body, R"({"prompt":"ab<|end|>"})");
}

TEST_F(ApiServerTest, DetokenizeRefusesIdsOutsideTheVocabulary) {
  for (const char* ids : {"[257]", "[-1]", "[1099511627776]", "[1.5]", "\"a\"", "null"})
    EXPECT_EQ(Fetch(server_.port(), "POST", "/detokenize", std::string(R"({"tokens":)") + ids + "}").status, 400)
        << ids;
}

TEST_F(ApiServerTest, TokenizeNeedsAPrompt) {
  for (const char* body : {"{}", R"({"prompt":5})", "[]", "x", R"({"messages":[]})"})
    EXPECT_EQ(Fetch(server_.port(), "POST", "/tokenize", body).status, 400) << body;
}

class KeyedServerTest : public ApiServerTest {
 protected:
  KeyedServerTest() : ApiServerTest(ApiOptions{.api_keys = {"K", "second"}, .dev_mode = true}) {}
  int Status(std::string_view method, std::string_view path, std::string_view authorization) {
    const std::string header = authorization == "-" ? "" : "Authorization: " + std::string(authorization) + "\r\n";
    return Fetch(server_.port(), method, path, "", header).status;
  }
};

constexpr const char* kWrongKeys[] = {
    "-",       "",        "Bearer", "Bearer ", "Bearer k",        "Bearer  K",    "Bearer K2",
    "Basic K", "BearerK", "K",      "Token K", "Bearer K second", "Bearer seconD"};

TEST_F(KeyedServerTest, GuardsEveryRouteOfItsTableAgainstEveryWrongKey) {
  const std::set<std::string_view> open = {"/health", "/ping", "/version", "/metrics"};
  for (const Route& route : server_.routes())
    for (const char* key : kWrongKeys) {
      const int status = Status(route.method, route.path, key);
      if (open.contains(route.path))
        EXPECT_EQ(status, 200) << route.path << key;
      else
        EXPECT_EQ(status, 401) << route.method << route.path << key;
    }
}

TEST_F(KeyedServerTest, GuardsOtherSpellingsMethodsAndUnknownPaths) {
  for (const char* path :
       {"//v1/models", "/v1/../invocations", "/v1/../health", "/V1/models", "/v1%2fmodels", "/v1/models/", "/health/",
        "//health", "/HEALTH", "/nothing", "/", "/v1/models?api_key=K", "/invocations?/health", "http://h/health"})
    EXPECT_EQ(Status("GET", path, "-"), 401) << path;
  for (const char* method : {"HEAD", "PUT", "DELETE", "PATCH", "POST"})
    EXPECT_EQ(Status(method, "/v1/models", "-"), 401) << method;
}

TEST_F(KeyedServerTest, TakesEachOfItsKeys) {
  for (const char* key : {"Bearer K", "bearer K", "BEARER second"}) {
    EXPECT_EQ(Status("GET", "/v1/models", key), 200) << key;
    EXPECT_EQ(Status("GET", "/nothing", key), 404) << key;
  }
}

TEST_F(KeyedServerTest, OptionsNeedNoKey) { EXPECT_NE(Status("OPTIONS", "/v1/models", "-"), 401); }

TEST_F(KeyedServerTest, TheRefusalIsVllms) { EXPECT_EQ(Get("/v1/models").body, R"({"error":"Unauthorized"})"); }

}  // namespace
}  // namespace vllm
