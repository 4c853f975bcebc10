// GPUModelRunner: the persistent batch, each step's metadata, the forward pass and sampling.
#include "engine/run/gpu_model_runner.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>

#include "base/check.h"
#include "base/result.h"
#include "vt/attention_backends.h"

namespace vllm {
namespace {

// Rows of one pass of the head: bounds the logits buffer (rows x vocabulary) and still shares a weight panel among
// rows.
constexpr int64_t kMaxLogitRows = 64;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

// What the runner knows of a sequence between steps.
struct GPUModelRunner::Sequence {
  std::shared_ptr<const SamplingParams> params;
  uint64_t seed = 0;
  std::vector<int32_t> tokens;  // prompt and outputs, those of steps that the scheduler has not seen included
  int64_t num_prompt_tokens = 0;
  int64_t num_computed_tokens = 0;
  BlockIds blocks;
  std::vector<std::optional<PositionLogprobs>> prompt_logprobs;  // [0, scored): done
  bool prompt_delivered = false;

  bool wants_prompt_logprobs() const { return params->prompt_logprobs && !prompt_delivered; }
};

// One step's metadata; the vectors keep their memory.
struct GPUModelRunner::Batch {
  std::vector<int32_t> token_ids, positions, cu_q, seq_lens;
  std::vector<std::vector<int32_t>> slots, block_tables;  // by group
  std::vector<StepInputs::Group> groups;
};

GPUModelRunner::GPUModelRunner(const LoadedModel& model, vt::Platform& platform, const RunnerOptions& options)
    : model_(model), platform_(platform), options_(options), sampler_(options.logprobs_mode), batch_(new Batch) {
  CHECK(options.max_num_seqs > 0 && options.max_num_batched_tokens > 0 && options.max_model_len > 0, "runner limits");
  attention_backend_ = SelectBackends({});
  queue_ = platform.MakeQueue();
  thread_ = std::thread([this] { Run(); });
}

GPUModelRunner::~GPUModelRunner() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

std::string GPUModelRunner::SelectBackends(std::optional<int> block_size) const {
  std::string chosen;
  const vt::DType kv_dtype = options_.kv_cache_dtype.value_or(DefaultKvCacheDType(options_.numerics));
  for (const LayerKvCache& layer : KvCacheSpecsOf(model_.spec(), 16, kv_dtype)) {
    vt::AttentionSelectorConfig config;
    config.head_size = layer.spec.head_dim;
    config.kv_cache_dtype = kv_dtype;
    config.block_size = block_size;
    config.has_sliding_window = layer.spec.window > 0;
    chosen = vt::SelectAttentionBackend(config);
  }
  return chosen;
}

void GPUModelRunner::initialize_kv_cache(const KvCacheConfig& config) {
  for (const KvCacheGroup& group : config.groups)
    if (group.spec.block_size <= 0 || group.spec.block_size % 16 != 0)
      throw std::invalid_argument("Block size must be a multiple of 16");
  for (const KvCacheGroup& group : config.groups) SelectBackends(group.spec.block_size);
  CHECK(decoder_ == nullptr, "initialize_kv_cache was called twice");
  CHECK(config.num_blocks > 0 && !config.groups.empty(), config.num_blocks, " blocks in ", config.groups.size(),
        " groups");
  kv_ = config;
  const int64_t page_bytes = config.groups[0].spec.page_bytes();
  const int64_t tensor_bytes = config.num_blocks * page_bytes;
  kv_buffer_ = platform_.Allocate(tensor_bytes * config.layer_slots);
  size_t layers = 0;
  for (const KvCacheGroup& group : config.groups) layers += group.layers.size();
  std::vector<KvCacheBinding> caches(layers);
  for (size_t g = 0; g < config.groups.size(); ++g) {
    const KvCacheGroup& group = config.groups[g];
    CHECK(group.spec.page_bytes() == page_bytes, "pages of ", group.spec.page_bytes(), " and ", page_bytes, " bytes");
    for (size_t slot = 0; slot < group.layers.size(); ++slot)
      caches.at(group.layers[slot]) =
          BindKvCache(kv_buffer_, slot * tensor_bytes, group.spec, config.num_blocks, static_cast<int>(g));
    max_blocks_.push_back(CeilDiv(options_.max_model_len, group.spec.block_size));
  }
  decoder_ =
      std::make_unique<Decoder>(model_.spec(), model_.weights(), platform_, caches,
                                DecoderOptions{.numerics = options_.numerics,
                                               .max_tokens = options_.max_num_batched_tokens,
                                               .max_sequences = options_.max_num_seqs,
                                               .max_logit_rows = kMaxLogitRows,
                                               .max_blocks = *std::max_element(max_blocks_.begin(), max_blocks_.end()),
                                               .groups = static_cast<int>(config.groups.size())});
  batch_->slots.resize(config.groups.size());
  batch_->block_tables.resize(config.groups.size());
}

std::future<ModelRunnerOutput> GPUModelRunner::ExecuteModel(SchedulerOutput step) {
  CHECK(decoder_ != nullptr, "ExecuteModel before initialize_kv_cache");
  std::future<ModelRunnerOutput> result;
  {
    std::lock_guard lock(mutex_);
    Job& job = jobs_.emplace_back();
    job.step = std::move(step);
    result = job.result.get_future();
  }
  wake_.notify_one();
  return result;
}

void GPUModelRunner::Run() {
  while (true) {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return stop_ || !jobs_.empty(); });
    if (jobs_.empty()) return;  // a started step is finished before the thread ends
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    try {
      const auto start = std::chrono::steady_clock::now();
      ModelRunnerOutput output = RunStep(job.step);
      output.elapsed_us =
          std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - start).count();
      job.result.set_value(std::move(output));
    } catch (...) {
      job.result.set_exception(std::current_exception());
    }
  }
}

