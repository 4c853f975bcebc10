// The output thread: order, merging, ends, aborts from everywhere, metrics.
#include "engine/out/output_processor.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <set>

#include "tests/engine/out/piece_tokenizer.h"

namespace vllm {
namespace {

using std::chrono::seconds;
constexpr auto kHang = seconds(60);

// A processor whose core is the test.
class OutputProcessorTest : public ::testing::Test {
 protected:
  // Collects what one request's callback gets; shared with the callback, which may outlive the test's last look.
  struct Client {
    struct State {
      std::mutex mutex;
      std::condition_variable changed;
      std::vector<RequestOutput> outputs;
      bool finished = false;
    };
    std::shared_ptr<State> state = std::make_shared<State>();

    OutputCallback Callback() {
      return [state = state](RequestOutput output) {
        const std::lock_guard lock(state->mutex);
        state->finished |= output.finished;
        state->outputs.push_back(std::move(output));
        state->changed.notify_all();
      };
    }
    bool WaitFinished() {
      std::unique_lock lock(state->mutex);
      return state->changed.wait_for(lock, kHang, [this] { return state->finished; });
    }
    bool WaitCount(size_t count) {
      std::unique_lock lock(state->mutex);
      return state->changed.wait_for(lock, kHang, [&] { return state->outputs.size() >= count; });
    }
    bool finished() {
      const std::lock_guard lock(state->mutex);
      return state->finished;
    }
    std::vector<RequestOutput> outputs() {
      const std::lock_guard lock(state->mutex);
      return state->outputs;
    }
    std::string Text(int index = 0) {
      std::string text;
      for (const RequestOutput& output : outputs()) {
        for (const ChoiceOutput& choice : output.choices) {
          if (choice.index == index) text += choice.text;
        }
      }
      return text;
    }
  };

  void Add(uint64_t handle, std::vector<RequestId> sequences, OutputCallback callback, SamplingParams params = {}) {
    processor_.Add({.handle = handle,
                    .sequences = std::move(sequences),
                    .params = std::make_shared<SamplingParams>(std::move(params)),
                    .prompt_token_ids = {'x', 'y', 'z'},
                    .arrival_us = 1,
                    .on_output = std::move(callback)});
  }
  CoreOutput Report(RequestId id, const std::vector<std::string>& pieces,
                    std::optional<FinishReason> finish = std::nullopt) const {
    return {.id = id, .new_token_ids = tokenizer_.Ids(pieces), .finish = finish};
  }
  void Push(CoreOutput output) {
    std::vector<CoreOutput> outputs;
    outputs.push_back(std::move(output));
    processor_.Push(std::move(outputs));
  }
  bool Exposes(const std::string& line) const {
    return registry_.Expose().find("\n" + line + "\n") != std::string::npos;
  }
  std::vector<RequestId> aborted() {
    const std::lock_guard lock(aborted_mutex_);
    return aborted_;
  }

