// GPUModelRunner: keeps the persistent batch, builds each step's metadata, runs the decoder and samples. The name is
// vLLM's; it serves every device.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/trace.h"
#include "engine/config.h"
#include "engine/run/model_runner.h"
#include "engine/sample/sampler.h"
#include "model/decoder.h"
#include "model/loaded_model.h"

namespace vllm {

struct RunnerOptions {
  vt::Numerics numerics = vt::Numerics::kDefault;
  std::optional<vt::DType> kv_cache_dtype = {};  // absent: what the numerics take
  int64_t max_num_seqs = 128;
  int64_t max_num_batched_tokens = 2048;
  int64_t max_model_len = 0;
  LogprobsMode logprobs_mode = LogprobsMode::kRawLogprobs;
  base::TraceSink* trace = nullptr;  // optional; outlives the runner
};

// Steps run in order on a thread of its own. ExecuteModel and initialize_kv_cache belong to one caller.
class GPUModelRunner : public ModelRunner {
 public:
  // `model` has its weights; it and `platform` outlive the runner. Throws base::Exception when no attention backend
  // accepts a layer: "No valid attention backend for device type 0 from {...}".
  GPUModelRunner(const LoadedModel& model, vt::Platform& platform, const RunnerOptions& options);
  ~GPUModelRunner() override;

  // Throws std::invalid_argument "Block size must be a multiple of 16" before any other check; base::Exception
  // kOutOfMemory when the cache cannot be allocated. Once, before the first step.
  void initialize_kv_cache(const KvCacheConfig& config);

  std::future<ModelRunnerOutput> ExecuteModel(SchedulerOutput step) override;

  const std::string& attention_backend() const { return attention_backend_; }
  const Decoder& decoder() const { return *decoder_; }

 private:
  struct Sequence;
  struct Job {
    SchedulerOutput step;
    std::promise<ModelRunnerOutput> result;
  };
  struct Batch;

  void Run();
  ModelRunnerOutput RunStep(const SchedulerOutput& step);
  void UpdateSequences(const SchedulerOutput& step);
  void BuildBatch(const SchedulerOutput& step);
  void SampleRows(const SchedulerOutput& step, ModelRunnerOutput& output);
  void ScorePrompts(const SchedulerOutput& step, ModelRunnerOutput& output);
  // What the head gave for some rows of the last forward pass, in host memory: valid until the next pass of the head.
  struct HeadRows {
    std::span<const RowMax> max = {};  // [rows]
    std::span<float> logits = {};      // [rows, vocab]; only wanted rows are there
  };
  // `wants_logits[r]`: the logits of rows[r] are to be copied to the host, if they are not there anyway.
  HeadRows RunHead(std::span<const int32_t> rows, const std::vector<bool>& wants_logits);
  // Calls run(0 .. count - 1), several at a time; throws what the first of them threw.
  void ForEachRow(size_t count, const std::function<void(size_t)>& run);
  // Samples rows that may be sampled independently, several at a time. One result a row.
  std::vector<SampledToken> Sample(std::span<const SampleRow> rows);
  // The backend of the last attention layer; throws when a layer has none. No block size: any.
  std::string SelectBackends(std::optional<int> block_size) const;

  const LoadedModel& model_;
  vt::Platform& platform_;
  const RunnerOptions options_;
  std::string attention_backend_;
  Sampler sampler_;
  KvCacheConfig kv_;
  std::vector<int64_t> max_blocks_;  // of a sequence, by group
  vt::Buffer kv_buffer_;
  std::unique_ptr<Decoder> decoder_;
  std::unique_ptr<vt::Queue> queue_;

  // Runner thread only.
  std::unordered_map<RequestId, Sequence> sequences_;
  std::unique_ptr<Batch> batch_;
  std::vector<float> host_logits_, host_max_;
  std::vector<int32_t> host_argmax_;
  std::vector<RowMax> head_max_;

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Job> jobs_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace vllm
