// The request front end over a real core whose runner is scripted.
#include "engine/frontend.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <map>
#include <mutex>
#include <thread>

#include "base/limits.h"
#include "base/metrics.h"
#include "tests/engine/out/piece_tokenizer.h"

namespace vllm {
namespace {

constexpr auto kHang = std::chrono::seconds(60);

// Answers every sampling sequence with the next token of one script, EOS after its end. May be held.
class ScriptRunner final : public ModelRunner {
 public:
  explicit ScriptRunner(std::vector<int32_t> script) : script_(std::move(script)) {}

  std::future<ModelRunnerOutput> ExecuteModel(SchedulerOutput step) override {
    std::unique_lock lock(mutex_);
    released_.wait(lock, [this] { return !held_; });
    for (const NewRequestData& added : step.new_requests) {
      seeds_.push_back(added.seed);
      params_.push_back(added.params);
    }
    ModelRunnerOutput out;
    for (const ScheduledTokens& scheduled : step.scheduled) {
      SequenceOutput& sequence = out.sequences.emplace_back();
      sequence.id = scheduled.id;
      if (!scheduled.samples) continue;
      const size_t place = num_sampled_[scheduled.id]++;
      sequence.token_ids = {place < script_.size() ? script_[place] : PieceTokenizer::kEos};
    }
    std::promise<ModelRunnerOutput> promise;
    if (fails_) {
      promise.set_exception(std::make_exception_ptr(std::runtime_error("the device is gone")));
    } else {
      promise.set_value(std::move(out));
    }
    return promise.get_future();
  }

  void Hold(bool held) {
    const std::lock_guard lock(mutex_);
    held_ = held;
    released_.notify_all();
  }
  void Fail() {
    const std::lock_guard lock(mutex_);
    fails_ = true;
  }
  std::vector<uint64_t> seeds() {
    const std::lock_guard lock(mutex_);
    return seeds_;
  }
  SamplingParams params(size_t at) {
    const std::lock_guard lock(mutex_);
    return *params_.at(at);
  }

 private:
  std::mutex mutex_;
  std::condition_variable released_;
  std::vector<int32_t> script_;
  std::map<RequestId, size_t> num_sampled_;
  std::vector<uint64_t> seeds_;
  std::vector<std::shared_ptr<const SamplingParams>> params_;
  bool held_ = false, fails_ = false;
};

// What a request's callback has been given so far. Shared with the callback, which may outlive the test's last look.
class Client {
 public:
  OutputCallback Callback() {
    return [state = state_](RequestOutput output) {
      const std::lock_guard lock(state->mutex);
      for (ChoiceOutput& choice : output.choices) {
        state->text[choice.index] += choice.text;
        state->num_tokens += choice.token_ids.size();
        if (choice.finish) state->finish[choice.index] = choice;
      }
      if (output.error) state->error = output.error;
      state->finished |= output.finished;
      state->changed.notify_all();
    };
  }
  bool WaitFinished() {
    return Wait([this] { return state_->finished; });
  }
  std::string text(int index = 0) {
    const std::lock_guard lock(state_->mutex);
    return state_->text[index];
  }
  ChoiceOutput finish(int index = 0) {
    const std::lock_guard lock(state_->mutex);
    return state_->finish.at(index);
  }
  std::optional<base::Error> error() {
    const std::lock_guard lock(state_->mutex);
    return state_->error;
  }
  size_t num_tokens() {
    const std::lock_guard lock(state_->mutex);
    return state_->num_tokens;
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::map<int, std::string> text;
    std::map<int, ChoiceOutput> finish;
    std::optional<base::Error> error;
    size_t num_tokens = 0;
    bool finished = false;
  };
  template <class Condition>
  bool Wait(Condition condition) {
    std::unique_lock lock(state_->mutex);
    return state_->changed.wait_for(lock, kHang, condition);
  }
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

struct EngineSetup {
  std::vector<std::string> script = {"alpha ", "be", "ta ST", "OPP", " tail", "ED ", "STO", "P!x", "after"};
  std::vector<int32_t> extra_eos = {};
  std::optional<int64_t> seed = {};
  std::optional<int64_t> max_queued = {};
  bool endless = false;
};

class FrontendTest : public ::testing::Test {
 protected:
  static constexpr int64_t kMaxModelLen = 64;

