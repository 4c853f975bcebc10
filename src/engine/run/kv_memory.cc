// How much memory the KV cache takes, and the context length that follows from it.
#include "engine/run/kv_memory.h"

#include <algorithm>

#include "base/result.h"

namespace vllm {
namespace {

constexpr int64_t kReserveBytes = 512ll << 20;  // for activations, the prompt's text and the process itself

int64_t BudgetBytes(const EngineConfig& config, uint64_t weight_bytes, const base::MemoryInfo& memory) {
  const auto weights = static_cast<int64_t>(weight_bytes);
  if (config.kv_cache_memory_bytes) return *config.kv_cache_memory_bytes;
  if (config.gpu_memory_utilization)
    return static_cast<int64_t>(*config.gpu_memory_utilization * static_cast<double>(memory.total)) - weights;
  int64_t budget = static_cast<int64_t>(0.4 * static_cast<double>(memory.available));
  if (memory.cgroup_limit)
    budget = std::min(budget, static_cast<int64_t>(*memory.cgroup_limit) - weights - kReserveBytes);
  return std::max<int64_t>(budget, 0);
}

std::string BudgetText(const EngineConfig& config, uint64_t weight_bytes, const base::MemoryInfo& memory) {
  const std::string weights = base::HumanBytes(weight_bytes);
  if (config.kv_cache_memory_bytes) return "--kv-cache-memory-bytes";
  if (config.gpu_memory_utilization)
    return base::StrCat(*config.gpu_memory_utilization, " x ", base::HumanBytes(memory.total), " of memory - ", weights,
                        " of weights");
  std::string text = base::StrCat("40 % of ", base::HumanBytes(memory.available), " available");
  if (memory.cgroup_limit)
    text += base::StrCat(", at most the control group's ", base::HumanBytes(*memory.cgroup_limit), " - ", weights,
                         " of weights - ", base::HumanBytes(kReserveBytes));
  return text;
}

}  // namespace

KvMemoryPlan PlanKvMemory(const EngineConfig& config, std::span<const LayerKvCache> layers, int64_t model_context,
                          int64_t max_num_batched_tokens, uint64_t weight_bytes, const base::MemoryInfo& memory) {
  KvMemoryPlan plan;
  plan.max_model_len = config.max_model_len.value_or(model_context);
  std::vector<KvCacheGroup> groups = MakeKvCacheGroups({layers.begin(), layers.end()});
  const int64_t block_bytes = KvBytesPerBlock(groups);
  const KvLimits limits{.max_model_len = plan.max_model_len, .max_in_flight_tokens = 2 * max_num_batched_tokens};
  const int64_t one = KvBlocksNeeded(groups, plan.max_model_len, limits);
  const int64_t budget = BudgetBytes(config, weight_bytes, memory);
  int64_t blocks = std::min(one * config.max_num_seqs + 1, budget / block_bytes);
  if (config.num_gpu_blocks_override) blocks = *config.num_gpu_blocks_override;
  const std::string source =
      config.num_gpu_blocks_override ? "--num-gpu-blocks-override" : BudgetText(config, weight_bytes, memory);
  if (one + 1 > blocks) {
    const int64_t longest = std::max<int64_t>(LongestSequence(groups, blocks, limits), 0);
    const std::string arithmetic = base::StrCat(
        "a sequence of ", plan.max_model_len, " tokens needs ",
        base::HumanBytes(static_cast<uint64_t>(one * block_bytes)), " of KV cache, and there are ",
        base::HumanBytes(static_cast<uint64_t>(std::max<int64_t>(blocks - 1, 0) * block_bytes)), " (", source, ")");
    if (config.max_model_len || longest < config.block_size)
      base::Throw(base::ErrorCode::kOutOfMemory, "max_model_len ", plan.max_model_len, " does not fit: ", arithmetic,
                  longest > 0 ? base::StrCat("; the longest that fits is --max-model-len ", longest)
                              : std::string("; give the KV cache more memory"));
    plan.notice = base::StrCat("context shrunk from ", plan.max_model_len, " to ", longest, " tokens: ", arithmetic);
    plan.max_model_len = longest;
    blocks = std::min(
        blocks, KvBlocksNeeded(groups, longest, {longest, limits.max_in_flight_tokens}) * config.max_num_seqs + 1);
  }
  plan.config = MakeKvCacheConfig(std::move(groups), 0, blocks);
  return plan;
}

}  // namespace vllm
