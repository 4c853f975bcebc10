// The decoder: spec to graph, graph to plans, and the copies around a step.
#include "model/decoder.h"

#include <algorithm>

#include "base/check.h"
#include "model/rope.h"

namespace vllm {
namespace {

vt::NormKind KindOf(const vt::Tensor& weight) { return weight ? vt::NormKind::kRms : vt::NormKind::kNone; }

vt::Activation ActivationOf(spec::Act act) {
  switch (act) {
    case spec::Act::kSilu:
      return vt::Activation::kSilu;
    case spec::Act::kGeluTanh:
      return vt::Activation::kGeluTanh;
    case spec::Act::kGelu:
      return vt::Activation::kGelu;
  }
  return vt::Activation::kSilu;
}

// Walks the layers and emits nodes. The residual stream is one value; a sublayer's output waits as `branch_` until the
// next norm, which adds it.
class TrunkBuilder {
 public:
  TrunkBuilder(const spec::Model& model, const ModelWeights& weights, vt::Graph& graph)
      : model_(model), weights_(weights), graph_(graph) {}

  vt::ValueId Embed(vt::ValueId ids) {
    residual_ = graph_.Activation(vt::RowCount::kTokens, model_.dim, "hidden");
    graph_.MarkOutput(residual_);
    graph_.Add(vt::EmbedOp<vt::ValueId>{.ids = ids,
                                        .out = residual_,
                                        .weight = weights_.Linear(Part::kEmbed),
                                        .scale = static_cast<float>(model_.embed_scale)});
    return residual_;
  }

  // residual += branch; returns the normed input of the next sublayer.
  vt::ValueId NormInto(const std::optional<spec::Norm>& norm, Part part, int layer) {
    auto op = PendingAdd();
    op.out = graph_.Activation(vt::RowCount::kTokens, model_.dim, "normed");
    SetNorm(op, norm, norm ? weights_.Vector(part, layer) : vt::Tensor{});
    graph_.Add(op);
    return op.out;
  }
  void AddLastBranch() { graph_.Add(PendingAdd()); }

  void EndSublayer(vt::ValueId branch, const spec::Sublayer& sub, Part post_part, int layer) {
    branch_ = branch;
    post_ = sub.post;
    post_weight_ = sub.post ? weights_.Vector(post_part, layer) : vt::Tensor{};
    scale_ = sub.scale;
  }

  vt::ValueId Linear(vt::ValueId x, Part part, Part bias, int layer, std::string name) {
    const vt::PackedWeight* weight = weights_.Linear(part, layer);
    const vt::ValueId out = graph_.Activation(vt::RowCount::kTokens, weight->n, std::move(name));
    graph_.Add(vt::LinearOp<vt::ValueId>{
        .x = x, .out = out, .bias = MaybeConstant(weights_.Vector(bias, layer), "bias"), .weight = weight});
    return out;
  }

  vt::ValueId MaybeConstant(const vt::Tensor& tensor, const char* name) {
    return tensor ? graph_.Constant(tensor, name) : vt::ValueId{};
  }

 private:
  vt::AddNormOp<vt::ValueId> PendingAdd() {
    vt::AddNormOp<vt::ValueId> op{.residual = residual_, .norm = vt::NormKind::kNone};
    if (branch_) {
      op.branch = branch_;
      op.branch_weight = MaybeConstant(post_weight_, "post_norm");
      op.branch_norm = KindOf(post_weight_);
      if (post_) op.branch_eps = static_cast<float>(post_->eps);
      op.scale = static_cast<float>(scale_);
    }
    branch_ = {};
    return op;
  }
  void SetNorm(vt::AddNormOp<vt::ValueId>& op, const std::optional<spec::Norm>& norm, const vt::Tensor& weight) {
    if (!norm) return;
    op.weight = graph_.Constant(weight, "norm");
    op.norm = vt::NormKind::kRms;
    op.eps = static_cast<float>(norm->eps);
  }

