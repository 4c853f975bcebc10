// One API request on the engine: all prompts or none, one end, and a client that goes ends all.
#include "server/openai/generation.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/server/fake_engine.h"

namespace vllm {
namespace {

using testing::ByteTokenizerJson;
using testing::FakeEngine;
using testing::KeptAnswer;

struct Log {
  std::string text;  // "o0 o1 finish" or "fail 503"
};

class LoggingWriter final : public AnswerWriter {
 public:
  explicit LoggingWriter(std::shared_ptr<Log> log) : log_(std::move(log)) {}
  void Output(size_t prompt, RequestOutput&) override { log_->text += "o" + std::to_string(prompt) + " "; }
  void Finish() override { log_->text += "finish"; }
  void Fail(const ApiError& error) override { log_->text += "fail " + std::to_string(error.status); }

 private:
  std::shared_ptr<Log> log_;
};

class GenerationTest : public ::testing::Test {
 protected:
  GenerationTest() { context_.engine = &engine_; }
  void Start(size_t prompts) {
    std::vector<Prompt> all(prompts, Prompt{.ids = {1}});
    Generate(context_, CommonRequest{.id = "cmpl-1"}, std::move(all), answer_, std::make_unique<LoggingWriter>(log_));
  }
  void Play(size_t prompt, RequestOutput output) { engine_.submitted[prompt].on_output(std::move(output)); }

  FakeEngine engine_{ByteTokenizerJson()};
  ApiContext context_;
  std::shared_ptr<KeptAnswer> answer_ = std::make_shared<KeptAnswer>();
  std::shared_ptr<Log> log_ = std::make_shared<Log>();
};

TEST_F(GenerationTest, FinishesWhenEveryPromptHas) {
  Start(2);
  Play(1, {.finished = true});
  Play(0, {});
  Play(0, {.finished = true});
  EXPECT_EQ(log_->text, "o1 o0 o0 finish");
}

TEST_F(GenerationTest, ARefusedPromptTakesBackThoseBeforeIt) {
  engine_.refuse_after = 2;
  Start(3);
  EXPECT_EQ(log_->text, "fail 503");
  EXPECT_EQ(engine_.aborted, (std::vector<uint64_t>{1, 2}));
}

TEST_F(GenerationTest, AnErrorOfOneEndsAll) {
  Start(2);
  Play(0, {.error = base::MakeError(base::ErrorCode::kInternal, "died")});
  Play(1, {.finished = true});
  EXPECT_EQ(log_->text, "fail 500");
  EXPECT_EQ(engine_.aborted.size(), 2u);
}

TEST_F(GenerationTest, AClientThatGoesEndsAllAndHearsNoMore) {
  Start(2);
  answer_->gone();
  Play(0, {.finished = true});
  EXPECT_EQ(log_->text, "");
  EXPECT_EQ(engine_.aborted, (std::vector<uint64_t>{1, 2}));
}

TEST_F(GenerationTest, GoingAfterTheEndAbortsNothing) {
  Start(1);
  Play(0, {.finished = true});
  answer_->gone();
  EXPECT_TRUE(engine_.aborted.empty());
}

TEST(EventStream, OpensWithTheFirstEventAndMarksTheEnd) {
  auto answer = std::make_shared<KeptAnswer>();
  EventStream stream(answer, {});
  EXPECT_FALSE(answer->streamed);
  stream.Event({{"a", 1}});
  stream.Done();
  EXPECT_TRUE(answer->streamed && answer->ended);
  EXPECT_EQ(answer->body, "data: {\"a\":1}\n\ndata: [DONE]\n\n");
}

TEST(EventStream, AnErrorBeforeTheFirstEventIsAPlainAnswer) {
  auto answer = std::make_shared<KeptAnswer>();
  EventStream stream(answer, {});
  stream.Fail({.message = "no"});
  EXPECT_FALSE(answer->streamed);
  EXPECT_EQ(answer->status, 400);
}

TEST(EventStream, AnErrorAfterItIsAnEventAndTheEnd) {
  auto answer = std::make_shared<KeptAnswer>();
  EventStream stream(answer, {});
  stream.Event(1);
  stream.Fail({.status = 500, .message = "line\nbreak"});
  EXPECT_TRUE(answer->body.ends_with("\n\ndata: [DONE]\n\n"));
  EXPECT_NE(answer->body.find(R"("message":"line\nbreak")"), std::string::npos);
}

TEST(GenerationJson, UsageAddsUp) {
  const base::Json usage = UsageJson({.prompt_tokens = 3, .completion_tokens = 4, .cached_tokens = 2}, true);
  EXPECT_EQ(
      base::DumpJson(usage),
      R"({"prompt_tokens":3,"total_tokens":7,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":2}})");
  EXPECT_EQ(UsageJson({.cached_tokens = 2}, false)["prompt_tokens_details"], nullptr);
}

TEST(GenerationJson, ReasonsAreNullNumbersOrTexts) {
  EXPECT_EQ(StopReasonJson({}), nullptr);
  EXPECT_EQ(StopReasonJson(int32_t{5}), 5);
  EXPECT_EQ(StopReasonJson(std::string("x")), "x");
  EXPECT_EQ(FinishReasonJson({}), nullptr);
  EXPECT_EQ(FinishReasonJson(FinishReason::kLength), "length");
}

TEST(GenerationJson, RequestIdHeadersComeOnlyWhenAskedFor) {
  ApiContext context;
  EXPECT_TRUE(AnswerHeaders(context, {.id = "cmpl-a-b"}).empty());
  context.options.enable_request_id_headers = true;
  EXPECT_EQ(AnswerHeaders(context, {.id = "cmpl-a-b"})[0].second, "a-b");
}

TEST(TextEvent, IsTheEventOfTheWholeDocument) {
  base::Json chunk = {{"id", "a\"text\":\"\""},
                      {"choices", base::Json::array({{{"index", 0}, {"text", ""}, {"x", nullptr}}})}};
  const TextEvent event(chunk, "text");
  ASSERT_TRUE(event.ready());
  for (const char* text : {"", "hello", "\"quoted\"\n", "漢字 🙂", "half \xF0\x9F"}) {
    chunk["choices"][0]["text"] = text;
    std::string out;
    event.AppendTo(out, text);
    EXPECT_EQ(out, "data: " + base::DumpJson(chunk) + "\n\n");
  }
}

}  // namespace
}  // namespace vllm
