// Replays schedules that vLLM's own scheduler made (tools/golden/scheduler.py): the same sequences, token counts, block
// ids, hits, preemptions, ends and outputs at every step.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "engine/kv/kv_cache_config.h"
#include "engine/sched/scheduler.h"
#include "tests/engine/sched/scripted_runner.h"

namespace vllm {
namespace {

using nlohmann::json;

json ReadGolden(const std::string& name) {
  std::ifstream file(std::string(VLLM_SOURCE_DIR) + "/tests/data/scheduler/" + name + ".json");
  return json::parse(file);
}

std::string HashIds(const BlockIds& groups) {
  uint64_t value = 0xcbf29ce484222325;
  const auto add = [&](uint64_t x) { value = (value ^ x) * 0x100000001b3; };
  for (const std::vector<int32_t>& group : groups) {
    add(group.size());
    for (const int32_t id : group) add(static_cast<uint64_t>(id));
  }
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) {
    if (const unsigned digit = value >> shift & 15; digit != 0 || !text.empty()) text += "0123456789abcdef"[digit];
  }
  return text;
}

SchedulerConfig ConfigOf(const json& config) {
  return {.max_model_len = config["max_model_len"],
          .max_num_batched_tokens = config["max_num_batched_tokens"],
          .max_num_seqs = config["max_num_seqs"],
          .long_prefill_token_threshold = config["long_prefill_token_threshold"],
          .enable_chunked_prefill = config["enable_chunked_prefill"],
          .async_scheduling = config["async_scheduling"],
          .reserve_full_prompt = config["scheduler_reserve_full_isl"],
          .watermark = config["watermark"],
          .enable_prefix_caching = config["enable_prefix_caching"],
          .policy = config["policy"] == "priority" ? SchedulingPolicy::kPriority : SchedulingPolicy::kFcfs,
          .num_spec_tokens = config["num_spec_tokens"]};
}

class Replay {
 public:
  explicit Replay(const json& golden)
      : golden_(golden),
        config_(ConfigOf(golden["config"])),
        kv_(TestKvConfig(golden["config"]["num_blocks"], golden["config"]["windows"])),
        scheduler_(config_, kv_),
        model_(kv_, {.num_drafts = static_cast<int>(config_.num_spec_tokens), .async = config_.async_scheduling}) {}

  void Run() {
    const size_t depth = static_cast<size_t>(config_.max_steps_in_flight());
    const json& trace = golden_["trace"];
    for (size_t k = 0; k < trace.size(); ++k) {
      AddAndAbort(k);
      SchedulerOutput step = scheduler_.Schedule();
      ASSERT_TRUE(scheduler_.TakeEnded().empty());
      json entry = Describe(step);
      entry["free"] = scheduler_.kv().num_free_blocks();
      const bool started = step.total_tokens > 0;
      if (started) flights_.push_back(std::move(step));
      if (!flights_.empty() && !(started && flights_.size() < depth)) {
        entry["o"] = Update(flights_.front());
        flights_.pop_front();
      }
      scheduler_.CheckIntegrity();
      ASSERT_EQ(entry, trace[k]) << "at step " << k;
    }
  }

 private:
  void AddAndAbort(size_t k) {
    for (const json& request : golden_["requests"]) {
      if (request["at"] == k) Add(request);
    }
    for (const json& abort : golden_["aborts"]) {
      if (abort[0] == k) scheduler_.Abort(abort[1].get<RequestId>());
    }
  }

  void Add(const json& request) {
    const RequestId id = request["id"];
    std::vector<int32_t> tokens;
    if (const RequestId after = request["after"]; after != 0) tokens = known_.at(after);
    for (int i = 0; i < request["length"].get<int>(); ++i) {
      const int own = static_cast<int>(id) * 7919 + i * 17;
      tokens.push_back((i < request["shared"].get<int>() ? request["family"].get<int>() * 131 + i * 31 : own) %
                       kScriptedVocab);
    }
    known_[id] = tokens;
    scheduler_.Add(
        {.id = id,
         .prompt_token_ids = std::move(tokens),
         .params = std::make_shared<const SamplingParams>(SamplingParams{
             .stop_token_ids = request["stop_token_ids"], .max_tokens = request["max_tokens"].get<int64_t>()}),
         .cache_salt = request["salt"],
         .priority = request["priority"],
         .arrival_us = static_cast<int64_t>(id)});
  }