  void Start(EngineSetup setup = {}) {
    std::vector<int32_t> script = tokenizer_.Ids(setup.script);
    if (setup.endless) {
      while (script.size() < 100'000) script.push_back(script[0]);
    }
    runner_ = std::make_unique<ScriptRunner>(script);
    EngineParts parts;
    parts.config.seed = setup.seed;
    parts.info.model_name = "m";
    parts.info.max_model_len = kMaxModelLen;
    parts.info.vocab_size = (*tokenizer_).vocab_size();
    parts.defaults.extra_eos_token_ids = setup.extra_eos;
    parts.tokenizer = tokenizer_.share();
    parts.make_core = [&](EngineCore::OutputSink sink) {
      EngineCore::Options options;
      options.scheduler.max_model_len = kMaxModelLen;
      options.scheduler.max_num_batched_tokens = 128;
      options.scheduler.max_num_seqs = 32;
      const KvCacheSpec spec = {.block_size = 16, .kv_heads = 1, .head_dim = 16};
      options.kv_cache = {.num_blocks = 200, .groups = {{.spec = spec, .layers = {0}}}, .layer_slots = 1};
      options.max_num_queued_reqs = setup.max_queued;
      return std::make_unique<EngineCore>(options, runner_.get(), std::move(sink));
    };
    engine_ = MakeLlmEngine(std::move(parts));
  }
  void TearDown() override {
    if (runner_) runner_->Hold(false);
    engine_.reset();
  }

  base::Result<uint64_t> Submit(Client& client, SamplingParams params = {}, size_t prompt_length = 3) {
    return engine_->Submit({.prompt_token_ids = std::vector<int32_t>(prompt_length, 'x'),
                            .params = std::move(params),
                            .on_output = client.Callback()});
  }
  std::string RefusalOf(SamplingParams params, std::vector<int32_t> prompt = {'x'}) {
    const auto result = engine_->Submit(
        {.prompt_token_ids = std::move(prompt), .params = std::move(params), .on_output = [](RequestOutput) {}});
    return result.ok() ? std::string() : result.error().message;
  }
  bool Exposes(const std::string& line) {
    return engine_->metrics().Expose().find("\n" + line + "\n") != std::string::npos;
  }
  static SamplingParams Tokens(int64_t max_tokens) {
    SamplingParams params;
    params.max_tokens = max_tokens;
    return params;
  }

  const PieceTokenizer tokenizer_{{"alpha ", "be", "ta ST", "OPP", " tail", "ED ", "STO", "P!x", "after", "word",
                                   " word", "Hi ", "\xF0\x9F", "\xA6\x99"}};
  std::unique_ptr<ScriptRunner> runner_;
  std::unique_ptr<LlmEngine> engine_;
};

TEST_F(FrontendTest, GeneratesUntilEos) {
  Start({.script = {"Hi ", "\xF0\x9F", "\xA6\x99"}});
  Client client;
  ASSERT_TRUE(Submit(client, Tokens(20)).ok());
  ASSERT_TRUE(client.WaitFinished());
  EXPECT_EQ(client.text(), "Hi 🦙");
  EXPECT_EQ(client.finish().finish, FinishReason::kStop);
  EXPECT_EQ(client.finish().stop_reason.index(), 0u) << "EOS has no stop reason";
  EXPECT_EQ(client.num_tokens(), 4u) << "EOS counts";
}

TEST_F(FrontendTest, StopStringsEndTheRequest) {
  Start();
  Client client;
  SamplingParams params = Tokens(20);
  params.stop = {"STOP!"};
  ASSERT_TRUE(Submit(client, params).ok());
  ASSERT_TRUE(client.WaitFinished());
  EXPECT_EQ(client.text(), "alpha beta STOPP tailED ");
  EXPECT_EQ(std::get<std::string>(client.finish().stop_reason), "STOP!");
}

TEST_F(FrontendTest, MaxTokensDefaultsToTheRestOfTheContext) {
  Start({.endless = true});
  Client client;
  SamplingParams params;
  params.max_tokens.reset();
  ASSERT_TRUE(Submit(client, params, 50).ok());
  ASSERT_TRUE(client.WaitFinished());
  EXPECT_EQ(client.num_tokens(), 14u);
  EXPECT_EQ(client.finish().finish, FinishReason::kLength);
  EXPECT_EQ(runner_->params(0).max_tokens, 14);
}

TEST_F(FrontendTest, ASumBeyondTheContextIsClamped) {
  Start({.endless = true});
  Client client;
  ASSERT_TRUE(Submit(client, Tokens(60), 8).ok());
  ASSERT_TRUE(client.WaitFinished());
  EXPECT_EQ(client.num_tokens(), 56u);
  EXPECT_EQ(client.finish().finish, FinishReason::kLength);
  Client last;
  ASSERT_TRUE(Submit(last, Tokens(1), 63).ok());
  ASSERT_TRUE(last.WaitFinished());
  EXPECT_EQ(last.num_tokens(), 1u);
}

TEST_F(FrontendTest, RefusesPromptsThatDoNotFit) {
  Start();
  EXPECT_EQ(RefusalOf({}, {}), "The decoder prompt cannot be empty");
  EXPECT_EQ(RefusalOf({}, std::vector<int32_t>(64, 'x')),
            "The decoder prompt (length 64) plus the number of requested output tokens (at least 1) is longer than the "
            "maximum model length of 64. Make sure that `max_model_len` is no smaller than the number of text tokens "
            "(prompt + requested output tokens).");
  EXPECT_EQ(RefusalOf({}, std::vector<int32_t>(65, 'x')),
            "The decoder prompt (length 65) is longer than the maximum model length of 64. Make sure that "
            "`max_model_len` is no smaller than the number of text tokens.");
}

TEST_F(FrontendTest, RefusesIdsOutsideTheVocabularyWhileOthersRun) {
  Start();
  runner_->Hold(true);
  Client neighbour;
  ASSERT_TRUE(Submit(neighbour, Tokens(20)).ok());
  const int32_t vocab = (*tokenizer_).vocab_size();
  EXPECT_EQ(RefusalOf({}, {-1}), "Token id -1 is out of vocabulary");
  EXPECT_EQ(RefusalOf({}, {'x', vocab}), base::StrCat("Token id ", vocab, " is out of vocabulary"));
  SamplingParams params;
  params.stop_token_ids = {vocab};
  EXPECT_NE(RefusalOf(params).find("in stop_token_ids contain out-of-vocab"), std::string::npos);
  params = {};
  params.logit_bias = {{-1, 1.0f}};
  EXPECT_NE(RefusalOf(params).find("in logit_bias contain out-of-vocab"), std::string::npos);
  params = {};
  params.allowed_token_ids = std::vector<int32_t>{};
  EXPECT_NE(RefusalOf(params).find("is not None and empty"), std::string::npos);
  runner_->Hold(false);
  ASSERT_TRUE(neighbour.WaitFinished());
  EXPECT_EQ(neighbour.text(), "alpha beta STOPP tailED STOP!xafter");
  EXPECT_TRUE(engine_->healthy());
}

TEST_F(FrontendTest, MinTokensIsCheckedAgainstTheDefaultedLimit) {
  Start();
  SamplingParams params;
  params.max_tokens.reset();
  params.min_tokens = 64;
  EXPECT_EQ(RefusalOf(params), "min_tokens must be less than or equal to max_tokens=63, got 64.");
}

TEST_F(FrontendTest, RefusesMorePromptCopiesThanMemoryIsFor) {
  Start();
  SamplingParams params;
  params.n = 16384;
  const auto result = engine_->Submit(
      {.prompt_token_ids = std::vector<int32_t>(60, 'x'), .params = params, .on_output = [](RequestOutput) {}});
  ASSERT_FALSE(result.ok()) << "16384 choices do not fit the queue";
  EXPECT_EQ(result.error().code, base::ErrorCode::kOverloaded);
}

TEST_F(FrontendTest, FurtherEndTokensStopWithTheirId) {
  Start({.script = {"alpha "}, .extra_eos = {PieceTokenizer::kEos, PieceTokenizer::kEnd}});
  Client client;
  ASSERT_TRUE(Submit(client).ok());
  ASSERT_TRUE(client.WaitFinished());
  const SamplingParams params = runner_->params(0);
  EXPECT_EQ(params.eos_token_id, PieceTokenizer::kEos);
  EXPECT_EQ(params.stop_token_ids, std::vector<int32_t>{PieceTokenizer::kEnd})
      << "the tokenizer's own is handled apart";
  EXPECT_EQ(params.all_stop_token_ids, (std::vector<int32_t>{PieceTokenizer::kEos, PieceTokenizer::kEnd}));
}

TEST_F(FrontendTest, IgnoreEosKeepsTheMasksOfMinTokens) {
  Start({.script = {"alpha "}, .extra_eos = {PieceTokenizer::kEnd}});
  Client client;
  SamplingParams ignoring = Tokens(5);
  ignoring.ignore_eos = true;
  ASSERT_TRUE(Submit(client, ignoring).ok());
  ASSERT_TRUE(client.WaitFinished());
  EXPECT_EQ(client.num_tokens(), 5u);
  const SamplingParams params = runner_->params(0);
  EXPECT_FALSE(params.eos_token_id);
  EXPECT_TRUE(params.stop_token_ids.empty());
  EXPECT_EQ(params.all_stop_token_ids.size(), 2u);
}

TEST_F(FrontendTest, BadWordsAreTokenizedWithAndWithoutASpace) {
  Start();
  Client client;
  SamplingParams bad;
  bad.bad_words = {"word", " \n word", "xyz"};
  ASSERT_TRUE(Submit(client, bad).ok());
  ASSERT_TRUE(client.WaitFinished());
  const auto word = std::vector<int32_t>{tokenizer_.Id("word")}, spaced = std::vector<int32_t>{tokenizer_.Id(" word")};
  EXPECT_EQ(runner_->params(0).bad_words_ids,
            (std::vector<std::vector<int32_t>>{word, spaced, word, spaced, {'x', 'y', 'z'}}));
  bad.bad_words = {" "};
  EXPECT_EQ(RefusalOf(bad),
            "bad_words entries must tokenize to at least one token. (parameter=bad_words, value=[' '])");
  bad.bad_words.clear();
  for (int i = 0; i < 129; ++i) bad.bad_words.push_back(base::StrCat("w", i));
  EXPECT_TRUE(RefusalOf(bad).starts_with("Too many bad words after tokenization: 129. The max number is 128."));
}

TEST_F(FrontendTest, ChoicesGetConsecutiveSeeds) {
  Start();
  Client client;
  SamplingParams params;
  params.n = 3;
  params.seed = 40;
  ASSERT_TRUE(Submit(client, params).ok());
  ASSERT_TRUE(client.WaitFinished());
  EXPECT_EQ(runner_->seeds(), (std::vector<uint64_t>{40, 41, 42}));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.text(i), "alpha beta STOPP tailED STOP!xafter");
}

TEST_F(FrontendTest, UnseededRequestsGetFreshSeedsUnlessTheEngineHasOne) {
  const auto two_seeds = [&](std::optional<int64_t> seed) {
    Start({.seed = seed});
    Client first, second;
    EXPECT_TRUE(Submit(first).ok() && first.WaitFinished());
    EXPECT_TRUE(Submit(second).ok() && second.WaitFinished());
    engine_.reset();
    return runner_->seeds();
  };
  const std::vector<uint64_t> fresh = two_seeds({}), other = two_seeds({});
  EXPECT_NE(fresh[0], fresh[1]);
  EXPECT_NE(fresh, other);
  EXPECT_EQ(two_seeds(7), two_seeds(7));
}

TEST_F(FrontendTest, AbortFromTheCallbackAndFromOutside) {
  Start({.endless = true});
  std::promise<uint64_t> handle;
  std::shared_future<uint64_t> known = handle.get_future();
  std::atomic<int> calls = 0;
  const auto result =
      engine_->Submit({.prompt_token_ids = {'x'}, .params = Tokens(60), .on_output = [&](RequestOutput) {
                         ++calls;
                         engine_->Abort(known.get());
                       }});
  handle.set_value(*result);
  Client other;
  ASSERT_TRUE(Submit(other, Tokens(60)).ok());
  ASSERT_TRUE(other.WaitFinished());
  EXPECT_EQ(calls, 1);
  engine_->Abort(*result);
  engine_->Abort(999'999);
  EXPECT_EQ(other.num_tokens(), 60u);
}

TEST_F(FrontendTest, VanishedClientsLeaveNothingBehind) {
  Start({.endless = true});
  runner_->Hold(true);
  std::vector<Client> clients(20);
  std::vector<uint64_t> handles;
  for (Client& client : clients) handles.push_back(*Submit(client, Tokens(60)));
  runner_->Hold(false);
  for (const uint64_t handle : handles) engine_->Abort(handle);
  const auto give_up = std::chrono::steady_clock::now() + kHang;
  while ((engine_->stats().num_running + engine_->stats().num_waiting + engine_->stats().kv_blocks_used > 0) &&
         std::chrono::steady_clock::now() < give_up) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const std::string who = "engine=\"0\",model_name=\"m\"";
  EXPECT_TRUE(Exposes("vllm:num_requests_running{" + who + "} 0.0"));
  EXPECT_TRUE(Exposes("vllm:num_requests_waiting{" + who + "} 0.0"));
  EXPECT_TRUE(Exposes("vllm:kv_cache_usage_perc{" + who + "} 0.0"));
  EXPECT_TRUE(Exposes("vllm:request_success_total{engine=\"0\",finished_reason=\"abort\",model_name=\"m\"} 20.0"));
}

TEST_F(FrontendTest, MeasuresThePhasesOfARequest) {
  Start();
  Client client;
  ASSERT_TRUE(Submit(client, Tokens(20)).ok());
  ASSERT_TRUE(client.WaitFinished());
  for (const char* name :
       {"time_to_first_token_seconds", "request_queue_time_seconds", "request_prefill_time_seconds",
        "request_decode_time_seconds", "request_inference_time_seconds", "e2e_request_latency_seconds",
        "request_time_per_output_token_seconds", "request_num_preemptions", "request_params_max_tokens"}) {
    EXPECT_TRUE(Exposes(base::StrCat("vllm:", name, "_count{engine=\"0\",model_name=\"m\"} 1.0"))) << name;
  }
}

TEST_F(FrontendTest, AFullQueueIsOverloadNotFailure) {
  Start({.max_queued = 34, .endless = true});
  runner_->Hold(true);
  std::vector<Client> clients(40);
  int refused = 0;
  for (Client& client : clients) {
    const auto result = Submit(client, Tokens(2));
    if (result.ok()) continue;
    ++refused;
    EXPECT_EQ(result.error().code, base::ErrorCode::kOverloaded);
    EXPECT_EQ(result.error().message,
              "The engine is currently busy and cannot accept new requests. Please try again later or on a different "
              "instance.");
  }
  EXPECT_EQ(refused, 40 - 34);
  EXPECT_TRUE(Exposes("vllm:admission_rejections_total{model_name=\"m\",reason=\"max_num_queued_reqs\"} 6.0"));
}

TEST_F(FrontendTest, DrainLetsRequestsEndAndRefusesNewOnes) {
  Start();
  Client client;
  ASSERT_TRUE(Submit(client, Tokens(20)).ok());
  engine_->Drain(60'000);
  EXPECT_EQ(client.finish().finish, FinishReason::kStop);
  EXPECT_EQ(RefusalOf({}), "The engine is shutting down.");
}

TEST_F(FrontendTest, DrainAbortsWhatDoesNotEndInTime) {
  Start({.endless = true});
  runner_->Hold(true);
  Client client;
  ASSERT_TRUE(Submit(client, Tokens(60)).ok());
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    runner_->Hold(false);
  });
  engine_->Drain(1);
  later.join();
  ASSERT_TRUE(client.WaitFinished());
  EXPECT_TRUE(client.finish().finish == FinishReason::kAbort || client.finish().finish == FinishReason::kLength);
}

TEST_F(FrontendTest, ADeadEngineEndsEveryRequestWithAnError) {
  Start({.endless = true});
  Client client;
  runner_->Fail();
  ASSERT_TRUE(Submit(client, Tokens(60)).ok());
  ASSERT_TRUE(client.WaitFinished());
  ASSERT_TRUE(client.error());
  EXPECT_EQ(client.error()->code, base::ErrorCode::kInternal);
  EXPECT_FALSE(engine_->healthy());
  const auto result = Submit(client);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, base::ErrorCode::kInternal);
}

TEST_F(FrontendTest, DestructionWithRunningRequestsIsQuiet) {
  for (int i = 0; i < 20; ++i) {
    Start({.endless = true});
    std::vector<Client> clients(8);
    for (Client& client : clients) ASSERT_TRUE(Submit(client, Tokens(60)).ok());
    engine_.reset();
  }
}

}  // namespace
}  // namespace vllm