  const PieceTokenizer tokenizer_{{"alpha ", "be", "ta ST", "OPP", "STO", "P!x", "after", "one ", "two "}};
  base::MetricsRegistry registry_;
  EngineMetrics metrics_{registry_, "m", 100};
  std::mutex aborted_mutex_;
  std::vector<RequestId> aborted_;
  OutputProcessor processor_{{.tokenizer = &*tokenizer_, .metrics = &metrics_, .abort_sequence = [this](RequestId id) {
                                const std::lock_guard lock(aborted_mutex_);
                                aborted_.push_back(id);
                              }}};
};

TEST_F(OutputProcessorTest, DeliversTextTokensAndTheEnd) {
  Client client;
  Add(1, {10}, client.Callback());
  CoreOutput first = Report(10, {"one "});
  first.cached_tokens = 2;
  Push(std::move(first));
  Push(Report(10, {"two "}, FinishReason::kLength));
  ASSERT_TRUE(client.WaitFinished());
  EXPECT_EQ(client.Text(), "one two ");
  EXPECT_TRUE(client.outputs()[0].first);
  EXPECT_EQ(client.outputs()[0].cached_tokens, 2);
  EXPECT_EQ(client.outputs().back().choices[0].finish, FinishReason::kLength);
  EXPECT_TRUE(aborted().empty());
  EXPECT_TRUE(processor_.WaitUntilEmpty(60'000));
}

TEST_F(OutputProcessorTest, AStopStringEndsTheSequenceInTheCore) {
  Client client;
  SamplingParams params;
  params.stop = {"STOP!"};
  Add(1, {10}, client.Callback(), params);
  CoreOutput output = Report(10, {"alpha ", "STO", "P!x", "after"});
  output.logprobs.resize(4);
  Push(std::move(output));
  Push(Report(10, {"after"}));
  ASSERT_TRUE(client.WaitFinished());
  const ChoiceOutput choice = client.outputs().back().choices[0];
  EXPECT_EQ(client.Text(), "alpha ");
  EXPECT_EQ(choice.finish, FinishReason::kStop);
  EXPECT_EQ(std::get<std::string>(choice.stop_reason), "STOP!");
  EXPECT_EQ(choice.token_ids.size(), 3u);
  EXPECT_EQ(choice.logprobs.size(), 3u);
  EXPECT_TRUE(processor_.WaitUntilEmpty(60'000));
  EXPECT_EQ(aborted(), std::vector<RequestId>{10});
}

TEST_F(OutputProcessorTest, AStopStringInTheLastStepNeedsNoAbort) {
  Client client;
  SamplingParams params;
  params.stop = {"two"};
  Add(1, {10}, client.Callback(), params);
  Push(Report(10, {"one ", "two "}, FinishReason::kLength));
  ASSERT_TRUE(client.WaitFinished());
  EXPECT_EQ(client.outputs().back().choices[0].finish, FinishReason::kStop);
  EXPECT_TRUE(processor_.WaitUntilEmpty(60'000));
  EXPECT_TRUE(aborted().empty());
}

TEST_F(OutputProcessorTest, ChoicesOfOneStepGoOutTogether) {
  Client client;
  Add(1, {10, 11}, client.Callback());
  processor_.Push({Report(10, {"one "}), Report(11, {"two "})});
  ASSERT_TRUE(client.WaitCount(1));
  processor_.Push({Report(10, {"one "}, FinishReason::kStop), Report(11, {"two "})});
  ASSERT_TRUE(client.WaitCount(2));
  EXPECT_FALSE(client.finished());
  Push(Report(11, {}, FinishReason::kAbort));
  ASSERT_TRUE(client.WaitFinished());
  EXPECT_EQ(client.outputs()[0].choices.size(), 2u);
  EXPECT_EQ(client.Text(0), "one ");
  EXPECT_EQ(client.Text(1), "two two ");
}

TEST_F(OutputProcessorTest, ASlowCallbackDelaysNobodyAndItsNewsMerge) {
  std::promise<void> entered, release;
  std::atomic<int> calls = 0;
  std::atomic<size_t> tokens = 0;
  std::promise<void> done;
  Add(1, {10}, [&](RequestOutput output) {
    if (++calls == 1) {
      entered.set_value();
      release.get_future().wait();
    }
    for (const ChoiceOutput& choice : output.choices) tokens += choice.token_ids.size();
    if (output.finished) done.set_value();
  });
  Push(Report(10, {"one "}));
  ASSERT_EQ(entered.get_future().wait_for(kHang), std::future_status::ready);
  for (int i = 0; i < 1000; ++i) Push(Report(10, {"two "}));  // returns although the callback hangs
  Push(Report(10, {"one "}, FinishReason::kLength));
  release.set_value();
  ASSERT_EQ(done.get_future().wait_for(kHang), std::future_status::ready);
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(tokens, 1002u);
  EXPECT_TRUE(processor_.WaitUntilEmpty(60'000));
  EXPECT_TRUE(Exposes("vllm:generation_tokens_total{engine=\"0\",model_name=\"m\"} 1002.0"));
  EXPECT_TRUE(Exposes("vllm:inter_token_latency_seconds_count{engine=\"0\",model_name=\"m\"} 1001.0"))
      << "merging must not lose observations";
}

TEST_F(OutputProcessorTest, NoCallbackAfterAbortReturns) {
  for (uint64_t handle = 1; handle <= 200; ++handle) {
    std::atomic<bool> aborted = false, late = false;
    const RequestId id = 1000 + handle;
    Add(handle, {id}, [&](RequestOutput) { late = late || aborted; });
    std::thread pusher([&] {
      for (int i = 0; i < 20; ++i) Push(Report(id, {"one "}));
    });
    processor_.Abort(handle);
    aborted = true;
    pusher.join();
    std::this_thread::yield();
    EXPECT_FALSE(late);
  }
  EXPECT_EQ(processor_.num_requests(), 0u);
  EXPECT_EQ(aborted().size(), 200u);
}

TEST_F(OutputProcessorTest, AbortWaitsForARunningCallback) {
  std::promise<void> entered, release;
  std::atomic<bool> inside = false;
  Add(1, {10}, [&](RequestOutput) {
    inside = true;
    entered.set_value();
    release.get_future().wait();
    inside = false;
  });
  Push(Report(10, {"one "}));
  entered.get_future().wait();
  auto aborting = std::async(std::launch::async, [&] {
    processor_.Abort(1);
    return inside.load();
  });
  EXPECT_EQ(aborting.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  release.set_value();
  EXPECT_FALSE(aborting.get());
}

TEST_F(OutputProcessorTest, ARequestMayAbortItselfAndOthersFromItsCallback) {
  std::atomic<int> own = 0, other = 0;
  std::promise<void> done;
  Add(1, {10}, [&](RequestOutput) {
    ++own;
    processor_.Abort(1);
    processor_.Abort(2);
    done.set_value();
  });
  Add(2, {20}, [&](RequestOutput) { ++other; });
  processor_.Push({Report(10, {"one "}), Report(20, {"one "})});
  ASSERT_EQ(done.get_future().wait_for(kHang), std::future_status::ready);
  processor_.Push({Report(10, {"one "}), Report(20, {"one "})});
  ASSERT_TRUE(processor_.WaitUntilEmpty(60'000));
  Client last;
  Add(3, {30}, last.Callback());
  Push(Report(30, {"one "}, FinishReason::kStop));
  ASSERT_TRUE(last.WaitFinished());
  EXPECT_EQ(own, 1);
  EXPECT_EQ(other, 0);
  EXPECT_EQ(aborted(), (std::vector<RequestId>{10, 20}));
}

TEST_F(OutputProcessorTest, AnErrorEndsTheRequestWithItsSiblings) {
  Client client;
  Add(1, {10, 11, 12}, client.Callback());
  CoreOutput failed = Report(11, {}, FinishReason::kError);
  failed.error = base::MakeError(base::ErrorCode::kOutOfMemory, "no block is left");
  Push(std::move(failed));
  ASSERT_TRUE(client.WaitFinished());
  EXPECT_EQ(client.outputs().back().error->message, "no block is left");
  EXPECT_TRUE(processor_.WaitUntilEmpty(60'000));
  EXPECT_EQ(aborted(), (std::vector<RequestId>{10, 12}));
  EXPECT_TRUE(Exposes("vllm:request_success_total{engine=\"0\",finished_reason=\"error\",model_name=\"m\"} 3.0"));
}

TEST_F(OutputProcessorTest, AThrowingCallbackEndsItsRequestOnly) {
  Client other;
  Add(1, {10}, [](RequestOutput) { throw std::runtime_error("broken"); });
  Add(2, {20}, other.Callback());
  processor_.Push({Report(10, {"one "}), Report(20, {"two "}, FinishReason::kStop)});
  ASSERT_TRUE(other.WaitFinished());
  ASSERT_TRUE(processor_.WaitUntilEmpty(60'000));
  EXPECT_EQ(aborted(), std::vector<RequestId>{10});
}

TEST_F(OutputProcessorTest, PromptLogprobsComeOnceWithTheFirstOutput) {
  Client client;
  Add(1, {10}, client.Callback());
  CoreOutput first = Report(10, {"one "});
  first.prompt_logprobs = {std::nullopt, PositionLogprobs{{'y', -1.5f, 2}}, PositionLogprobs{{'z', -0.5f, 1}}};
  Push(std::move(first));
  ASSERT_TRUE(client.WaitCount(1));
  Push(Report(10, {"two "}, FinishReason::kStop));
  ASSERT_TRUE(client.WaitFinished());
  ASSERT_EQ(client.outputs()[0].prompt_logprobs.size(), 3u);
  EXPECT_EQ((*client.outputs()[0].prompt_logprobs[1])[0].rank, 2);
  EXPECT_TRUE(client.outputs()[1].prompt_logprobs.empty());
}

TEST_F(OutputProcessorTest, CountsRequestsChoicesAndTokensOnce) {
  Client two, length, stop;
  Add(1, {10, 11}, two.Callback());
  Add(2, {20}, length.Callback());
  Add(3, {30}, stop.Callback());
  std::vector<CoreOutput> step;
  for (const RequestId id : {10, 11, 20, 30}) {
    step.push_back(Report(id, {"one "}));
    step.back().cached_tokens = id == 11 ? 2 : 0;
    step.back().scheduled_us = 5;
  }
  processor_.Push(std::move(step));
  processor_.Push({Report(10, {"one "}, FinishReason::kStop), Report(11, {"one "}, FinishReason::kStop),
                   Report(20, {"one "}, FinishReason::kLength), Report(30, {"one "}, FinishReason::kStop)});
  ASSERT_TRUE(processor_.WaitUntilEmpty(60'000));
  for (uint64_t handle = 100; handle < 120; ++handle) {
    Add(handle, {handle}, [](RequestOutput) {});
    processor_.Abort(handle);
  }
  const std::string who = "engine=\"0\",model_name=\"m\"";
  const auto success = [](const std::string& reason) {
    return "vllm:request_success_total{engine=\"0\",finished_reason=\"" + reason + "\",model_name=\"m\"} ";
  };
  EXPECT_TRUE(Exposes(success("stop") + "3.0"));
  EXPECT_TRUE(Exposes(success("length") + "1.0"));
  EXPECT_TRUE(Exposes(success("abort") + "20.0"));
  EXPECT_TRUE(Exposes("vllm:e2e_request_latency_seconds_count{" + who + "} 24.0")) << "as many as ends";
  EXPECT_TRUE(Exposes("vllm:prompt_tokens_total{" + who + "} 9.0")) << "a prompt counts once, whatever n";
  EXPECT_TRUE(Exposes("vllm:generation_tokens_total{" + who + "} 8.0"));
  EXPECT_TRUE(Exposes("vllm:request_params_n_sum{" + who + "} 24.0"));
  EXPECT_TRUE(Exposes("vllm:request_params_n_count{" + who + "} 23.0"));
  EXPECT_TRUE(Exposes("vllm:iteration_tokens_total_sum{" + who + "} 18.0")) << "3 + 1 + 3 + 3 computed, 8 generated";
  EXPECT_TRUE(Exposes("vllm:iteration_tokens_total_count{" + who + "} 2.0"));
  EXPECT_TRUE(Exposes("vllm:time_to_first_token_seconds_count{" + who + "} 4.0"));
  EXPECT_TRUE(Exposes("vllm:request_queue_time_seconds_count{" + who + "} 4.0"));
}

TEST_F(OutputProcessorTest, ARefusedRequestIsNotCounted) {
  Add(1, {10}, [](RequestOutput) { FAIL(); });
  processor_.Remove(1);
  EXPECT_EQ(processor_.num_requests(), 0u);
  EXPECT_TRUE(Exposes("vllm:e2e_request_latency_seconds_count{engine=\"0\",model_name=\"m\"} 0.0"));
}

TEST_F(OutputProcessorTest, StopEndsAllCallbacks) {
  std::atomic<int> calls = 0;
  Add(1, {10}, [&](RequestOutput) { ++calls; });
  processor_.Stop();
  Push(Report(10, {"one "}));
  EXPECT_EQ(calls, 0);
}

TEST_F(OutputProcessorTest, AThousandRequestsFromManyThreads) {
  std::atomic<int> finished = 0;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 1; i <= 250; ++i) {
        const uint64_t id = t * 1000 + i;
        Add(id, {id}, [&](RequestOutput output) { finished += output.finished; });
        Push(Report(id, {"one "}));
        if (i % 5 == 0) {
          processor_.Abort(id);
        } else {
          Push(Report(id, {"two "}, FinishReason::kLength));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(processor_.WaitUntilEmpty(60'000));
  EXPECT_EQ(finished, 800);
  EXPECT_TRUE(Exposes("vllm:e2e_request_latency_seconds_count{engine=\"0\",model_name=\"m\"} 1000.0"));
}

}  // namespace
}  // namespace vllm
