// The one table of command-line flags: our own rows, look-up by any spelling, and the check of a value.
#include "app/flags.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/limits.h"
#include "base/options.h"
#include "base/strings.h"

namespace vllm {
namespace {

using base::ErrorCode;
using enum FlagType;
using enum FlagGroup;
using enum FlagClass;

constexpr Flag kOwnFlags[] = {
    // Device and numbers.
    {"device", "-dev", kText, "cpu", kDevice, kHonoured, kEngine, "cpu|ref|opaque",
     "where the model runs (ref and opaque are for tests)"},
    {"numerics", "", kText, "default", kDevice, kHonoured, kEngine, "exact|default|invariant|fast",
     "exact: float32 throughout; invariant: a result never depends on the batch; fast: inputs of matrices in 8 bits"},
    {"threads", "-t", kInt, "", kDevice, kHonoured, kEngine, "",
     "worker threads; absent: the physical cores that this process may use"},
    {"gpu-layers", "-ngl --n-gpu-layers", kText, "", kDevice, kNoEffect, kEngine, "", "there is no GPU"},
    {"flash-attn", "-fa", kText, "", kKernel, kNoEffect, kEngine, "", "attention is chosen by --attention-backend"},
    {"threads-batch", "-tb", kInt, "", kDevice, kNoEffect, kEngine, "", "use --threads"},
    {"mlock", "", kSwitch, "", kModel, kNoEffect, kEngine, "", "weights are packed into memory of the process"},
    {"mmap", "", kSwitch, "true", kModel, kNoEffect, kEngine, "", "files are mapped, their weights packed into memory"},
    {"cont-batching", "-cb", kSwitch, "", kScheduler, kNoEffect, kServe, "",
     "requests are always batched as they come"},
    {"jinja", "", kSwitch, "", kServer, kNoEffect, kServe | kChat, "", "templates are always rendered"},
    {"cache-type-k", "-ctk", kText, "bf16", kCache, kRefused, kEngine, "", "KV is BF16, and F32 with --numerics exact"},
    {"cache-type-v", "-ctv", kText, "bf16", kCache, kRefused, kEngine, "", "KV is BF16, and F32 with --numerics exact"},
    {"grammar", "", kText, "", kOutput, kRefused, kSampling, "", "structured outputs are not served"},
    {"json-schema", "-j", kText, "", kOutput, kRefused, kSampling, "", "structured outputs are not served"},
    {"mmproj", "-mm", kText, "", kMedia, kRefused, kEngine, "", "text models only"},
    {"lora", "", kText, "", kLora, kRefused, kEngine, "", "adapters are not served"},
    {"itl-target-ms", "", kNumber, "200", kScheduler, kHonoured, kEngine, "",
     "time that a step with decoding requests should take at most, by how much of prompts it reads; 0: no target"},
    {"request-timeout", "", kNumber, "0", kScheduler, kHonoured, kEngine, "",
     "seconds after which a request ends that names no `timeout` itself; 0: never"},
    // Text of chat and complete.
    {"max-tokens", "-n --predict --n-predict", kInt, "", kGeneration, kHonoured, kSampling, "",
     "tokens of an answer; absent: complete 128, chat what the context holds"},
    {"temperature", "--temp", kNumber, "", kGeneration, kHonoured, kSampling, "",
     "0: always the likeliest token; absent: the model's default, else 1"},
    {"top-p", "", kNumber, "", kGeneration, kHonoured, kSampling, "",
     "sample among the likeliest tokens of this total probability"},
    {"top-k", "", kInt, "", kGeneration, kHonoured, kSampling, "", "sample among this many likeliest tokens; 0: all"},
    {"min-p", "", kNumber, "", kGeneration, kHonoured, kSampling, "",
     "drop tokens below this share of the likeliest one's probability"},
    {"repetition-penalty", "--repeat-penalty", kNumber, "", kGeneration, kHonoured, kSampling, "",
     "above 1: tokens that occurred become less likely"},
    {"presence-penalty", "", kNumber, "", kGeneration, kHonoured, kSampling, "",
     "subtracted from the logits of tokens that occurred in the answer"},
    {"frequency-penalty", "", kNumber, "", kGeneration, kHonoured, kSampling, "",
     "the same, times the number of occurrences"},
    {"stop", "-r --reverse-prompt", kList, "", kGeneration, kHonoured, kSampling, "", "texts that end the answer"},
    {"ignore-eos", "", kSwitch, "", kGeneration, kHonoured, kSampling, "", "do not end at the model's end token"},
    {"prompt", "-p", kText, "", kGeneration, kHonoured, kSampling, "",
     "the text to go on from; chat: one question instead of a dialogue"},
    {"file", "-f", kText, "", kGeneration, kHonoured, kSampling | kPerplexity, "", "read the text from a file"},
    {"system-prompt", "-sys", kText, "", kGeneration, kHonoured, kChat, "", "text of the system message"},
    {"conversation", "-cnv", kSwitch, "", kGeneration, kNoEffect, kSampling, "", "use vllm chat, or vllm complete"},
    {"quick", "-q", kText, "", kGeneration, kHonoured, kChat | kComplete, "", "vLLM's name of --prompt"},
    // Benchmarks: vLLM's names and defaults.
    {"input-len", "", kInt, "32", kMeasuring, kHonoured, kBench, "", "prompt tokens of a request"},
    {"output-len", "", kInt, "128", kMeasuring, kHonoured, kBench, "", "tokens generated for a request"},
    {"batch-size", "", kInt, "8", kMeasuring, kHonoured, kLatency, "", "requests at once"},
    {"num-iters-warmup", "", kInt, "10", kMeasuring, kHonoured, kLatency, "", "rounds before the measured ones"},
    {"num-iters", "", kInt, "30", kMeasuring, kHonoured, kLatency, "", "measured rounds"},
    {"num-prompts", "", kInt, "1000", kMeasuring, kHonoured, kThroughput, "", "requests"},
    {"num-warmups", "", kInt, "0", kMeasuring, kHonoured, kThroughput, "", "requests before the measured ones"},
    {"n", "", kInt, "1", kMeasuring, kHonoured, kBench, "", "answers a request"},
    {"output-json", "", kText, "", kMeasuring, kHonoured, kBench, "", "file for the figures"},
    {"disable-detokenize", "", kSwitch, "", kMeasuring, kHonoured, kBench, "", "leave the answers as token ids"},
    {"use-beam-search", "", kSwitch, "", kMeasuring, kRefused, kLatency, "", "beam search is not served"},
    {"profile", "", kSwitch, "", kMeasuring, kRefused, kBench, "", "use VLLM_TRACE=FILE for a Chrome trace"},
    {"backend", "", kText, "vllm", kMeasuring, kRefused, kThroughput, "", "this program is measured"},
    {"dataset-name", "", kText, "random", kMeasuring, kRefused, kThroughput, "", "prompts are random token ids"},
    {"dataset-path", "", kText, "", kMeasuring, kRefused, kThroughput, "", "prompts are random token ids"},
    {"async-engine", "", kSwitch, "", kMeasuring, kNoEffect, kThroughput, "", "there is one engine"},
    // Perplexity and inspect.
    {"chunks", "", kInt, "", kMeasuring, kHonoured, kPerplexity, "", "chunks to measure; absent: all"},
    {"window", "", kSize, "512", kMeasuring, kHonoured, kPerplexity, "", "tokens of a chunk, as llama-perplexity -c"},
    {"tensors", "", kSwitch, "true", kModel, kHonoured, kInspect, "", "list the tensors"},
    // Log.
    {"verbose", "-v", kSwitch, "", kLog, kHonoured, kAll, "", "log debug messages"},
};

std::string Dashed(std::string_view name) { return base::StrCat("--", name); }

// The typed spelling with '-' for '_' in a long name, up to '=' or '.'.
std::string Canonical(std::string_view typed) {
  std::string out(typed);
  if (out.starts_with("--")) std::replace(out.begin(), out.end(), '_', '-');
  return out;
}

bool HasAlias(const Flag& flag, std::string_view spelled) {
  for (const std::string_view alias : base::Split(flag.aliases, ' ')) {
    if (!alias.empty() && alias == spelled) return true;
  }
  return false;
}

bool Names(const Flag& flag, std::string_view spelled, bool* negated) {
  *negated = false;
  if (HasAlias(flag, spelled)) return true;
  if (!spelled.starts_with("--")) return false;
  spelled.remove_prefix(2);
  if (spelled == flag.name) return true;
  *negated = flag.type == kSwitch && spelled.starts_with("no-") && spelled.substr(3) == flag.name;
  return *negated;
}

std::vector<std::string> Values(const Flag& flag) {
  std::vector<std::string> values;
  for (const std::string_view value : base::Split(flag.values, '|')) {
    if (!value.empty()) values.emplace_back(value);
  }
  return values;
}

base::Status Readable(FlagType type, const std::string& value) {
  const auto status = [](const auto& result) { return result.ok() ? base::Ok() : base::Status(result.error()); };
  switch (type) {
    case kSwitch:
      return status(base::ParseBool(value));
    case kInt:
      return status(base::ParseInt(value));
    case kNumber:
      return status(base::ParseDouble(value));
    case kSize:
      return value == "auto" ? base::Ok() : status(base::ParseSize(value));
    case kJson: {
      const base::Result<base::Json> json = base::ParseJson(value, base::kMaxJsonDepth);
      if (json.ok()) return base::Ok();
      return base::MakeError(ErrorCode::kInvalidArgument, "'", value, "': ", json.error().message);
    }
    case kText:
    case kList:
      return base::Ok();
  }
  return base::Ok();
}

}  // namespace

std::span<const Flag> Flags() {
  static const std::vector<Flag> all = [] {
    // Our rows first: -n, -q and -r of chat and complete stand before those of vLLM's server.
    std::vector<Flag> rows(std::begin(kOwnFlags), std::end(kOwnFlags));
    rows.insert(rows.end(), BenchServeFlags().begin(), BenchServeFlags().end());
    rows.insert(rows.end(), VllmFlags().begin(), VllmFlags().end());
    return rows;
  }();
  return all;
}

std::span<const Command> Commands() {
  static constexpr Command kCommands[] = {kServe,      kChat,       kComplete,   kLatency,
                                          kThroughput, kBenchServe, kPerplexity, kInspect};
  return kCommands;
}

std::string_view GroupName(FlagGroup group) {
  switch (group) {
    case kModel:
      return "Model";
    case kServer:
      return "Server";
    case kGeneration:
      return "Sampling";
    case kScheduler:
      return "Scheduler";
    case kCache:
      return "Cache";
    case kDevice:
      return "Device";
    case kMeasuring:
      return "Bench";
    case kKernel:
      return "Kernel";
    case kOutput:
      return "Output";
    case kLora:
      return "LoRA";
    case kMedia:
      return "Media";
    case kParallel:
      return "Parallel";
    case kLog:
      return "Log";
  }
  return "";
}

std::string_view CommandName(Command command) {
  switch (command) {
    case kServe:
      return "serve";
    case kChat:
      return "chat";
    case kComplete:
      return "complete";
    case kLatency:
      return "bench latency";
    case kThroughput:
      return "bench throughput";
    case kBenchServe:
      return "bench serve";
    case kPerplexity:
      return "perplexity";
    case kInspect:
      return "inspect";
    default:
      return "";
  }
}

std::string OptionOf(const Flag& flag) { return base::OptionName(flag.name); }

const Flag* FindFlag(std::string_view typed, uint16_t command, bool* negated) {
  const std::string spelled = Canonical(typed);
  const Flag* elsewhere = nullptr;
  bool elsewhere_negated = false;
  for (const Flag& flag : Flags()) {
    if (!Names(flag, spelled, negated)) continue;
    if (flag.commands & command) return &flag;
    if (!elsewhere) elsewhere = &flag, elsewhere_negated = *negated;
  }
  *negated = elsewhere_negated;
  return elsewhere;
}

std::string NearestFlag(std::string_view typed, uint16_t command) {
  std::vector<std::string> spellings;
  for (const Flag& flag : Flags()) {
    if (!(flag.commands & command)) continue;
    spellings.push_back(Dashed(flag.name));
    for (const std::string_view alias : base::Split(flag.aliases, ' ')) {
      if (alias.starts_with("--")) spellings.emplace_back(alias);
    }
  }
  const std::string spelled = Canonical(typed);
  for (const std::string& candidate : spellings) {
    if (spelled.size() > 4 && candidate.starts_with(spelled)) return candidate;
  }
  return base::Nearest(spelled, spellings);
}

void CheckFlagValue(const Flag& flag, std::span<const std::string> values, std::string_view origin) {
  if (flag.kind == kNoEffect) return;
  if (values.size() != 1 && flag.type != kList) {
    base::Throw(ErrorCode::kInvalidArgument, origin, ": needs one value, not ", values.size());
  }
  const std::vector<std::string> listed = Values(flag);
  const auto is_listed = [&](const std::string& value) {
    return std::find(listed.begin(), listed.end(), value) != listed.end();
  };
  for (const std::string& value : values) {
    if (const base::Status readable = Readable(flag.type, value); !readable.ok()) {
      base::Throw(ErrorCode::kInvalidArgument, origin, ": ", readable.error().message);
    }
    if (flag.kind == kHonoured && !listed.empty() && !is_listed(value)) {
      base::Throw(ErrorCode::kInvalidArgument, origin, ": '", value, "' is not one of ", base::Join(listed, ", "));
    }
    if (flag.kind != kRefused || value == flag.default_text || is_listed(value)) continue;
    if (flag.type == kSwitch && flag.default_text.empty() && !*base::ParseBool(value)) continue;
    base::Throw(ErrorCode::kUnsupported, origin, ": '", value, "' is not supported: ", flag.help,
                flag.default_text.empty() ? "" : base::StrCat(" (accepted: ", flag.default_text, ")"));
  }
}

}  // namespace vllm
