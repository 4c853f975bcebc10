// The options map → EngineConfig.
#include "engine/config.h"

#include <algorithm>
#include <limits>

#include "base/limits.h"
#include "base/options.h"
#include "base/strings.h"
#include "model/kv_cache_spec.h"

namespace vllm {
namespace {

using base::Options;

// Every option that this function reads; the C ABI refuses others by this list.
constexpr std::string_view kNames[] = {
    "model",
    "tokenizer",
    "served_model_name",
    "chat_template",
    "generation_config",
    "hf_hub_cache",
    "hf_home",
    "xdg_cache_home",
    "home",
    "max_model_len",
    "seed",
    "max_logprobs",
    "logprobs_mode",
    "device",
    "numerics",
    "batch_invariant",
    "threads",
    "isa",
    "block_size",
    "kv_cache_dtype",
    "enable_prefix_caching",
    "num_gpu_blocks_override",
    "gpu_memory_utilization",
    "kv_cache_memory_bytes",
    "cpu_kvcache_space",
    "max_num_seqs",
    "max_num_batched_tokens",
    "long_prefill_token_threshold",
    "long_prefill_token_threshold_adaptive",
    "enable_chunked_prefill",
    "async_scheduling",
    "scheduler_reserve_full_isl",
    "watermark",
    "max_num_queued_reqs",
    "max_num_queued_tokens",
    "itl_target_ms",
    "request_timeout",
    "scheduling_policy",
    "trace_file",
};

// A size between `least` and the largest int; absent: nothing.
std::optional<int64_t> AtLeast(const Options& options, std::string_view name, int64_t least) {
  const std::optional<int64_t> value = options.FindSize(name);
  if (!value) return value;
  if (*value < least) options.Refuse(name, base::StrCat("must be at least ", least));
  if (*value > std::numeric_limits<int32_t>::max()) options.Refuse(name, "is too large");
  return value;
}

std::optional<int64_t> MaxModelLen(const Options& options) {
  const std::string text = options.String("max_model_len", "auto");
  if (text == "auto" || text == "-1") return std::nullopt;
  return AtLeast(options, "max_model_len", 1);
}

std::optional<double> Utilization(const Options& options) {
  const std::optional<double> value = options.FindDouble("gpu_memory_utilization");
  if (value && !(*value > 0 && *value <= 1)) options.Refuse("gpu_memory_utilization", "must be above 0, at most 1");
  return value;
}

std::optional<int64_t> KvBytes(const Options& options) {
  if (const std::optional<int64_t> bytes = options.FindSize("kv_cache_memory_bytes")) {
    if (*bytes < 1) options.Refuse("kv_cache_memory_bytes", "must be at least 1");
    return bytes;
  }
  // vLLM's variable counts in GiB; 0 means automatic.
  const double space = options.Double("cpu_kvcache_space", 0);
  if (space < 0 || space > 1 << 20) options.Refuse("cpu_kvcache_space", "must be a number of GiB");
  if (space == 0) return std::nullopt;
  return static_cast<int64_t>(space * (1 << 30));
}

std::optional<vt::DType> KvCacheDType(const Options& options) {
  const std::string name = options.String("kv_cache_dtype", "auto");
  const std::optional<vt::DType> dtype = ParseKvCacheDType(name);
  if (!dtype && name != "auto") options.Refuse("kv_cache_dtype", base::StrCat("is none of ", KvCacheDTypeNames()));
  return dtype;
}

void ReadDevice(const Options& options, EngineConfig* config) {
  const std::string device = options.String("device", "cpu");
  const std::optional<vt::DeviceType> type = vt::ParseDevice(device);
  if (!type) options.Refuse("device", "is none of cpu, ref, opaque");
  config->device = *type;
  const char* const fallback = options.Bool("batch_invariant", false) ? "invariant" : "default";
  const std::optional<vt::Numerics> numerics = vt::ParseNumerics(options.String("numerics", fallback));
  if (!numerics) options.Refuse("numerics", "is none of exact, default, invariant, fast");
  config->numerics = *numerics;
  config->threads = static_cast<int>(AtLeast(options, "threads", 0).value_or(0));
  config->isa = options.String("isa", "");
}

void ReadScheduler(const Options& options, EngineConfig* config) {
  config->max_num_seqs = static_cast<int>(AtLeast(options, "max_num_seqs", 1).value_or(config->max_num_seqs));
  config->max_num_batched_tokens = AtLeast(options, "max_num_batched_tokens", 1);
  config->long_prefill_token_threshold = AtLeast(options, "long_prefill_token_threshold", 0).value_or(0);
  config->long_prefill_token_threshold_adaptive = options.Bool("long_prefill_token_threshold_adaptive", false);
  config->enable_chunked_prefill = options.Bool("enable_chunked_prefill", true);
  config->async_scheduling = options.Bool("async_scheduling", true);
  config->scheduler_reserve_full_isl = options.Bool("scheduler_reserve_full_isl", true);
  config->watermark = options.Double("watermark", 0);
  if (config->watermark < 0 || config->watermark >= 1) options.Refuse("watermark", "must be at least 0, below 1");
  config->max_num_queued_reqs = AtLeast(options, "max_num_queued_reqs", 0);
  config->max_num_queued_tokens = AtLeast(options, "max_num_queued_tokens", 0);
  config->itl_target_ms = options.Double("itl_target_ms", config->itl_target_ms);
  if (!(config->itl_target_ms >= 0 && config->itl_target_ms <= 1e6)) {
    options.Refuse("itl_target_ms", "is not in 0 .. 1000000 milliseconds");
  }
  config->request_timeout_s = options.Double("request_timeout", 0);
  if (!(config->request_timeout_s >= 0 && config->request_timeout_s <= base::kMaxRequestTimeoutSeconds)) {
    options.Refuse("request_timeout", base::StrCat("is not in 0 .. ", base::kMaxRequestTimeoutSeconds, " seconds"));
  }
  config->scheduling_policy = options.String("scheduling_policy", "fcfs");
}

}  // namespace

std::span<const std::string_view> EngineOptionNames() { return kNames; }

EngineConfig EngineConfigFromOptions(const Options& options) {
  EngineConfig config;
  config.model = options.String("model", "");
  if (config.model.empty()) {
    base::Throw(base::ErrorCode::kInvalidArgument,
                "model: none given; name a GGUF file, a model folder, or a hub name that is in the local cache");
  }
  config.tokenizer = options.String("tokenizer", "");
  config.served_model_name = options.List("served_model_name");
  config.chat_template = options.String("chat_template", "");
  config.generation_config = options.String("generation_config", "auto");
  config.hub = {.hf_hub_cache = options.String("hf_hub_cache", ""),
                .hf_home = options.String("hf_home", ""),
                .xdg_cache_home = options.String("xdg_cache_home", ""),
                .home = options.String("home", "")};
  config.max_model_len = MaxModelLen(options);
  config.seed = options.FindInt("seed");
  const int64_t max_logprobs = options.Int("max_logprobs", config.max_logprobs);
  if (max_logprobs < -1 || max_logprobs > std::numeric_limits<int32_t>::max()) {
    options.Refuse("max_logprobs", "must be at least -1");
  }
  config.max_logprobs = static_cast<int>(max_logprobs);
  config.logprobs_mode = options.String("logprobs_mode", config.logprobs_mode);
  ReadDevice(options, &config);
  // 0 and multiples of 16 are judged where the KV cache is planned, with vLLM's text.
  config.block_size = static_cast<int>(AtLeast(options, "block_size", 0).value_or(config.block_size));
  config.kv_cache_dtype = KvCacheDType(options);
  config.enable_prefix_caching = options.Bool("enable_prefix_caching", true);
  config.num_gpu_blocks_override = AtLeast(options, "num_gpu_blocks_override", 1);
  config.gpu_memory_utilization = Utilization(options);
  config.kv_cache_memory_bytes = KvBytes(options);
  ReadScheduler(options, &config);
  config.trace_file = options.String("trace_file", "");
  return config;
}

}  // namespace vllm
