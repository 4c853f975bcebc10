// The environment variables that the program reads: one table.
#include "app/environment.h"

#include <unistd.h>

#include <algorithm>

#include "base/strings.h"

namespace vllm {
namespace {

constexpr Variable kVariables[] = {
    {"VLLM_API_KEY", "api_key", "key that requests must carry, as --api-key"},
    {"OPENAI_API_KEY", "openai_api_key", "key that vllm bench serve sends"},
    {"VLLM_TRACE", "trace_file", "file for a Chrome trace of steps and phases"},
    {"VLLM_LOGGING_LEVEL", "log_level", "least level that is logged, as --log-level"},
    {"VLLM_CPU_KVCACHE_SPACE", "cpu_kvcache_space", "GiB of the KV cache, as --kv-cache-memory-bytes"},
    {"VLLM_SERVER_DEV_MODE", "dev_mode", "1: serve /reset_prefix_cache"},
    {"VLLM_BATCH_INVARIANT", "batch_invariant", "1: a result never depends on the batch, as --numerics invariant"},
    {"VT_CPU_ISA", "isa", "instruction set to use: avx2, avxvnni, avx512 or amx; absent: the best of this machine"},
    {"VT_OP_PROVIDER_STATS", "op_provider_stats", "1: print at exit how often each kernel was chosen and run"},
    {"HF_HOME", "hf_home", "root of the hub cache; absent: ~/.cache/huggingface"},
    {"HF_HUB_CACHE", "hf_hub_cache", "folder of cached hub models; absent: HF_HOME/hub"},
    {"XDG_CACHE_HOME", "xdg_cache_home", "takes the place of ~/.cache"},
    {"HOME", "home", "the user's folder"},
    {"HF_TOKEN", "", "nothing is downloaded"},
    {"HF_HUB_OFFLINE", "", "nothing is downloaded"},
    {"VLLM_CPU_OMP_THREADS_BIND", "", "use --threads; the affinity of the process is respected"},
    {"VLLM_WORKER_MULTIPROC_METHOD", "", "there are no worker processes"},
    {"VLLM_ATTENTION_BACKEND", "", "the first backend that can is used; vllm inspect names it"},
    {"VLLM_USE_V1", "", "this is V1"},
};

const Variable* FindVariable(std::string_view name) {
  const auto found = std::find_if(std::begin(kVariables), std::end(kVariables),
                                  [&](const Variable& variable) { return variable.name == name; });
  return found == std::end(kVariables) ? nullptr : found;
}

}  // namespace

std::span<const Variable> Variables() { return kVariables; }

Environment ReadEnvironment() {
  Environment found;
  for (char** entry = ::environ; entry && *entry; ++entry) {
    const std::string_view text = *entry;
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = text.substr(0, equals);
    if (FindVariable(name) || name.starts_with("VLLM_") || name.starts_with("VT_")) {
      found.emplace_back(name, text.substr(equals + 1));
    }
  }
  return found;
}

std::vector<std::string> ApplyEnvironment(const Environment& environment, base::Options* options) {
  std::vector<std::string> notes;
  std::vector<std::string> names;
  for (const Variable& variable : kVariables) names.emplace_back(variable.name);
  for (const auto& [name, value] : environment) {
    const Variable* variable = FindVariable(name);
    if (!variable) {
      const std::string near = base::Nearest(name, names);
      notes.push_back(
          base::StrCat(name, " is no variable of this program", near.empty() ? "" : "; did you mean ", near));
    } else if (variable->option.empty()) {
      // HF_TOKEN and HF_HUB_OFFLINE are set for other programs too: only our own names are worth a line.
      if (name.starts_with("VLLM_")) notes.push_back(base::StrCat(name, " has no effect: ", variable->help));
    } else if (!value.empty()) {
      options->Set(variable->option, value, base::OptionSource::kEnvironment, name);
    }
  }
  return notes;
}

}  // namespace vllm
