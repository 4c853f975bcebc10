// Every setting of an engine, vLLM's names where vLLM has one. Filled from the options map by EngineConfigFromOptions.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "load/model_path.h"
#include "vt/device.h"
#include "vt/dtype.h"
#include "vt/numerics.h"

namespace base {
class Options;
}

namespace vllm {

struct EngineConfig {
  // Model
  std::string model = {};                           // a GGUF file, a folder, or a hub name
  std::string tokenizer = {};                       // a folder or file; empty: the model's own
  std::vector<std::string> served_model_name = {};  // empty: `model`
  std::string chat_template = {};                   // a file or the template itself; empty: the model's own
  std::string generation_config = "auto";           // "auto", "vllm" (none) or a folder
  HubLocations hub = {};                            // where hub names are looked up
  std::optional<int64_t> max_model_len = {};        // absent: the model's, shrunk to fit the memory
  std::optional<int64_t> seed = {};
  int max_logprobs = 20;                       // -1: no cap
  std::string logprobs_mode = "raw_logprobs";  // raw_logprobs, processed_logprobs, raw_logits, processed_logits

  // Device
  vt::DeviceType device = vt::DeviceType::kCpu;
  vt::Numerics numerics = vt::Numerics::kDefault;
  int threads = 0;       // 0: physical cores within affinity and cgroup limit
  std::string isa = {};  // VT_CPU_ISA

  // KV cache
  int block_size = 32;
  std::optional<vt::DType> kv_cache_dtype = {};  // absent: BF16, F32 with exact numerics
  bool enable_prefix_caching = true;
  std::optional<int64_t> num_gpu_blocks_override = {};
  std::optional<double> gpu_memory_utilization = {};  // fraction of total memory
  std::optional<int64_t> kv_cache_memory_bytes = {};

  // Scheduler
  int max_num_seqs = 128;
  std::optional<int64_t> max_num_batched_tokens = {};  // absent: 2048
  int64_t long_prefill_token_threshold = 0;
  bool long_prefill_token_threshold_adaptive = false;
  bool enable_chunked_prefill = true;
  bool async_scheduling = true;
  bool scheduler_reserve_full_isl = true;
  double watermark = 0;
  // Sequences waiting or running at most; absent: max_num_seqs + base::kMaxQueuedRequests.
  std::optional<int64_t> max_num_queued_reqs = {};
  std::optional<int64_t> max_num_queued_tokens = {};  // prompt tokens of sequences without an output at most
  double itl_target_ms = 200;                         // without max_num_batched_tokens; 0: no target
  double request_timeout_s = 0;                       // of requests that name none; 0: none
  std::string scheduling_policy = "fcfs";

  std::string trace_file = {};  // VLLM_TRACE: Chrome trace of steps and phases
};

// The options that EngineConfigFromOptions reads.
std::span<const std::string_view> EngineOptionNames();

// Throws base::Exception naming the option, its value and the remedy. Options that it does not read are left alone.
EngineConfig EngineConfigFromOptions(const base::Options& options);

}  // namespace vllm