ModelRunnerOutput GPUModelRunner::RunStep(const SchedulerOutput& step) {
  UpdateSequences(step);
  ModelRunnerOutput output;
  output.sequences.resize(step.scheduled.size());
  for (size_t i = 0; i < step.scheduled.size(); ++i) output.sequences[i].id = step.scheduled[i].id;
  if (step.scheduled.empty()) return output;
  {
    const base::TraceScope scope(options_.trace, "prepare");
    BuildBatch(step);
  }
  {
    const base::TraceScope scope(options_.trace, "forward");
    decoder_->Forward(*queue_, {.token_ids = batch_->token_ids,
                                .positions = batch_->positions,
                                .cu_q = batch_->cu_q,
                                .seq_lens = batch_->seq_lens,
                                .groups = batch_->groups});
  }
  {
    const base::TraceScope scope(options_.trace, "logits and sample");
    ScorePrompts(step, output);
    SampleRows(step, output);
  }
  queue_->Synchronize();  // the batch's vectors are free again
  return output;
}

void GPUModelRunner::UpdateSequences(const SchedulerOutput& step) {
  for (const RequestId id : step.finished) sequences_.erase(id);
  for (const NewRequestData& request : step.new_requests) {
    Sequence& sequence = sequences_[request.id];
    sequence.params = request.params;
    sequence.seed = request.seed;
    sequence.tokens = request.token_ids;
    sequence.num_prompt_tokens = request.num_prompt_tokens;
    sequence.num_computed_tokens = request.num_computed_tokens;
    sequence.blocks = request.block_ids;
    if (request.params->prompt_logprobs && !sequence.prompt_delivered)
      sequence.prompt_logprobs.assign(request.num_prompt_tokens, std::nullopt);
  }
  for (const CachedRequestData& request : step.cached_requests) {
    const auto found = sequences_.find(request.id);
    CHECK(found != sequences_.end(), "sequence ", request.id, " is not in the batch");
    Sequence& sequence = found->second;
    sequence.num_computed_tokens = request.num_computed_tokens;
    for (size_t g = 0; g < request.new_block_ids.size(); ++g)
      sequence.blocks[g].insert(sequence.blocks[g].end(), request.new_block_ids[g].begin(),
                                request.new_block_ids[g].end());
    for (size_t g = 0; g < request.num_null_blocks.size(); ++g)
      std::fill_n(sequence.blocks[g].begin(), request.num_null_blocks[g], 0);
  }
}

