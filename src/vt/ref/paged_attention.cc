// PagedAttention, plain: each query's scores over its visible keys, softmax, weighted sum of values.
#include <algorithm>
#include <cmath>
#include <vector>

#include "vt/op_checks.h"
#include "vt/ref/cache.h"
#include "vt/ref/kernels.h"

namespace vt {
namespace {

// One head of one query over the keys [first, last] of its sequence, found through the sequence's row of the block
// table.
void Attend(const PagedAttentionOp<Tensor>& op, const float* q, int64_t kv_head, const int32_t* blocks, int64_t first,
            int64_t last, float* out) {
  const int64_t block_size = op.cache.shape[2];
  auto index = [&](int64_t position, int kind) {
    return CacheIndex(op.cache, blocks[position / block_size] * block_size + position % block_size, kind, kv_head);
  };
  std::vector<double> weights;
  double largest = -INFINITY;
  for (int64_t p = first; p <= last; ++p) {
    const int64_t key = index(p, 0);
    double score = 0;
    for (int i = 0; i < op.head_dim; ++i) score += static_cast<double>(q[i]) * LoadCache(op.cache, key + i);
    score *= op.scale;
    if (op.softcap > 0) score = op.softcap * std::tanh(score / op.softcap);
    weights.push_back(score);
    largest = std::max(largest, score);
  }
  double total = 0;
  for (double& weight : weights) total += weight = std::exp(weight - largest);
  std::vector<double> sum(static_cast<size_t>(op.head_dim));
  for (int64_t p = first; p <= last; ++p) {
    const int64_t value = index(p, 1);
    for (int i = 0; i < op.head_dim; ++i)
      sum[static_cast<size_t>(i)] += weights[static_cast<size_t>(p - first)] * LoadCache(op.cache, value + i);
  }
  for (int i = 0; i < op.head_dim; ++i) out[i] = static_cast<float>(sum[static_cast<size_t>(i)] / total);
}

}  // namespace

void RefPagedAttention(const OpArgs& args, KernelContext&) {
  const auto& op = std::get<PagedAttentionOp<Tensor>>(args);
  CheckArgs(op);
  const int32_t* cu_q = op.cu_q.as<int32_t>();
  const int group = op.heads / op.kv_heads;
  for (int64_t s = 0; s < op.block_table.shape[0]; ++s)
    for (int64_t t = cu_q[s]; t < cu_q[s + 1]; ++t) {
      const int64_t position = op.seq_len.as<int32_t>()[s] - cu_q[s + 1] + t;
      const int64_t first = op.window > 0 ? std::max<int64_t>(0, position - op.window + 1) : 0;
      for (int h = 0; h < op.heads; ++h)
        Attend(op, op.qkv.as<float>() + t * op.qkv.shape[1] + int64_t{h} * op.head_dim, h / group,
               op.block_table.as<int32_t>() + s * op.block_table.shape[1], first, position,
               op.out.as<float>() + (t * op.heads + h) * op.head_dim);
    }
}

}  // namespace vt
