// A seeded simulation of a busy engine: random arrivals, cancels, priorities, shared prefixes and memory pressure drive
// the real scheduler and KV cache manager, and a model of its own says after each step what must hold. Faults can be
// planted in it, to see that they are found.
#pragma once
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "engine/run/model_runner.h"
#include "engine/sched/scheduler_config.h"

namespace vllm {

// What a seed decides: the engine's configuration and its clients.
struct SimulationSetup {
  uint64_t seed = 0;
  SchedulerConfig scheduler = {};
  KvCacheConfig kv = {};
  int64_t max_live = 0;                           // clients at once
  int64_t prompt_tokens_max = 0, max_tokens = 0;  // of a request
  int64_t families = 0;                           // of prompts with a common beginning
  int64_t shared_tokens_max = 0;                  // of it
  // Of 1000: steps with an arrival, a cancel, an attempted reset of the prefix cache; requests with a salt, a time
  // limit, stop tokens; sampled positions that fail; drafts that are right.
  int arrivals = 0, cancels = 0, resets = 0, salts = 0, deadlines = 0, stops = 0, errors = 0, right_drafts = 0;
  int64_t priorities = 1;

  std::string Describe() const;  // one line
};

// The same for the same seed, on every machine.
SimulationSetup DrawSimulationSetup(uint64_t seed);

// One per way in which a scheduler or a KV cache manager may go wrong.
enum class Fault : int8_t {
  kNone,
  kDoubleFree,   // a sequence's blocks are freed twice
  kLostBlock,    // a block is taken from the pool and held by nobody
  kStaleHash,    // a block that was given to new tokens is still found by the hash of the old ones
  kStarvation,   // a sequence is preempted whenever it runs
  kWrongOrder,   // a waiting sequence is overtaken by one that came later
  kWrongOutput,  // the tokens of a step are swapped between two steps in flight
};

struct SimulationReport {
  uint64_t steps = 0, tokens = 0;  // that ran
  uint64_t ended = 0, cancelled = 0, failed = 0, timed_out = 0, refused = 0;
  uint64_t preemptions = 0, hit_tokens = 0, resets = 0, drafts_accepted = 0;
  double longest_wait = 0;  // a sequence's steps from arrival to end, as a part of the bound
  std::optional<std::string> failure = {};
};

// Runs `num_steps` steps and then lets all sequences end. Never throws: what is wrong is in the report. Thread-safe.
// With `fault`, it is planted at a random moment, as soon as there is an occasion. `log` gets a line for each step.
SimulationReport Simulate(const SimulationSetup& setup, uint64_t num_steps, Fault fault = Fault::kNone,
                          std::ostream* log = nullptr);

}  // namespace vllm
