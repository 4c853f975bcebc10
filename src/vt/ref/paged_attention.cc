// PagedAttention, plain: each query's scores over its visible keys, softmax, weighted sum of values.
#include <algorithm>
#include <cmath>
#include <vector>

#include "vt/op_checks.h"
#include "vt/ref/cache.h"
#include "vt/ref/kernels.h"

namespace vt {
namespace {

// The keys and values of one head of a sequence from the position `begin` on, [positions, head_dim] each.
struct HeadCache {
  int64_t begin = 0;
  std::vector<float> keys = {}, values = {};

  // Reads the positions [begin, end), found through the sequence's row of the block table.
  HeadCache(const PagedAttentionOp<Tensor>& op, const int32_t* blocks, int64_t kv_head, int64_t from, int64_t end)
      : begin(from) {
    const CacheView cache(op.cache, op.page());
    for (int64_t p = begin; p < end; ++p) {
      const int64_t slot = int64_t{blocks[p / op.block_size]} * op.block_size + p % op.block_size;
      for (int i = 0; i < op.head_dim; ++i) {
        keys.push_back(cache.Load(slot, KvKind::kKey, kv_head, i));
        values.push_back(cache.Load(slot, KvKind::kValue, kv_head, i));
      }
    }
  }
};

// One head of one query over the keys [first, last] of its sequence.
void Attend(const PagedAttentionOp<Tensor>& op, const float* q, const HeadCache& cache, int64_t first, int64_t last,
            float* out) {
  std::vector<double> weights;
  double largest = -INFINITY;
  for (int64_t p = first; p <= last; ++p) {
    const float* key = cache.keys.data() + (p - cache.begin) * op.head_dim;
    double score = 0;
    for (int i = 0; i < op.head_dim; ++i) score += static_cast<double>(q[i]) * key[i];
    score *= op.scale;
    if (op.softcap > 0) score = op.softcap * std::tanh(score / op.softcap);
    weights.push_back(score);
    largest = std::max(largest, score);
  }
  double total = 0;
  for (double& weight : weights) total += weight = std::exp(weight - largest);
  std::vector<double> sum(static_cast<size_t>(op.head_dim));
  for (int64_t p = first; p <= last; ++p) {
    const float* value = cache.values.data() + (p - cache.begin) * op.head_dim;
    for (int i = 0; i < op.head_dim; ++i)
      sum[static_cast<size_t>(i)] += weights[static_cast<size_t>(p - first)] * value[i];
  }
  for (int i = 0; i < op.head_dim; ++i) out[i] = static_cast<float>(sum[static_cast<size_t>(i)] / total);
}

}  // namespace

void RefPagedAttention(const OpArgs& args, KernelContext&) {
  const auto& op = std::get<PagedAttentionOp<Tensor>>(args);
  CheckArgs(op);
  const int32_t* cu_q = op.cu_q.as<int32_t>();
  const int group = op.heads / op.kv_heads;
  for (int64_t s = 0; s < op.block_table.shape[0]; ++s) {
    if (cu_q[s] == cu_q[s + 1]) continue;
    const int64_t length = op.seq_len.as<int32_t>()[s], begin = length - cu_q[s + 1] + cu_q[s];
    auto oldest = [&](int64_t position) {
      return op.window > 0 ? std::max<int64_t>(0, position - op.window + 1) : int64_t{0};
    };
    for (int kv_head = 0; kv_head < op.kv_heads; ++kv_head) {
      const HeadCache cache(op, op.block_table.as<int32_t>() + s * op.block_table.shape[1], kv_head, oldest(begin),
                            length);
      for (int64_t t = cu_q[s]; t < cu_q[s + 1]; ++t) {
        const int64_t position = length - cu_q[s + 1] + t;
        for (int h = kv_head * group; h < (kv_head + 1) * group; ++h)
          Attend(op, op.qkv.as<float>() + t * op.qkv.shape[1] + int64_t{h} * op.head_dim, cache, oldest(position),
                 position, op.out.as<float>() + (t * op.heads + h) * op.head_dim);
      }
    }
  }
}

}  // namespace vt
