// LlmEngine: a loaded model that serves many requests at once. What the server, the C ABI and the command line talk to.
//
// Threads: the engine thread schedules, the runner thread computes and samples, the output thread detokenizes and calls
// back.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/config.h"
#include "engine/types.h"

namespace base {
class MetricsRegistry;
}

namespace vllm {

class Tokenizer;
class ChatTemplate;

// Start-up facts, for the summary and /v1/models.
struct EngineInfo {
  std::string model_name;  // first served name
  std::vector<std::string> served_names;
  std::string architecture;    // model_type
  std::string weight_summary;  // "Q4_1, 98 MB"
  std::string device_summary;  // "AMD EPYC, avx512, 2 threads, numerics default"
  std::string attention_backend;
  int64_t max_model_len = 0;
  std::string context_notice;  // one line when a derived context was shrunk to fit; else empty
  int64_t vocab_size = 0;
  int64_t parameters = 0;
  uint64_t weight_bytes = 0, kv_bytes = 0;
  int64_t num_kv_blocks = 0;
  int block_size = 0;
  std::string kv_cache_dtype = {};  // by its name in --kv-cache-dtype
  double load_seconds = 0;
};

// Defaults that the model's generation_config.json asks for; requests override them field by field.
struct GenerationDefaults {
  std::optional<double> temperature, top_p, min_p, repetition_penalty;
  std::optional<int> top_k;
  std::optional<int64_t> max_new_tokens;
  std::vector<int32_t> extra_eos_token_ids;
};

struct EngineStats {
  int64_t num_running = 0, num_waiting = 0;
  double kv_cache_usage = 0;  // 0 .. 1
  uint64_t preemptions = 0, prefix_cache_queries = 0, prefix_cache_hits = 0, steps = 0, chunked_prefills = 0;
  int64_t kv_blocks_used = 0;
  int64_t last_queue_us = 0;                        // how long the last admitted sequence had waited
  uint64_t rejected_reqs = 0, rejected_tokens = 0;  // requests refused by max_num_queued_reqs and _tokens
};

class LlmEngine {
 public:
  using Progress = std::function<bool(double fraction)>;  // false stops the load (kCancelled)
  // Throws base::Exception: one line naming what is wrong and the remedy.
  static std::unique_ptr<LlmEngine> Load(const EngineConfig& config, const Progress& progress = {});
  virtual ~LlmEngine() = default;

  // Checks and queues a request; its outputs go to request.on_output. Thread-safe. Errors: kInvalidArgument for a bad
  // field (the message is vLLM's), kOverloaded when the queue is full, kInternal after the engine has died.
  virtual base::Result<uint64_t> Submit(GenerateRequest request) = 0;
  // Ends a request without further callbacks; harmless for one that has ended. Once it returns, the callback is not
  // running and never will (unless called from within that callback). Thread-safe.
  virtual void Abort(uint64_t handle) = 0;

  virtual const EngineInfo& info() const = 0;
  virtual const EngineConfig& config() const = 0;
  virtual const GenerationDefaults& defaults() const = 0;
  virtual const Tokenizer& tokenizer() const = 0;
  // Null when the model has none and none was given.
  virtual const ChatTemplate* chat_template() const = 0;
  virtual EngineStats stats() const = 0;
  virtual base::MetricsRegistry& metrics() = 0;
  virtual bool healthy() const = 0;
  // Forgets cached prefixes; false while any block is in use.
  virtual bool ResetPrefixCache() = 0;
  // Refuses new requests and waits until all have ended or the time is over; then aborts the rest.
  virtual void Drain(int64_t timeout_ms) = 0;
};

// Checks the fields as vLLM 0.33 does; on success fills derived fields. `vocab_size` bounds the ids.
base::Status ValidateSamplingParams(SamplingParams& params, int64_t vocab_size, int max_logprobs);

}  // namespace vllm
