// The one table of command-line flags: vLLM's `serve` flags, our own, and the short forms of llama.cpp.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vllm {

// Commands as bits, so that a flag can belong to several.
enum Command : uint16_t {
  kServe = 1,
  kChat = 2,
  kComplete = 4,
  kLatency = 8,      // bench latency
  kThroughput = 16,  // bench throughput
  kPerplexity = 32,
  kInspect = 64,
  kBenchServe = 128,  // bench serve
  kSampling = kChat | kComplete,
  kBench = kLatency | kThroughput,
  kEngine = kServe | kSampling | kBench | kPerplexity | kInspect,
  kAll = kEngine | kBenchServe,
};

enum class FlagType : uint8_t { kSwitch, kText, kInt, kNumber, kSize, kList, kJson };

enum class FlagGroup : uint8_t {
  kModel,
  kServer,
  kGeneration,
  kScheduler,
  kCache,
  kDevice,
  kMeasuring,
  kKernel,
  kOutput,
  kLora,
  kMedia,
  kParallel,
  kLog,
};

// What becomes of a flag. A refused one passes while it holds its default or one of the values listed beside it.
enum class FlagClass : uint8_t { kHonoured, kNoEffect, kRefused };

struct Flag {
  std::string_view name;     // long name without dashes; with '_' for '-' it is the option's name
  std::string_view aliases;  // other spellings with their dashes, separated by blanks
  FlagType type;
  std::string_view default_text;  // empty: absent unless given
  FlagGroup group;
  FlagClass kind;
  uint16_t commands;
  std::string_view values;  // honoured: the only ones; refused: accepted besides the default. Separated by '|'
  std::string_view help;    // honoured: what it does; otherwise why not
};

std::span<const Flag> Flags();
// vLLM 0.33's own flags, a part of Flags().
std::span<const Flag> VllmFlags();
// Those of bench serve, a part too.
std::span<const Flag> BenchServeFlags();
// Every command, in the order in which texts list them.
std::span<const Command> Commands();

std::string_view GroupName(FlagGroup group);
// "serve", "bench latency", …
std::string_view CommandName(Command command);
// The option that a flag fills: its name with '_' for '-'.
std::string OptionOf(const Flag& flag);
// By what a user typed, dashes included ("--max_model_len", "-c", "--no-enable-prefix-caching"); flags of `command`
// first. `negated` tells that the --no- form was used. Null: unknown.
const Flag* FindFlag(std::string_view typed, uint16_t command, bool* negated);
// The spelling nearest to an unknown flag, with its dashes; empty when none is near.
std::string NearestFlag(std::string_view typed, uint16_t command);
// Throws base::Exception when `values` cannot be a value of the flag; `origin` is how the user wrote it.
void CheckFlagValue(const Flag& flag, std::span<const std::string> values, std::string_view origin);

}  // namespace vllm
