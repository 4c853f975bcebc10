// vllm inspect MODEL: the card, the tensors with their bytes, and which kernels run it, with the reasons for those
// passed over.
#include <algorithm>
#include <cstdio>
#include <map>

#include "app/commands.h"
#include "app/session.h"
#include "base/memory_info.h"
#include "base/options.h"
#include "base/strings.h"
#include "engine/run/gpu_model_runner.h"
#include "engine/run/kv_memory.h"
#include "load/model_path.h"
#include "model/decoder.h"
#include "model/loaded_model.h"
#include "vt/ops.h"

namespace vllm {
namespace {

constexpr int64_t kInspectTokens = 512;  // of the plan: kernels do not depend on the context

void PrintTensors(const Checkpoint& checkpoint) {
  std::map<std::string, std::pair<size_t, uint64_t>> by_format;
  for (const TensorInfo& tensor : checkpoint.tensors) {
    auto& [count, bytes] = by_format[tensor.dtype];
    ++count;
    bytes += tensor.data.size();
  }
  std::printf("\ntensors: %zu, %s\n", checkpoint.tensors.size(), base::HumanBytes(checkpoint.tensor_bytes()).c_str());
  for (const auto& [format, total] : by_format) {
    std::printf("  %-8s %6zu  %s\n", format.c_str(), total.first, base::HumanBytes(total.second).c_str());
  }
}

void PrintTensorList(const Checkpoint& checkpoint) {
  for (const TensorInfo& tensor : checkpoint.tensors) {
    std::string shape;
    for (const int64_t size : tensor.shape) shape += base::StrCat(shape.empty() ? "" : " x ", size);
    std::printf("  %-40s %-8s %-20s %s\n", tensor.name.c_str(), tensor.dtype.c_str(), shape.c_str(),
                base::HumanBytes(tensor.data.size()).c_str());
  }
}

// Equal choices of all layers are one row with a count.
void PrintChoices(std::span<const vt::LoweringChoice> choices) {
  std::vector<std::pair<const vt::LoweringChoice*, int>> rows;
  for (const vt::LoweringChoice& choice : choices) {
    const auto same = std::find_if(rows.begin(), rows.end(), [&](const auto& row) {
      return row.first->op == choice.op && row.first->lowering == choice.lowering &&
             row.first->provider == choice.provider && row.first->passed_over == choice.passed_over;
    });
    if (same == rows.end()) {
      rows.emplace_back(&choice, 1);
    } else {
      ++same->second;
    }
  }
  std::puts("\nkernels:");
  for (const auto& [choice, count] : rows) {
    std::printf("  %4d x %-18s %-24s by %s\n", count, std::string(vt::OpName(choice->op)).c_str(),
                choice->lowering.c_str(), choice->provider.c_str());
    for (const std::string& reason : choice->passed_over) std::printf("         passed over: %s\n", reason.c_str());
  }
}

// What a token takes, and 4096 of them.
void PrintKvCache(std::span<const LayerKvCache> layers) {
  int64_t bytes = 0;
  for (const LayerKvCache& layer : layers) bytes += layer.spec.page_bytes() / layer.spec.block_size;
  std::printf("KV cache: %s, %lld bytes a token, %s for 4096 tokens\n",
              std::string(KvCacheDTypeName(layers[0].spec.dtype)).c_str(), static_cast<long long>(bytes),
              base::HumanBytes(static_cast<uint64_t>(bytes) * 4096).c_str());
}

}  // namespace

int RunInspect(const CommandLine& line) {
  SetUpLog(line);
  EngineConfig config = EngineConfigFromOptions(line.options);
  const auto platform = vt::MakePlatform(config.device, {.threads = config.threads, .isa = config.isa});
  const auto model = LoadedModel::FromModelDir(ResolveModelPath(config.model, config.hub).path);
  std::printf("%s\nweights: %s\n", model->Card().c_str(), model->FormatSummary().c_str());
  PrintTensors(model->checkpoint());
  if (line.options.Bool("tensors", true)) PrintTensorList(model->checkpoint());

  model->LoadWeights(*platform);
  config.max_model_len = std::min<int64_t>(config.max_model_len.value_or(kInspectTokens), model->spec().max_position);
  config.max_num_seqs = 1;
  const vt::DType kv_dtype = config.kv_cache_dtype.value_or(DefaultKvCacheDType(config.numerics));
  const auto layers = KvCacheSpecsOf(model->spec(), config.block_size, kv_dtype);
  const KvMemoryPlan kv = PlanKvMemory(config, layers, model->spec().max_position, kInspectTokens,
                                       model->weights().source_bytes(), base::ReadMemoryInfo());
  GPUModelRunner runner(*model, *platform,
                        {.numerics = config.numerics,
                         .kv_cache_dtype = kv_dtype,
                         .max_num_seqs = 1,
                         .max_num_batched_tokens = kInspectTokens,
                         .max_model_len = kv.max_model_len});
  runner.initialize_kv_cache(kv.config);
  std::printf("\ndevice: %s, numerics %s\nattention: %s\n", platform->info().name.c_str(),
              std::string(vt::NumericsName(config.numerics)).c_str(), runner.attention_backend().c_str());
  PrintKvCache(layers);
  PrintChoices(runner.decoder().choices());
  return 0;
}

}  // namespace vllm
