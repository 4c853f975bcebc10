// The parts of a model that have weights, and their default names in each dialect.
#include "model/bind/parts.h"

#include "base/check.h"

namespace vllm {
namespace {

constexpr PartName kHfNames[] = {
    {Part::kEmbed, "model.embed_tokens.weight"},
    {Part::kHead, "lm_head.weight"},
    {Part::kFinalNorm, "model.norm.weight"},
    {Part::kAttnPreNorm, "model.layers.{}.input_layernorm.weight"},
    {Part::kQ, "model.layers.{}.self_attn.q_proj.weight"},
    {Part::kK, "model.layers.{}.self_attn.k_proj.weight"},
    {Part::kV, "model.layers.{}.self_attn.v_proj.weight"},
    {Part::kOut, "model.layers.{}.self_attn.o_proj.weight"},
    {Part::kQBias, "model.layers.{}.self_attn.q_proj.bias"},
    {Part::kKBias, "model.layers.{}.self_attn.k_proj.bias"},
    {Part::kVBias, "model.layers.{}.self_attn.v_proj.bias"},
    {Part::kOutBias, "model.layers.{}.self_attn.o_proj.bias"},
    {Part::kQNorm, "model.layers.{}.self_attn.q_norm.weight"},
    {Part::kKNorm, "model.layers.{}.self_attn.k_norm.weight"},
    {Part::kMlpPreNorm, "model.layers.{}.post_attention_layernorm.weight"},
    {Part::kGate, "model.layers.{}.mlp.gate_proj.weight"},
    {Part::kUp, "model.layers.{}.mlp.up_proj.weight"},
    {Part::kDown, "model.layers.{}.mlp.down_proj.weight"},
    {Part::kGateBias, "model.layers.{}.mlp.gate_proj.bias"},
    {Part::kUpBias, "model.layers.{}.mlp.up_proj.bias"},
    {Part::kDownBias, "model.layers.{}.mlp.down_proj.bias"},
};

constexpr PartName kGgufNames[] = {
    {Part::kEmbed, "token_embd.weight"},
    {Part::kHead, "output.weight"},
    {Part::kFinalNorm, "output_norm.weight"},
    {Part::kAttnPreNorm, "blk.{}.attn_norm.weight"},
    {Part::kQ, "blk.{}.attn_q.weight"},
    {Part::kK, "blk.{}.attn_k.weight"},
    {Part::kV, "blk.{}.attn_v.weight"},
    {Part::kOut, "blk.{}.attn_output.weight"},
    {Part::kQBias, "blk.{}.attn_q.bias"},
    {Part::kKBias, "blk.{}.attn_k.bias"},
    {Part::kVBias, "blk.{}.attn_v.bias"},
    {Part::kOutBias, "blk.{}.attn_output.bias"},
    {Part::kQNorm, "blk.{}.attn_q_norm.weight"},
    {Part::kKNorm, "blk.{}.attn_k_norm.weight"},
    {Part::kMlpPreNorm, "blk.{}.ffn_norm.weight"},
    {Part::kGate, "blk.{}.ffn_gate.weight"},
    {Part::kUp, "blk.{}.ffn_up.weight"},
    {Part::kDown, "blk.{}.ffn_down.weight"},
    {Part::kGateBias, "blk.{}.ffn_gate.bias"},
    {Part::kUpBias, "blk.{}.ffn_up.bias"},
    {Part::kDownBias, "blk.{}.ffn_down.bias"},
};

void AddAttention(std::vector<Role>& roles, const spec::Sublayer& sub, const spec::Attention& attn, int layer,
                  int64_t dim) {
  const int64_t q = int64_t{attn.heads} * attn.head_dim, kv = int64_t{attn.kv_heads} * attn.head_dim;
  const auto one_plus = [](const spec::Norm& norm) { return norm.kind == spec::NormKind::kRmsOnePlus; };
  if (sub.pre) roles.push_back({.part = Part::kAttnPreNorm, .layer = layer, .n = dim, .one_plus = one_plus(*sub.pre)});
  roles.push_back({.part = Part::kQ, .layer = layer, .n = q, .k = dim, .heads = attn.heads});
  roles.push_back({.part = Part::kK, .layer = layer, .n = kv, .k = dim, .heads = attn.kv_heads});
  roles.push_back({.part = Part::kV, .layer = layer, .n = kv, .k = dim});
  if (attn.qkv_bias) {
    roles.push_back({.part = Part::kQBias, .layer = layer, .n = q, .heads = attn.heads});
    roles.push_back({.part = Part::kKBias, .layer = layer, .n = kv, .heads = attn.kv_heads});
    roles.push_back({.part = Part::kVBias, .layer = layer, .n = kv});
  }
  if (attn.qk_norm == spec::QkNorm::kPerHead) {
    const bool plus = one_plus(attn.q_k_norm);
    roles.push_back({.part = Part::kQNorm, .layer = layer, .n = attn.head_dim, .one_plus = plus});
    roles.push_back({.part = Part::kKNorm, .layer = layer, .n = attn.head_dim, .one_plus = plus});
  }
  roles.push_back({.part = Part::kOut, .layer = layer, .n = dim, .k = q});
  if (attn.out_bias) roles.push_back({.part = Part::kOutBias, .layer = layer, .n = dim});
  if (sub.post)
    roles.push_back({.part = Part::kAttnPostNorm, .layer = layer, .n = dim, .one_plus = one_plus(*sub.post)});
}

void AddMlp(std::vector<Role>& roles, const spec::Sublayer& sub, const spec::Mlp& mlp, int layer, int64_t dim) {
  const auto one_plus = [](const spec::Norm& norm) { return norm.kind == spec::NormKind::kRmsOnePlus; };
  if (sub.pre) roles.push_back({.part = Part::kMlpPreNorm, .layer = layer, .n = dim, .one_plus = one_plus(*sub.pre)});
  roles.push_back({.part = Part::kGate, .layer = layer, .n = mlp.hidden, .k = dim});
  roles.push_back({.part = Part::kUp, .layer = layer, .n = mlp.hidden, .k = dim});
  if (mlp.bias) {
    roles.push_back({.part = Part::kGateBias, .layer = layer, .n = mlp.hidden});
    roles.push_back({.part = Part::kUpBias, .layer = layer, .n = mlp.hidden});
  }
  roles.push_back({.part = Part::kDown, .layer = layer, .n = dim, .k = mlp.hidden});
  if (mlp.bias) roles.push_back({.part = Part::kDownBias, .layer = layer, .n = dim});
  if (sub.post)
    roles.push_back({.part = Part::kMlpPostNorm, .layer = layer, .n = dim, .one_plus = one_plus(*sub.post)});
}

}  // namespace

std::vector<Role> RolesOf(const spec::Model& model) {
  std::vector<Role> roles = {{.part = Part::kEmbed, .n = model.vocab, .k = model.dim}};
  for (size_t i = 0; i < model.layers.size(); ++i) {
    for (const spec::Sublayer& sub : model.layers[i].subs) {
      const int layer = static_cast<int>(i);
      if (const auto* attn = std::get_if<spec::Attention>(&sub.op)) AddAttention(roles, sub, *attn, layer, model.dim);
      if (const auto* mlp = std::get_if<spec::Mlp>(&sub.op)) AddMlp(roles, sub, *mlp, layer, model.dim);
    }
  }
  roles.push_back(
      {.part = Part::kFinalNorm, .n = model.dim, .one_plus = model.head.norm.kind == spec::NormKind::kRmsOnePlus});
  if (!model.head.tied) roles.push_back({.part = Part::kHead, .n = model.vocab, .k = model.dim});
  return roles;
}

std::span<const PartName> DefaultHfNames() { return kHfNames; }
std::span<const PartName> DefaultGgufNames() { return kGgufNames; }

const PartName& FindPartName(Part part, std::span<const PartName> family, std::span<const PartName> defaults) {
  for (const auto& names : {family, defaults})
    for (const PartName& name : names)
      if (name.part == part) return name;
  CHECK(false, "part ", static_cast<int>(part), " has no name in this dialect");
  return defaults[0];
}

std::string TensorName(const PartName& name, int layer) {
  std::string text(name.pattern);
  if (const size_t at = text.find("{}"); at != std::string::npos) text.replace(at, 2, std::to_string(layer));
  return text;
}

}  // namespace vllm
