// What a simulation's seed decides: an engine's configuration and its clients.
#include <algorithm>

#include "base/strings.h"
#include "tests/engine/sched/simulation_random.h"
#include "tests/engine/sched/simulation_util.h"

namespace vllm {
namespace {

KvCacheConfig DrawKvCache(Random& random, const SchedulerConfig& scheduler) {
  const int64_t max_model_len = scheduler.max_model_len;
  const int block_size = random.OneOf({2, 4, 4, 8, 16});
  KvCacheConfig config{.layer_slots = 1};
  const auto add = [&](int scale, int64_t window) {
    config.groups.push_back({.spec = {.kind = window > 0 ? KvCacheKind::kSlidingWindow : KvCacheKind::kFullAttention,
                                      .block_size = block_size * scale,
                                      .kv_heads = 1,
                                      .head_dim = 1,
                                      .window = static_cast<int>(window)},
                             .layers = {static_cast<int>(config.groups.size())}});
  };
  const int64_t window = random.Between(2, std::max<int64_t>(3, max_model_len / 2));
  switch (random.Below(8)) {
    case 0:
    case 1:
    case 2:
    case 3:
      add(1, 0);
      break;
    case 4:
      add(1, window);
      break;
    case 5:
      add(1, 0);
      add(1, window);
      add(1, window);
      break;
    case 6:
      add(random.OneOf({1, 2}), window);
      add(1, 0);
      break;
    default:
      add(random.OneOf({1, 2}), 0);
      add(1, window);
      add(random.OneOf({1, 2}), random.Between(2, max_model_len));
  }
  // From what the shortest sequence needs to what all need at once.
  const int64_t shortest = 2 + 2 * scheduler.num_spec_tokens + scheduler.num_lookahead_tokens;
  int64_t least = 0, whole = 0;
  for (const KvCacheGroup& group : config.groups) {
    least += shortest / group.spec.block_size + 1;
    whole += std::max(shortest, max_model_len) / group.spec.block_size + 1;
  }
  const int64_t usable = random.Chance(100)   ? random.Between(least, whole)
                         : random.Chance(250) ? random.Between(whole, whole * (scheduler.max_num_seqs + 1))
                                              : random.Between(whole, 3 * whole);
  config.num_blocks = 1 + usable;
  return config;
}

SchedulerConfig DrawScheduler(Random& random) {
  SchedulerConfig config{.max_model_len = random.Between(8, random.OneOf({32, 96, 200}))};
  config.max_num_seqs = random.Between(1, random.OneOf({2, 6, 16}));
  config.enable_chunked_prefill = !random.Chance(150);
  config.max_num_batched_tokens =
      random.Between(config.max_num_seqs, std::max(config.max_num_seqs, random.OneOf<int64_t>({4, 24, 64, 200})));
  if (!config.enable_chunked_prefill) {
    config.max_num_batched_tokens = std::max(config.max_num_batched_tokens, config.max_model_len);
  }
  if (random.Chance(250)) {
    config.long_prefill_token_threshold = random.Between(1, std::min<int64_t>(config.max_model_len, 40));
    config.long_prefill_token_threshold_adaptive = random.Chance(500);
  }
  if (config.enable_chunked_prefill && random.Chance(250)) config.itl_target_us = random.Between(50, 1000);
  config.async_scheduling = random.Chance(650);
  config.reserve_full_prompt = random.Chance(600);
  config.watermark = random.Chance(300) ? 0.01 * static_cast<double>(random.Between(1, 30)) : 0;
  config.enable_prefix_caching = random.Chance(850);
  config.policy = random.Chance(350) ? SchedulingPolicy::kPriority : SchedulingPolicy::kFcfs;
  if (random.Chance(350)) {
    config.num_spec_tokens = random.Between(1, 4);
    config.num_lookahead_tokens = random.Chance(500) ? config.num_spec_tokens : 0;
    config.max_num_batched_tokens = std::max(config.max_num_batched_tokens, 1 + config.num_spec_tokens);
  }
  return config;
}

}  // namespace

SimulationSetup DrawSimulationSetup(uint64_t seed) {
  Random random(seed * 0x2545f4914f6cdd1dull + 1);
  SimulationSetup setup{.seed = seed, .scheduler = DrawScheduler(random)};
  const int64_t max_model_len = setup.scheduler.max_model_len;
  setup.kv = DrawKvCache(random, setup.scheduler);
  setup.max_live = random.Between(1, 2 * setup.scheduler.max_num_seqs + 4);
  setup.prompt_tokens_max = random.Between(1, max_model_len - 1);
  setup.max_tokens = random.Between(1, random.OneOf<int64_t>({4, 40, max_model_len}));
  setup.families = random.Between(1, 6);
  setup.shared_tokens_max = random.Between(0, setup.prompt_tokens_max);
  setup.arrivals = static_cast<int>(random.OneOf({60, 200, 500}));
  setup.cancels = static_cast<int>(random.OneOf({0, 4, 20, 60}));
  setup.resets = static_cast<int>(random.OneOf({0, 3, 20}));
  setup.salts = static_cast<int>(random.OneOf({0, 100, 400}));
  setup.deadlines = static_cast<int>(random.OneOf({0, 0, 100, 500}));
  setup.stops = static_cast<int>(random.OneOf({0, 300}));
  setup.errors = static_cast<int>(random.OneOf({0, 0, 2, 10}));
  setup.right_drafts = static_cast<int>(random.OneOf({0, 500, 800, 1000}));
  setup.priorities = random.Between(1, 4);
  return setup;
}

std::string SimulationSetup::Describe() const {
  std::string groups;
  for (const KvCacheGroup& group : kv.groups) {
    groups += base::StrCat(groups.empty() ? "" : ", ", group.spec.block_size, " tokens a block");
    if (group.spec.window > 0) groups += base::StrCat(" in a window of ", group.spec.window);
  }
  const auto is = [](bool value) { return value ? "yes" : "no"; };
  return base::StrCat(scheduler.policy == SchedulingPolicy::kFcfs ? "fcfs" : "priority", ", async ",
                      is(scheduler.async_scheduling), ", max_model_len ", scheduler.max_model_len, ", max_num_seqs ",
                      scheduler.max_num_seqs, ", max_num_batched_tokens ", scheduler.max_num_batched_tokens,
                      ", long_prefill_token_threshold ", scheduler.long_prefill_token_threshold,
                      scheduler.long_prefill_token_threshold_adaptive ? " adaptive" : "", ", itl_target_us ",
                      scheduler.itl_target_us, ", chunked prefill ", is(scheduler.enable_chunked_prefill), ", reserve ",
                      is(scheduler.reserve_full_prompt), ", watermark ", scheduler.watermark, ", prefix caching ",
                      is(scheduler.enable_prefix_caching), ", drafts ", scheduler.num_spec_tokens, " (", right_drafts,
                      "/1000 right), lookahead ", scheduler.num_lookahead_tokens, "; ", kv.num_blocks, " blocks (",
                      groups, "); ", max_live, " clients, prompts to ", prompt_tokens_max, ", outputs to ", max_tokens,
                      ", ", families, " families sharing to ", shared_tokens_max, "; of 1000: arrivals ", arrivals,
                      ", cancels ", cancels, ", resets ", resets, ", salts ", salts, ", deadlines ", deadlines,
                      ", stops ", stops, ", errors ", errors, "; priorities ", priorities);
}

}  // namespace vllm
