// GPUModelRunner: the persistent batch, its metadata, the forward pass and sampling, on any device.
#pragma once
#include <cstdint>
#include <future>
#include <memory>
#include <vector>

#include "engine/sched/scheduler_output.h"
#include "model/kv_cache_spec.h"

namespace vllm {

// Layers that share block ids. Layer slot i of every group lies in physical tensor i (V1's hybrid layout).
struct KvCacheGroup {
  KvCacheSpec spec = {};
  std::vector<int> layers = {};  // indices of attention sublayers
};

struct KvCacheConfig {
  int64_t num_blocks = 0;  // including the null block 0
  std::vector<KvCacheGroup> groups = {};
  int layer_slots = 0;  // physical tensors: the longest group's layers
};

// What the engine core asks of a runner; tests substitute a scripted one.
class ModelRunner {
 public:
  virtual ~ModelRunner() = default;
  // Starts a step; the future holds its result. Steps run in order; at most two are in flight. Never throws: a failure
  // of the step itself is an exception in the future, a failure of one sequence is an error in its SequenceOutput.
  virtual std::future<ModelRunnerOutput> ExecuteModel(SchedulerOutput step) = 0;
};

}  // namespace vllm
