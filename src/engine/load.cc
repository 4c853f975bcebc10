// LlmEngine::Load: from a configuration to a running engine.
#include <algorithm>
#include <chrono>

#include "base/result.h"
#include "engine/frontend.h"
#include "engine/kv/kv_cache_config.h"
#include "engine/load_text.h"
#include "engine/run/gpu_model_runner.h"
#include "engine/run/kv_memory.h"
#include "load/model_path.h"

namespace vllm {
namespace {

// What an engine stands on, destroyed after its core: members in order of construction.
struct Resources {
  std::unique_ptr<base::TraceSink> trace;
  std::shared_ptr<vt::Platform> platform;
  std::unique_ptr<LoadedModel> model;
  std::unique_ptr<GPUModelRunner> runner;
};

LogprobsMode ParseLogprobsMode(const std::string& name) {
  if (name == "raw_logprobs") return LogprobsMode::kRawLogprobs;
  if (name == "processed_logprobs") return LogprobsMode::kProcessedLogprobs;
  if (name == "raw_logits") return LogprobsMode::kRawLogits;
  if (name == "processed_logits") return LogprobsMode::kProcessedLogits;
  base::Throw(base::ErrorCode::kInvalidArgument, "logprobs_mode: '", name,
              "' is none of raw_logprobs, processed_logprobs, raw_logits, processed_logits");
}

// A prompt beyond what the model was made for gives noise, so it takes an explicit wish to go there; vLLM's rule and
// text.
int64_t ModelContext(const EngineConfig& config, const LoadedModel& model) {
  const int64_t context = model.spec().max_position;
  if (config.max_model_len && (*config.max_model_len < 1 || *config.max_model_len > context))
    base::Throw(base::ErrorCode::kInvalidArgument, "User-specified max_model_len (", *config.max_model_len,
                ") must be between 1 and the model's own maximum of ", context);
  return context;
}

EngineInfo DescribeEngine(const EngineConfig& config, const Resources& r, const KvMemoryPlan& kv,
                          const std::string& typed) {
  EngineInfo info;
  info.served_names = config.served_model_name.empty() ? std::vector{typed} : config.served_model_name;
  info.model_name = info.served_names[0];
  info.architecture = r.model->spec().type;
  info.weight_summary = r.model->FormatSummary();
  const vt::PlatformInfo& platform = r.platform->info();
  info.device_summary =
      base::StrCat(platform.name, ", ", platform.threads, platform.threads == 1 ? " thread" : " threads", ", numerics ",
                   vt::NumericsName(config.numerics));
  info.attention_backend = r.runner->attention_backend();
  info.max_model_len = kv.max_model_len;
  info.context_notice = kv.notice;
  info.vocab_size = r.model->spec().vocab;
  info.parameters = r.model->parameters();
  info.weight_bytes = r.model->weights().source_bytes();
  info.num_kv_blocks = kv.config.num_blocks;
  info.kv_bytes = static_cast<uint64_t>(kv.config.num_blocks * KvBytesPerBlock(kv.config.groups));
  info.block_size = config.block_size;
  info.kv_cache_dtype = KvCacheDTypeName(kv.config.groups.at(0).spec.dtype);
  return info;
}

}  // namespace

std::unique_ptr<LlmEngine> LlmEngine::Load(const EngineConfig& config, const Progress& progress) {
  const auto start = std::chrono::steady_clock::now();
  if (config.block_size <= 0 || config.block_size % 16 != 0)
    throw std::invalid_argument("Block size must be a multiple of 16");
  const LogprobsMode logprobs_mode = ParseLogprobsMode(config.logprobs_mode);
  auto resources = std::make_shared<Resources>();
  Resources& r = *resources;
  if (!config.trace_file.empty()) r.trace = std::make_unique<base::TraceSink>(config.trace_file);
  r.platform = vt::MakePlatform(config.device, {.threads = config.threads, .isa = config.isa});
  const ModelPath path = ResolveModelPath(config.model, config.hub);
  r.model = LoadedModel::FromModelDir(path.path);
  const int64_t context = ModelContext(config, *r.model);
  SchedulerConfig scheduler = MakeSchedulerConfig(config, config.max_model_len.value_or(context));

  std::shared_ptr<const Tokenizer> tokenizer = LoadTokenizer(r.model->checkpoint(), config.tokenizer);
  std::shared_ptr<const ChatTemplate> chat_template = LoadChatTemplate(*tokenizer, config.chat_template);
  GenerationDefaults defaults = LoadGenerationDefaults(r.model->checkpoint(), *tokenizer, config.generation_config);

  r.model->LoadWeights(*r.platform, progress);
  const vt::DType kv_dtype = config.kv_cache_dtype.value_or(DefaultKvCacheDType(config.numerics));
  const std::vector<LayerKvCache> layers = KvCacheSpecsOf(r.model->spec(), config.block_size, kv_dtype);
  const KvMemoryPlan kv = PlanKvMemory(config, layers, context, scheduler.max_num_batched_tokens,
                                       r.model->weights().source_bytes(), base::ReadMemoryInfo());
  scheduler = MakeSchedulerConfig(config, kv.max_model_len);
  r.runner = std::make_unique<GPUModelRunner>(*r.model, *r.platform,
                                              RunnerOptions{.numerics = config.numerics,
                                                            .kv_cache_dtype = kv_dtype,
                                                            .max_num_seqs = scheduler.max_num_seqs,
                                                            .max_num_batched_tokens = scheduler.max_num_batched_tokens,
                                                            .max_model_len = kv.max_model_len,
                                                            .logprobs_mode = logprobs_mode,
                                                            .trace = r.trace.get()});
  r.runner->initialize_kv_cache(kv.config);

  EngineParts parts;
  parts.config = config;
  parts.info = DescribeEngine(config, r, kv, path.name);
  parts.info.load_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  parts.defaults = std::move(defaults);
  parts.tokenizer = std::move(tokenizer);
  parts.chat_template = std::move(chat_template);
  parts.make_core = [&, scheduler](EngineCore::OutputSink sink) {
    return std::make_unique<EngineCore>(EngineCore::Options{.scheduler = scheduler,
                                                            .kv_cache = kv.config,
                                                            .max_num_queued_reqs = config.max_num_queued_reqs,
                                                            .max_num_queued_tokens = config.max_num_queued_tokens,
                                                            .trace = r.trace.get()},
                                        r.runner.get(), std::move(sink));
  };
  parts.resources = resources;
  if (progress) progress(1);
  return MakeLlmEngine(std::move(parts));
}

}  // namespace vllm