  const spec::Model& model_;
  const ModelWeights& weights_;
  vt::Graph& graph_;
  vt::ValueId residual_, branch_;
  std::optional<spec::Norm> post_;
  vt::Tensor post_weight_;
  double scale_ = 1;
};

vt::Tensor HostView(std::span<const int32_t> values, const vt::Tensor& like) {
  vt::Tensor view = like;
  view.data = reinterpret_cast<std::byte*>(const_cast<int32_t*>(values.data()));
  view.device = {};
  return view;
}

}  // namespace

std::vector<LayerKvCache> KvCacheSpecsOf(const spec::Model& model, int block_size, vt::DType dtype) {
  std::vector<LayerKvCache> caches;
  for (const spec::Layer& layer : model.layers)
    for (const spec::Sublayer& sub : layer.subs)
      if (const auto* attn = std::get_if<spec::Attention>(&sub.op))
        caches.push_back({.layer = static_cast<int>(caches.size()),
                          .spec = {.kind = attn->window > 0 ? KvCacheKind::kSlidingWindow : KvCacheKind::kFullAttention,
                                   .block_size = block_size,
                                   .kv_heads = attn->kv_heads,
                                   .head_dim = attn->head_dim,
                                   .dtype = dtype,
                                   .window = attn->window}});
  return caches;
}

KvCacheBinding BindKvCache(const vt::Buffer& buffer, size_t offset, const KvCacheSpec& spec, int64_t num_blocks,
                           int group) {
  return {.cache = buffer.View(vt::DType::kU8, {num_blocks, spec.page_bytes()}, offset),
          .page = spec.page(),
          .group = group};
}

Decoder::Decoder(const spec::Model& model, const ModelWeights& weights, vt::Platform& platform,
                 std::span<const KvCacheBinding> caches, const DecoderOptions& options)
    : options_(options), dim_(model.dim) {
  BuildTrunk(model, weights, caches, platform);
  BuildHead(model, weights, platform);
}

void Decoder::BuildTrunk(const spec::Model& model, const ModelWeights& weights, std::span<const KvCacheBinding> caches,
                         vt::Platform& platform) {
  using vt::RowCount, vt::DType, vt::ValueId;
  vt::Graph graph;
  at_.ids = graph.Input(RowCount::kTokens, 0, DType::kI32, "token_ids");
  at_.positions = graph.Input(RowCount::kTokens, 0, DType::kI32, "positions");
  at_.cu_q = graph.Input(RowCount::kSequencesPlusOne, 0, DType::kI32, "cu_q");
  at_.seq_lens = graph.Input(RowCount::kSequences, 0, DType::kI32, "seq_lens");
  for (int g = 0; g < options_.groups; ++g) {
    at_.slots.push_back(graph.Input(RowCount::kTokens, 0, DType::kI32, "slots"));
    at_.block_tables.push_back(graph.Input(RowCount::kSequences, options_.max_blocks, DType::kI32, "block_table"));
  }
  TrunkBuilder builder(model, weights, graph);
  at_.hidden = builder.Embed(at_.ids);
  size_t cache = 0;
  for (size_t l = 0; l < model.layers.size(); ++l) {
    const int layer = static_cast<int>(l);
    for (const spec::Sublayer& sub : model.layers[l].subs) {
      if (const auto* attn = std::get_if<spec::Attention>(&sub.op)) {
        CHECK(cache < caches.size(), "attention sublayer ", cache, " has no KV cache");
        const KvCacheBinding& binding = caches[cache++];
        if (attn->rope.dim > 0)
          ropes_.push_back(
              std::make_unique<vt::RopeTable>(MakeRopeTable(attn->rope, model.max_position, weights.rope_factors())));
        const ValueId normed = builder.NormInto(sub.pre, Part::kAttnPreNorm, layer);
        const ValueId qkv = builder.Linear(normed, Part::kQ, Part::kQBias, layer, "qkv");
        const ValueId kv = graph.Constant(binding.cache, "kv_cache");
        const vt::Tensor q_norm = weights.Vector(Part::kQNorm, layer);
        graph.Add(vt::QkNormRopeCacheWriteOp<ValueId>{
            .qkv = qkv,
            .q_norm = builder.MaybeConstant(q_norm, "q_norm"),
            .k_norm = builder.MaybeConstant(weights.Vector(Part::kKNorm, layer), "k_norm"),
            .positions = at_.positions,
            .slots = at_.slots[binding.group],
            .cache = kv,
            .kv_dtype = binding.page.dtype,
            .block_size = binding.page.block_size,
            .heads = attn->heads,
            .kv_heads = attn->kv_heads,
            .head_dim = attn->head_dim,
            .qk_norm = KindOf(q_norm),
            .eps = static_cast<float>(attn->q_k_norm.eps),
            .rope = attn->rope.dim > 0 ? ropes_.back().get() : nullptr});
        const ValueId mixed = graph.Activation(RowCount::kTokens, int64_t{attn->heads} * attn->head_dim, "attention");
        graph.Add(vt::PagedAttentionOp<ValueId>{.qkv = qkv,
                                                .cache = kv,
                                                .cu_q = at_.cu_q,
                                                .seq_len = at_.seq_lens,
                                                .block_table = at_.block_tables[binding.group],
                                                .out = mixed,
                                                .kv_dtype = binding.page.dtype,
                                                .block_size = binding.page.block_size,
                                                .heads = attn->heads,
                                                .kv_heads = attn->kv_heads,
                                                .head_dim = attn->head_dim,
                                                .window = attn->window,
                                                .scale = static_cast<float>(attn->scale),
                                                .softcap = static_cast<float>(attn->softcap)});
        builder.EndSublayer(builder.Linear(mixed, Part::kOut, Part::kOutBias, layer, "attention_out"), sub,
                            Part::kAttnPostNorm, layer);
      } else {
        const auto& mlp = std::get<spec::Mlp>(sub.op);
        const ValueId normed = builder.NormInto(sub.pre, Part::kMlpPreNorm, layer);
        const ValueId gate_up = builder.Linear(normed, Part::kGate, Part::kGateBias, layer, "gate_up");
        const ValueId acted = graph.Activation(RowCount::kTokens, mlp.hidden, "mlp_hidden");
        graph.Add(vt::GatedActOp<ValueId>{.x = gate_up, .out = acted, .act = ActivationOf(mlp.act)});
        builder.EndSublayer(builder.Linear(acted, Part::kDown, Part::kDownBias, layer, "mlp_out"), sub,
                            Part::kMlpPostNorm, layer);
      }
    }
  }
  builder.AddLastBranch();
  CHECK(cache == caches.size(), caches.size(), " KV caches for ", cache, " attention sublayers");
  trunk_ =
      std::make_unique<vt::Plan>(graph, platform, options_.numerics,
                                 vt::PlanLimits{.tokens = options_.max_tokens, .sequences = options_.max_sequences});
}

void Decoder::BuildHead(const spec::Model& model, const ModelWeights& weights, vt::Platform& platform) {
  using vt::RowCount, vt::ValueId;
  vt::Graph graph;
  at_.indices = graph.Input(RowCount::kLogitRows, 0, vt::DType::kI32, "logits_indices");
  const vt::Tensor hidden = trunk_->At(at_.hidden, {.tokens = options_.max_tokens});
  const ValueId rows = graph.Activation(RowCount::kLogitRows, model.dim, "gathered");
  graph.Add(vt::GatherRowsOp<ValueId>{.x = graph.Constant(hidden, "hidden"), .indices = at_.indices, .out = rows});
  at_.final_normed = graph.Activation(RowCount::kLogitRows, model.dim, "final_normed");
  graph.MarkOutput(at_.final_normed);
  graph.Add(vt::AddNormOp<ValueId>{.residual = rows,
                                   .weight = graph.Constant(weights.Vector(Part::kFinalNorm), "final_norm"),
                                   .out = at_.final_normed,
                                   .norm = vt::NormKind::kRms,
                                   .eps = static_cast<float>(model.head.norm.eps)});
  at_.logits = graph.Activation(RowCount::kLogitRows, model.vocab, "logits");
  graph.MarkOutput(at_.logits);
  graph.Add(vt::LinearOp<ValueId>{.x = at_.final_normed, .out = at_.logits, .weight = weights.Linear(Part::kHead)});
  if (model.head.scale != 1 || model.head.softcap != 0)
    graph.Add(vt::SoftcapOp<ValueId>{
        .x = at_.logits, .scale = static_cast<float>(model.head.scale), .cap = static_cast<float>(model.head.softcap)});
  at_.max = graph.Activation(RowCount::kLogitRows, 0, "max");
  at_.argmax = graph.Activation(RowCount::kLogitRows, 0, "argmax", vt::DType::kI32);
  graph.MarkOutput(at_.max);
  graph.MarkOutput(at_.argmax);
  graph.Add(vt::RowMaxOp<ValueId>{.x = at_.logits, .max = at_.max, .index = at_.argmax});
  head_ = std::make_shared<vt::Plan>(graph, platform, options_.numerics,
                                     vt::PlanLimits{.logit_rows = options_.max_logit_rows});
}

void Decoder::Upload(vt::Queue& queue, const vt::Plan& plan, vt::ValueId input, std::span<const int32_t> values,
                     const vt::StepSizes& sizes) const {
  const vt::Tensor place = plan.At(input, sizes);
  CHECK(place.elements() == static_cast<int64_t>(values.size()), values.size(), " values for an input of ",
        place.elements());
  queue.CopyAsync(place, HostView(values, place));
}

void Decoder::Forward(vt::Queue& queue, const StepInputs& in) {
  const vt::StepSizes sizes = {.tokens = static_cast<int64_t>(in.token_ids.size()),
                               .sequences = static_cast<int64_t>(in.seq_lens.size())};
  CHECK(sizes.tokens > 0 && sizes.tokens <= options_.max_tokens, sizes.tokens, " tokens of ", options_.max_tokens);
  CHECK(sizes.sequences > 0 && sizes.sequences <= options_.max_sequences, sizes.sequences, " of ",
        options_.max_sequences);
  CHECK(static_cast<int>(in.groups.size()) == options_.groups, in.groups.size(), " groups of ", options_.groups);
  Upload(queue, *trunk_, at_.ids, in.token_ids, sizes);
  Upload(queue, *trunk_, at_.positions, in.positions, sizes);
  Upload(queue, *trunk_, at_.cu_q, in.cu_q, sizes);
  Upload(queue, *trunk_, at_.seq_lens, in.seq_lens, sizes);
  for (size_t g = 0; g < in.groups.size(); ++g) {
    Upload(queue, *trunk_, at_.slots[g], in.groups[g].slots, sizes);
    Upload(queue, *trunk_, at_.block_tables[g], in.groups[g].block_table, sizes);
  }
  trunk_->Execute(queue, sizes);
}

ForwardLogits Decoder::Logits(vt::Queue& queue, std::span<const int32_t> logits_indices, ForwardTrace* trace) {
  const vt::StepSizes sizes = {.logit_rows = static_cast<int64_t>(logits_indices.size())};
  CHECK(sizes.logit_rows > 0 && sizes.logit_rows <= options_.max_logit_rows, sizes.logit_rows, " rows of ",
        options_.max_logit_rows);
  Upload(queue, *head_, at_.indices, logits_indices, sizes);
  head_->Execute(queue, sizes);
  if (trace && trace->capture) {
    const vt::Tensor normed = head_->At(at_.final_normed, sizes);
    CHECK(normed.elements() == sizes.logit_rows * dim_, "gathered row count does not match hidden_size");
    trace->final_normed.resize(normed.elements());
    vt::Tensor copy = normed;
    copy.data = reinterpret_cast<std::byte*>(trace->final_normed.data());
    copy.device = {};
    queue.CopyAsync(copy, normed);
    queue.Synchronize();
  }
  return {.device_tensor = head_->At(at_.logits, sizes),
          .device_storage = head_,
          .max = head_->At(at_.max, sizes),
          .argmax = head_->At(at_.argmax, sizes)};
}

std::vector<vt::LoweringChoice> Decoder::choices() const {
  std::vector<vt::LoweringChoice> all(trunk_->choices().begin(), trunk_->choices().end());
  all.insert(all.end(), head_->choices().begin(), head_->choices().end());
  return all;
}

}  // namespace vllm
