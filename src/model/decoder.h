// The decoder: walks a spec once, plans it for a device, and runs step after step over a paged KV cache.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "model/kv_cache_spec.h"
#include "model/spec.h"
#include "model/weights.h"
#include "vt/plan.h"

namespace vllm {

// What each attention sublayer keeps, in order of the layers.
std::vector<LayerKvCache> KvCacheSpecsOf(const spec::Model& model, int block_size, vt::DType dtype);

// Where an attention sublayer finds its cache.
struct KvCacheBinding {
  vt::Tensor cache = {};  // u8 [blocks, page bytes]
  vt::KvPage page = {};   // what a page holds
  int group = 0;          // which block table and slots
};

// A sublayer's `num_blocks` pages at a byte offset of `buffer`.
KvCacheBinding BindKvCache(const vt::Buffer& buffer, size_t offset, const KvCacheSpec& spec, int64_t num_blocks,
                           int group = 0);

struct DecoderOptions {
  vt::Numerics numerics = vt::Numerics::kDefault;
  int64_t max_tokens = 0, max_sequences = 0;  // of a step
  int64_t max_logit_rows = 0;                 // of one pass of the head
  int64_t max_blocks = 0;                     // of a sequence, in each group
  int groups = 1;
};

// One step's metadata in host memory; it must stay unchanged until the queue has passed the step. T tokens, S
// sequences.
struct StepInputs {
  struct Group {
    std::span<const int32_t> slots = {};        // [T]
    std::span<const int32_t> block_table = {};  // [S, max_blocks]
  };
  std::span<const int32_t> token_ids = {};  // [T]
  std::span<const int32_t> positions = {};  // [T]
  std::span<const int32_t> cu_q = {};       // [S + 1]
  std::span<const int32_t> seq_lens = {};   // [S]
  std::span<const Group> groups = {};
};

// Logits on the device, and what every kind of sampling asks of them first. Host memory sees them only when asked.
struct ForwardLogits {
  vt::Tensor device_tensor = {};                         // f32 [rows, vocab]
  std::shared_ptr<const void> device_storage = nullptr;  // what holds all; overwritten by the next pass of the head
  vt::Tensor max = {};                                   // f32 [rows]: of each row; NaN when the row holds one
  vt::Tensor argmax = {};                                // i32 [rows]: lowest token with that logit; -1 for NaN
};

// A request for copies of inner values.
struct ForwardTrace {
  bool capture = false;
  std::vector<float> final_normed = {};  // [rows, dim]: what the head's matrix saw
};

// One thread at a time.
class Decoder {
 public:
  // `weights` and `platform` must outlive it. Throws base::Exception when an op has no kernel for the device.
  Decoder(const spec::Model& model, const ModelWeights& weights, vt::Platform& platform,
          std::span<const KvCacheBinding> caches, const DecoderOptions& options);

  // Runs all layers for the step's tokens and leaves their hidden states on the device.
  void Forward(vt::Queue& queue, const StepInputs& inputs);
  // Logits of the chosen rows of the last Forward (at most max_logit_rows). Rows follow `logits_indices`, never the
  // number of sequences. With trace->capture, waits for the queue and fills the copy.
  ForwardLogits Logits(vt::Queue& queue, std::span<const int32_t> logits_indices, ForwardTrace* trace = nullptr);

  std::vector<vt::LoweringChoice> choices() const;
  const DecoderOptions& options() const { return options_; }
  uint64_t arena_bytes() const { return trunk_->arena_bytes() + head_->arena_bytes(); }

 private:
  struct Inputs {
    vt::ValueId ids, positions, cu_q, seq_lens, hidden, indices, final_normed, logits, max, argmax;
    std::vector<vt::ValueId> slots, block_tables;
  };
  void BuildTrunk(const spec::Model& model, const ModelWeights& weights, std::span<const KvCacheBinding> caches,
                  vt::Platform& platform);
  void BuildHead(const spec::Model& model, const ModelWeights& weights, vt::Platform& platform);
  void Upload(vt::Queue& queue, const vt::Plan& plan, vt::ValueId input, std::span<const int32_t> values,
              const vt::StepSizes& sizes) const;

  DecoderOptions options_;
  int64_t dim_ = 0;
  std::vector<std::unique_ptr<vt::RopeTable>> ropes_;
  Inputs at_;
  std::unique_ptr<vt::Plan> trunk_;
  std::shared_ptr<vt::Plan> head_;
};

}  // namespace vllm
