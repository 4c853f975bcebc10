// Gemma 2 and 3: norms of (1 + w) on both sides of each sublayer, GeGLU, scaled embeddings, local and global layers.
// Gemma 2 soft-caps attention and logits; Gemma 3 has QK norm and a rope base of its own for local layers.
#include <cmath>

#include "model/families.h"

namespace vllm::families {
namespace {

constexpr PartName kHfNames[] = {
    {Part::kAttnPostNorm, "model.layers.{}.post_attention_layernorm.weight"},
    {Part::kMlpPreNorm, "model.layers.{}.pre_feedforward_layernorm.weight"},
    {Part::kMlpPostNorm, "model.layers.{}.post_feedforward_layernorm.weight"},
};
constexpr PartName kGgufNames[] = {
    {Part::kAttnPostNorm, "blk.{}.post_attention_norm.weight"},
    {Part::kMlpPostNorm, "blk.{}.post_ffw_norm.weight"},
};

}  // namespace

const std::span<const PartName> kGemmaHfNames = kHfNames, kGemmaGgufNames = kGgufNames;

std::vector<std::pair<std::string, ConfigValue>> CompleteGemma(const Config& c) {
  std::vector<std::pair<std::string, ConfigValue>> rest;
  const auto text = [](const char* value) { return ConfigValue{.kind = ConfigValue::Kind::kString, .text = value}; };
  const auto number = [](double value) { return ConfigValue{.kind = ConfigValue::Kind::kDouble, .number = value}; };
  rest.emplace_back("hidden_activation", text("gelu_pytorch_tanh"));
  rest.emplace_back("tie_word_embeddings", ConfigValue{.kind = ConfigValue::Kind::kBool, .boolean = true});
  // Only the 27B models have heads of 128, and they alone scale by the width per head instead.
  const int64_t head_dim = c.need_in("head_dim", 1, 1 << 12), heads = c.need_in("num_attention_heads", 1, 1 << 14);
  const int64_t dim = c.need_in("hidden_size", 1, 1 << 20);
  rest.emplace_back("query_pre_attn_scalar", number(static_cast<double>(head_dim == 128 ? dim / heads : head_dim)));
  if (c.need<std::string>("model_type") == "gemma3_text" && !c.has("rope_theta"))
    rest.emplace_back("rope_theta", number(1e6));
  return rest;
}

spec::Model Gemma(const Config& c) {
  c.expect<std::string>("hidden_activation", "gelu_pytorch_tanh");
  c.expect<std::string>("hidden_act", "gelu_pytorch_tanh");
  c.expect<bool>("attention_bias", false);
  c.expect<bool>("use_bidirectional_attention", false);
  spec::Model model = CommonModel(c);
  const bool gemma3 = model.type == "gemma3_text";
  const int layers = static_cast<int>(c.need_in("num_hidden_layers", 1, 4096));
  const spec::Norm norm{.kind = spec::NormKind::kRmsOnePlus, .eps = model.head.norm.eps};
  model.head = {.norm = norm,
                .tied = c.get<bool>("tie_word_embeddings", true),
                .softcap = c.get_in_real("final_logit_softcapping", gemma3 ? 0 : 30, 0, 1e6)};
  model.embed_scale = std::sqrt(static_cast<double>(model.dim));

  spec::Attention global = CommonAttention(c);
  global.scale = 1 / std::sqrt(c.get_in_real("query_pre_attn_scalar", 256, 1, 1e6));
  global.softcap = c.get_in_real("attn_logit_softcapping", gemma3 ? 0 : 50, 0, 1e6);
  global.qk_norm = gemma3 ? spec::QkNorm::kPerHead : spec::QkNorm::kNone;
  global.q_k_norm = norm;
  global.rope = CommonRope(c, global.head_dim, "full_attention");
  spec::Attention local = global;
  local.window = static_cast<int>(c.get_in("sliding_window", 4096, 1, 1 << 30));
  if (gemma3) {
    local.rope = {.dim = global.rope.dim, .base = c.get_in_real("rope_local_base_freq", 10000, 1, 1e12)};
    if (c.object("rope_parameters").has("sliding_attention"))
      local.rope = CommonRope(c, local.head_dim, "sliding_attention");
  }

  const auto pattern2 = [](int i) { return i % 2 == 0; };
  const auto pattern6 = [](int i) { return (i + 1) % 6 != 0; };
  c.expect<int>("sliding_window_pattern", gemma3 ? 6 : 2);
  const std::vector<bool> windowed = WindowedLayers(c, layers, gemma3 ? +pattern6 : +pattern2);
  const spec::Mlp mlp{.hidden = static_cast<int>(c.need_in("intermediate_size", 1, 1 << 22)),
                      .act = spec::Act::kGeluTanh};
  for (int i = 0; i < layers; ++i)
    model.layers.push_back(
        {{{.pre = norm, .post = norm, .op = windowed[i] ? local : global}, {.pre = norm, .post = norm, .op = mlp}}});
  return model;
}

}  // namespace vllm::families
