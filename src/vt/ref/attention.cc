// Dense attention, plain: softmax(scale * q k^T) v of one batch; a causal query sees the keys up to its own, both
// counted from the end.
#include <algorithm>
#include <cmath>
#include <vector>

#include "vt/op_checks.h"
#include "vt/ref/kernels.h"

namespace vt {

void RefAttention(const OpArgs& args, KernelContext&) {
  const auto& op = std::get<AttentionOp<Tensor>>(args);
  CheckArgs(op);
  const int64_t queries = op.q.shape[0], heads = op.q.shape[1], head_dim = op.q.shape[2];
  const int64_t keys = op.k.shape[0], kv_heads = op.k.shape[1];
  std::vector<double> weights(static_cast<size_t>(keys));
  for (int64_t i = 0; i < queries; ++i)
    for (int64_t h = 0; h < heads; ++h) {
      const int64_t visible = op.causal ? keys - queries + i + 1 : keys;
      const float* q = op.q.as<float>() + (i * heads + h) * head_dim;
      const int64_t kv_offset = h / (heads / kv_heads) * head_dim, kv_stride = kv_heads * head_dim;
      double largest = -INFINITY;
      for (int64_t j = 0; j < visible; ++j) {
        const float* k = op.k.as<float>() + j * kv_stride + kv_offset;
        double score = 0;
        for (int64_t c = 0; c < head_dim; ++c) score += static_cast<double>(q[c]) * k[c];
        weights[static_cast<size_t>(j)] = score * op.scale;
        largest = std::max(largest, weights[static_cast<size_t>(j)]);
      }
      double total = 0;
      for (int64_t j = 0; j < visible; ++j)
        total += weights[static_cast<size_t>(j)] = std::exp(weights[static_cast<size_t>(j)] - largest);
      for (int64_t c = 0; c < head_dim; ++c) {
        double sum = 0;
        for (int64_t j = 0; j < visible; ++j)
          sum += weights[static_cast<size_t>(j)] * op.v.as<float>()[j * kv_stride + kv_offset + c];
        op.out.as<float>()[(i * heads + h) * head_dim + c] = static_cast<float>(sum / total);
      }
    }
}

}  // namespace vt
