// QkNormRopeCacheWrite, plain: per-head RMS norm and rotary embedding of q and k, then k and v go to the cache.
#include <cmath>

#include "vt/op_checks.h"
#include "vt/ref/cache.h"
#include "vt/ref/kernels.h"

namespace vt {
namespace {

void Normalize(float* x, int head_dim, const float* weight, NormKind kind, float eps) {
  double sum = 0;
  for (int i = 0; i < head_dim; ++i) sum += static_cast<double>(x[i]) * x[i];
  const double inverse = 1 / std::sqrt(sum / head_dim + eps);
  for (int i = 0; i < head_dim; ++i)
    x[i] = static_cast<float>(x[i] * inverse * (kind == NormKind::kRmsOnePlus ? 1.0 + weight[i] : weight[i]));
}

// Pairs are (i, i + dim / 2), or (2i, 2i + 1) when interleaved.
void Rotate(float* x, const RopeTable& rope, int32_t position) {
  for (int i = 0; i < rope.dim / 2; ++i) {
    float& a = x[rope.interleaved ? 2 * i : i];
    float& b = x[rope.interleaved ? 2 * i + 1 : i + rope.dim / 2];
    // The angle is an f32 product, as in the models' own code: at large positions its rounding is part of the result.
    const float angle = static_cast<float>(position) * rope.inverse_frequency[static_cast<size_t>(i)];
    const double cos = std::cos(static_cast<double>(angle)) * rope.attention_factor;
    const double sin = std::sin(static_cast<double>(angle)) * rope.attention_factor;
    const double x0 = a, x1 = b;
    a = static_cast<float>(x0 * cos - x1 * sin);
    b = static_cast<float>(x1 * cos + x0 * sin);
  }
}

}  // namespace

void RefQkNormRopeCacheWrite(const OpArgs& args, KernelContext&) {
  const auto& op = std::get<QkNormRopeCacheWriteOp<Tensor>>(args);
  CheckArgs(op);
  const CacheView cache(op.cache, op.page());
  for (int64_t t = 0; t < op.qkv.shape[0]; ++t) {
    float* row = op.qkv.as<float>() + t * op.qkv.shape[1];
    for (int h = 0; h < op.heads + op.kv_heads; ++h) {
      float* head = row + int64_t{h} * op.head_dim;
      const Tensor& weight = h < op.heads ? op.q_norm : op.k_norm;
      if (weight) Normalize(head, op.head_dim, weight.as<float>(), op.qk_norm, op.eps);
      if (op.rope != nullptr) Rotate(head, *op.rope, op.positions.as<int32_t>()[t]);
    }
    const int32_t slot = op.slots.as<int32_t>()[t];
    if (slot < 0) continue;
    for (int h = 0; h < op.kv_heads; ++h)
      cache.Store(slot, h, row + int64_t{op.heads + h} * op.head_dim,
                  row + int64_t{op.heads + op.kv_heads + h} * op.head_dim);
  }
}

}  // namespace vt
