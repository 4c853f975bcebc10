// Requests run to their end against an engine that replays what a test gives it.
#include "app/session.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "base/options.h"

namespace vllm {
namespace {

// Answers each request from a thread of its own, as the engine's output thread does.
class ReplayEngine : public LlmEngine {
 public:
  ~ReplayEngine() override {
    for (std::thread& thread : threads_)
      if (thread.joinable()) thread.join();
  }
  base::Result<uint64_t> Submit(GenerateRequest request) override {
    if (refusal) return *refusal;
    ++submitted;
    threads_.emplace_back([this, request = std::move(request)] {
      for (RequestOutput output : outputs) request.on_output(std::move(output));
    });
    return static_cast<uint64_t>(submitted);
  }
  // As the engine promises: no callback runs once it has returned.
  void Abort(uint64_t handle) override {
    aborted.push_back(handle);
    if (threads_[handle - 1].joinable()) threads_[handle - 1].join();
  }
  const EngineInfo& info() const override { return info_; }
  const EngineConfig& config() const override { return config_; }
  const GenerationDefaults& defaults() const override { return defaults_; }
  const Tokenizer& tokenizer() const override { throw base::InternalError("no tokenizer"); }
  const ChatTemplate* chat_template() const override { return nullptr; }
  EngineStats stats() const override { return {}; }
  base::MetricsRegistry& metrics() override { throw base::InternalError("no metrics"); }
  bool healthy() const override { return true; }
  bool ResetPrefixCache() override { return true; }
  void Drain(int64_t) override {}

  std::vector<RequestOutput> outputs;  // for every request
  std::optional<base::Error> refusal;
  int submitted = 0;
  std::vector<uint64_t> aborted;
  EngineInfo info_;

 private:
  EngineConfig config_;
  GenerationDefaults defaults_;
  std::vector<std::thread> threads_;
};

RequestOutput Piece(const std::string& text, std::vector<int32_t> ids, std::optional<FinishReason> finish = {}) {
  RequestOutput output;
  output.choices.push_back({.text = text, .token_ids = std::move(ids), .finish = finish});
  output.finished = finish.has_value();
  return output;
}

TEST(Session, PiecesOfAnAnswerAreJoinedInOrder) {
  ReplayEngine engine;
  engine.outputs = {Piece("a", {1}), Piece("", {2}), Piece("bc", {3, 4}, FinishReason::kStop)};
  std::string seen;
  const base::Result<Answer> answer = Generate(engine, {}, [&](std::string_view text) { seen += text; });
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(seen, "abc");
  EXPECT_EQ(answer->text, "abc");
  EXPECT_EQ(answer->token_ids, (std::vector<int32_t>{1, 2, 3, 4}));
  EXPECT_EQ(answer->finish, FinishReason::kStop);
}

TEST(Session, ARefusedRequestIsAnError) {
  ReplayEngine engine;
  engine.refusal = base::MakeError(base::ErrorCode::kInvalidArgument, "no");
  EXPECT_EQ(Generate(engine, {}).error().message, "no");
}

TEST(Session, AFailedRequestCarriesItsError) {
  ReplayEngine engine;
  RequestOutput failed;
  failed.error = base::MakeError(base::ErrorCode::kInternal, "gone");
  engine.outputs = {Piece("a", {1}), failed};
  const base::Result<Answer> answer = Generate(engine, {});
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->text, "a");
  EXPECT_EQ(answer->error->message, "gone");
}

TEST(Session, StoppingAbortsTheRequest) {
  ReplayEngine engine;  // never answers
  const base::Result<Answer> answer = Generate(engine, {}, {}, [] { return true; });
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->finish, std::nullopt);
  EXPECT_EQ(engine.aborted, (std::vector<uint64_t>{1}));
}

TEST(Session, AllRequestsAreRunAndTheirTokensCounted) {
  ReplayEngine engine;
  engine.outputs = {Piece("a", {1, 2}), Piece("b", {3}, FinishReason::kLength)};
  std::vector<size_t> indices;
  const int64_t tokens = GenerateAll(engine, std::vector<GenerateRequest>(5), 2, [&](size_t index, Answer answer) {
    indices.push_back(index);
    EXPECT_EQ(answer.text, "ab");
  });
  EXPECT_EQ(tokens, 15);
  EXPECT_EQ(engine.submitted, 5);
  std::sort(indices.begin(), indices.end());
  EXPECT_EQ(indices, (std::vector<size_t>{0, 1, 2, 3, 4}));
}

TEST(Session, OneFailureAmongManyAbortsTheRest) {
  ReplayEngine engine;
  RequestOutput failed;
  failed.error = base::MakeError(base::ErrorCode::kInternal, "gone");
  engine.outputs = {failed};
  EXPECT_THROW(GenerateAll(engine, std::vector<GenerateRequest>(3), 3), base::Exception);
  EXPECT_EQ(engine.aborted.size(), 3u);
}

TEST(Session, SamplingTakesTheCommandLineThenTheModelsDefaults) {
  base::Options options;
  options.Set("temperature", "0");
  options.SetList("stop", {"x", "y"});
  GenerationDefaults defaults;
  defaults.temperature = 0.6;
  defaults.top_p = 0.9;
  const SamplingParams params = SamplingFromOptions(options, defaults);
  EXPECT_EQ(params.temperature, 0);
  EXPECT_EQ(params.top_p, 0.9);
  EXPECT_EQ(params.stop, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(params.max_tokens, std::nullopt);
}

TEST(Session, TheSummaryHasTenLines) {
  ReplayEngine engine;
  engine.info_.served_names = {"m"};
  engine.info_.parameters = 135000000;
  const std::string summary = StartupSummary(engine, "http://127.0.0.1:8000");
  EXPECT_EQ(std::count(summary.begin(), summary.end(), '\n'), 10);
  EXPECT_NE(summary.find("135 M parameters"), std::string::npos);
  EXPECT_NE(summary.find("http://127.0.0.1:8000"), std::string::npos);
}

TEST(Session, WithoutAModelTheRemedyIsNamed) {
  CommandLine line;
  try {
    OpenEngine(line);
    FAIL() << "no exception";
  } catch (const base::Exception& exception) {
    EXPECT_NE(std::string(exception.what()).find("no model given; name a GGUF file"), std::string::npos);
  }
}

}  // namespace
}  // namespace vllm