  json Describe(const SchedulerOutput& step) {
    std::map<RequestId, json> parts;  // kind, computed tokens, hash of the block ids
    for (const NewRequestData& request : step.new_requests) {
      parts[request.id] = {request.resumed ? 2 : 1, request.num_computed_tokens, HashIds(request.block_ids)};
    }
    for (const CachedRequestData& request : step.cached_requests) {
      parts[request.id] = {0, request.num_computed_tokens, HashIds(request.new_block_ids)};
    }
    json scheduled = json::array();
    for (const ScheduledTokens& tokens : step.scheduled) {
      const json& part = parts.at(tokens.id);
      scheduled.push_back({tokens.id, tokens.num_tokens, part[0], part[1], tokens.spec_token_ids.size(), part[2]});
    }
    std::vector<RequestId> preempted = step.preempted, finished = step.finished;
    std::sort(preempted.begin(), preempted.end());
    std::sort(finished.begin(), finished.end());
    return {{"s", scheduled}, {"p", preempted}, {"f", finished}};
  }

  json Update(const SchedulerOutput& step) {
    json news = json::array();
    for (const CoreOutput& output : scheduler_.UpdateFromOutput(step, model_.RunStep(step))) {
      std::vector<int32_t>& known = known_.at(output.id);
      known.insert(known.end(), output.new_token_ids.begin(), output.new_token_ids.end());
      const std::string reason = !output.finish ? "" : *output.finish == FinishReason::kStop ? "stop" : "length";
      news.push_back({output.id, output.new_token_ids, reason});
    }
    return news;
  }

  const json& golden_;
  const SchedulerConfig config_;
  const KvCacheConfig kv_;
  Scheduler scheduler_;
  ScriptedModel model_;
  std::map<RequestId, std::vector<int32_t>> known_;
  std::deque<SchedulerOutput> flights_;
};

class GoldenSchedule : public testing::TestWithParam<std::string> {};

TEST_P(GoldenSchedule, IsVllms) {
  const json golden = ReadGolden(GetParam());
  ASSERT_GT(golden["trace"].size(), 100u);
  Replay(golden).Run();
}

INSTANTIATE_TEST_SUITE_P(Scenarios, GoldenSchedule,
                         testing::Values("plain", "plain_async", "no_caching", "tight", "tight_async",
                                         "no_reserve_async", "watermark_threshold", "unchunked", "priority", "window",
                                         "window_async", "hybrid", "hybrid_async", "hybrid_tight_async", "drafts",
                                         "drafts_async"),
                         [](const auto& info) { return info.param; });

// 'f' full attention, 's' and 't' sliding windows, capitals with twice the heads.
TEST(GoldenGroups, AreVllms) {
  const json cases = ReadGolden("groups");
  ASSERT_GE(cases.size(), 10u);
  for (const json& golden : cases) {
    const std::string pattern = golden["pattern"];
    std::vector<LayerKvCache> layers;
    for (const char kind : pattern) {
      const char lower = static_cast<char>(kind | 32);
      const int window = lower == 's' ? 64 : lower == 't' ? 128 : 0;
      layers.push_back({.layer = static_cast<int>(layers.size()),
                        .spec = {.kind = window > 0 ? KvCacheKind::kSlidingWindow : KvCacheKind::kFullAttention,
                                 .block_size = 16,
                                 .kv_heads = kind == lower ? 1 : 2,
                                 .head_dim = 16,
                                 .window = window}});
    }
    json groups = json::array();
    for (const KvCacheGroup& group : MakeKvCacheGroups(layers)) {
      groups.push_back(
          {{"layers", group.layers}, {"block_size", group.spec.block_size}, {"window", group.spec.window}});
    }
    EXPECT_EQ(groups, golden["groups"]) << pattern;
  }
}

}  // namespace
}  // namespace vllm
