// The plain pre-norm decoder: Llama, Mistral (windowed), Qwen2 (bias on q, k, v), Qwen3 (RMS norm on each head of q and
// k).
#include <cmath>

#include "model/families.h"

namespace vllm::families {
namespace {

// GGUF keeps Llama's rotary pairs side by side.
constexpr PartName kGgufNames[] = {
    {Part::kQ, "blk.{}.attn_q.weight", Transform::kUninterleave},
    {Part::kK, "blk.{}.attn_k.weight", Transform::kUninterleave},
    {Part::kQBias, "blk.{}.attn_q.bias", Transform::kUninterleave},
    {Part::kKBias, "blk.{}.attn_k.bias", Transform::kUninterleave},
};

}  // namespace

const std::span<const PartName> kLlamaGgufNames = kGgufNames;

spec::Model Llama(const Config& c) {
  c.expect<std::string>("hidden_act", "silu");
  spec::Model model = CommonModel(c);
  spec::Attention attn = CommonAttention(c);
  const std::string& type = model.type;
  const int layers = static_cast<int>(c.need_in("num_hidden_layers", 1, 4096));
  attn.rope = CommonRope(c, attn.head_dim, "");
  attn.scale = 1 / std::sqrt(static_cast<double>(attn.head_dim));
  attn.qkv_bias = type == "qwen2" || c.get<bool>("attention_bias", false);
  attn.out_bias = type != "qwen2" && c.get<bool>("attention_bias", false);
  attn.qk_norm = type == "qwen3" ? spec::QkNorm::kPerHead : spec::QkNorm::kNone;

  const int window = static_cast<int>(c.get_in("sliding_window", 0, 1, 1 << 30));
  const bool windowed = c.get<bool>("use_sliding_window", type == "mistral") && window > 0;
  std::vector<bool> local(layers, windowed);
  if (c.has("layer_types"))
    local = WindowedLayers(c, layers, nullptr);
  else if (type != "mistral" && windowed)
    for (int i = 0; i < layers; ++i) local[i] = i >= c.get_in("max_window_layers", 28, 0, 1 << 20);

  const spec::Norm norm = model.head.norm;
  const spec::Mlp mlp{.hidden = static_cast<int>(c.need_in("intermediate_size", 1, 1 << 22)),
                      .bias = c.get<bool>("mlp_bias", false)};
  for (int i = 0; i < layers; ++i) {
    attn.window = local[i] && windowed ? window : 0;
    model.layers.push_back({{{.pre = norm, .op = attn}, {.pre = norm, .op = mlp}}});
  }
  return model;
}

}  // namespace vllm::families
