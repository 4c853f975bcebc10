// How much work a step is: what its time depends on.
#pragma once
#include <cstdint>

#include "engine/sched/scheduler_output.h"

namespace vllm {

struct StepLoad {
  int64_t tokens = 0;    // rows of the model's linears
  int64_t samples = 0;   // rows of its head
  int64_t context = 0;   // keys that attention reads, each once for a sequence
  int64_t attended = 0;  // pairs of a query and a key that it sees, without sliding windows
};

StepLoad LoadOf(const SchedulerOutput& step);

}  // namespace vllm