void GPUModelRunner::BuildBatch(const SchedulerOutput& step) {
  Batch& batch = *batch_;
  batch.token_ids.clear(), batch.positions.clear(), batch.seq_lens.clear();
  batch.cu_q.assign(1, 0);
  const int64_t table_width = decoder_->options().max_blocks;
  for (size_t g = 0; g < kv_.groups.size(); ++g) {
    batch.slots[g].clear();
    batch.block_tables[g].resize(step.scheduled.size() * table_width);
  }
  for (size_t s = 0; s < step.scheduled.size(); ++s) {
    const ScheduledTokens& scheduled = step.scheduled[s];
    CHECK(scheduled.spec_token_ids.empty(), "draft tokens without a proposer");
    const Sequence& sequence = sequences_.at(scheduled.id);
    const int64_t begin = sequence.num_computed_tokens, end = begin + scheduled.num_tokens;
    CHECK(scheduled.num_tokens > 0 && end <= static_cast<int64_t>(sequence.tokens.size()), "tokens ", begin, "..", end,
          " of ", sequence.tokens.size());
    for (int64_t p = begin; p < end; ++p) {
      batch.token_ids.push_back(sequence.tokens[p]);
      batch.positions.push_back(static_cast<int32_t>(p));
    }
    batch.cu_q.push_back(static_cast<int32_t>(batch.token_ids.size()));
    batch.seq_lens.push_back(static_cast<int32_t>(end));
    for (size_t g = 0; g < kv_.groups.size(); ++g) {
      const std::vector<int32_t>& blocks = sequence.blocks[g];
      const int64_t block_size = kv_.groups[g].spec.block_size;
      CHECK(
          static_cast<int64_t>(blocks.size()) * block_size >= end && static_cast<int64_t>(blocks.size()) <= table_width,
          blocks.size(), " blocks of ", block_size, " for ", end, " tokens");
      std::copy(blocks.begin(), blocks.end(), batch.block_tables[g].begin() + s * table_width);
      for (int64_t p = begin; p < end; ++p)
        batch.slots[g].push_back(static_cast<int32_t>(blocks[p / block_size] * block_size + p % block_size));
    }
  }
  batch.groups.clear();
  for (size_t g = 0; g < kv_.groups.size(); ++g)
    batch.groups.push_back({.slots = batch.slots[g], .block_table = batch.block_tables[g]});
}

GPUModelRunner::HeadRows GPUModelRunner::RunHead(std::span<const int32_t> rows, const std::vector<bool>& wants_logits) {
  const ForwardLogits logits = decoder_->Logits(*queue_, rows);
  HeadRows head;
  const auto fetch = [&](vt::Tensor from, void* to) {
    vt::Tensor host = from;
    host.data = static_cast<std::byte*>(to);
    host.device = {};
    queue_->CopyAsync(host, from);
  };
  host_max_.resize(rows.size());
  host_argmax_.resize(rows.size());
  fetch(logits.max, host_max_.data());
  fetch(logits.argmax, host_argmax_.data());
  if (platform_.info().host_memory) {
    head.logits = {logits.device_tensor.as<float>(), static_cast<size_t>(logits.device_tensor.elements())};
  } else {
    const int64_t vocab = model_.spec().vocab;
    host_logits_.resize(logits.device_tensor.elements());
    head.logits = host_logits_;
    for (size_t r = 0; r < rows.size(); ++r)
      if (wants_logits[r])
        fetch(vt::Rows(logits.device_tensor, static_cast<int64_t>(r), 1), host_logits_.data() + r * vocab);
  }
  queue_->Synchronize();
  head_max_.resize(rows.size());
  for (size_t r = 0; r < rows.size(); ++r)
    head_max_[r] = {.value = host_max_[r], .has_nan = std::isnan(host_max_[r]), .index = host_argmax_[r]};
  head.max = head_max_;
  return head;
}

void GPUModelRunner::ScorePrompts(const SchedulerOutput& step, ModelRunnerOutput& output) {
  const int64_t vocab = model_.spec().vocab;
  for (size_t s = 0; s < step.scheduled.size(); ++s) {
    Sequence& sequence = sequences_.at(step.scheduled[s].id);
    if (!sequence.wants_prompt_logprobs()) continue;
    const int64_t begin = sequence.num_computed_tokens, end = begin + step.scheduled[s].num_tokens;
    // The row of position p predicts the prompt's token p + 1.
    const int64_t last = std::min(end, sequence.num_prompt_tokens - 1);
    for (int64_t first = begin; first < last; first += kMaxLogitRows) {
      std::vector<int32_t> rows;
      for (int64_t p = first; p < std::min(first + kMaxLogitRows, last); ++p)
        rows.push_back(static_cast<int32_t>(batch_->cu_q[s] + p - begin));
      const HeadRows head = RunHead(rows, std::vector<bool>(rows.size(), true));
      ForEachRow(rows.size(), [&](size_t r) {
        sequence.prompt_logprobs[first + r + 1] =
            LogprobsOf(head.logits.subspan(r * vocab, vocab), head.max[r], sequence.tokens[first + r + 1],
                       *sequence.params->prompt_logprobs);
      });
    }
    if (end >= sequence.num_prompt_tokens) {
      output.sequences[s].prompt_logprobs = std::move(sequence.prompt_logprobs);
      sequence.prompt_delivered = true;
    }
  }
}

void GPUModelRunner::SampleRows(const SchedulerOutput& step, ModelRunnerOutput& output) {
  std::vector<size_t> sampling;
  for (size_t s = 0; s < step.scheduled.size(); ++s)
    if (step.scheduled[s].samples) sampling.push_back(s);
  const int64_t vocab = model_.spec().vocab;
  for (size_t first = 0; first < sampling.size(); first += kMaxLogitRows) {
    const auto chunk = std::span(sampling).subspan(first, std::min<size_t>(kMaxLogitRows, sampling.size() - first));
    std::vector<int32_t> logits_indices;
    std::vector<SampleRow> rows;
    std::vector<bool> wants_logits;
    for (const size_t s : chunk) {
      const Sequence& sequence = sequences_.at(step.scheduled[s].id);
      const std::span<const int32_t> tokens = sequence.tokens;
      rows.push_back({.params = sequence.params.get(),
                      .prompt_ids = tokens.first(sequence.num_prompt_tokens),
                      .output_ids = tokens.subspan(sequence.num_prompt_tokens),
                      .seed = sequence.seed,
                      .position = static_cast<int64_t>(tokens.size())});
      logits_indices.push_back(batch_->cu_q[s + 1] - 1);
      wants_logits.push_back(Sampler::NeedsLogits(rows.back()));
    }
    const HeadRows head = RunHead(logits_indices, wants_logits);
    for (size_t r = 0; r < rows.size(); ++r) {
      rows[r].max = head.max[r];
      if (wants_logits[r]) rows[r].logits = head.logits.subspan(r * vocab, vocab);
    }
    std::vector<SampledToken> sampled = Sample(rows);
    for (size_t r = 0; r < chunk.size(); ++r) {
      Sequence& sequence = sequences_.at(step.scheduled[chunk[r]].id);
      SequenceOutput& result = output.sequences[chunk[r]];
      result.error = std::move(sampled[r].error);
      // A sequence whose logits are not numbers ends; until the scheduler knows, its next step needs a token all the
      // same.
      sequence.tokens.push_back(result.error ? 0 : sampled[r].token_id);
      if (result.error) continue;
      result.token_ids.push_back(sampled[r].token_id);
      if (sequence.params->logprobs || !sequence.params->logprob_token_ids.empty())
        result.logprobs.push_back(std::move(sampled[r].logprobs));
    }
  }
}

void GPUModelRunner::ForEachRow(size_t count, const std::function<void(size_t)>& run) {
  std::vector<std::exception_ptr> failures(count);
  platform_.ForEachOnHost(static_cast<int64_t>(count), [&](int64_t i) {
    try {
      run(static_cast<size_t>(i));
    } catch (...) {
      failures[i] = std::current_exception();
    }
  });
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

std::vector<SampledToken> GPUModelRunner::Sample(std::span<const SampleRow> rows) {
  std::vector<SampledToken> sampled(rows.size());
  std::vector<size_t> slow;  // those that pass over their logits
  for (size_t r = 0; r < rows.size(); ++r) {
    if (rows[r].logits.empty())
      sampled[r] = sampler_.Sample(rows[r]);
    else
      slow.push_back(r);
  }
  ForEachRow(slow.size(), [&](size_t i) { sampled[slow[i]] = sampler_.Sample(rows[slow[i]]); });
  return sampled;
}

}  // namespace vllm
