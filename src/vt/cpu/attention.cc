// Dense attention on the CPU, correctness grade: one (query, head) at a time, double sums, untiled. Its results are
// frozen: other rungs are compared with it, so it is never made faster.
#include <algorithm>
#include <cmath>

#include "vt/cpu/isa_table.h"
#include "vt/cpu/kernels.h"
#include "vt/op_checks.h"

namespace vt {
namespace {

double Dot(const float* a, const float* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

}  // namespace

void CpuAttention(const OpArgs& args, KernelContext& context) {
  const auto& op = std::get<AttentionOp<Tensor>>(args);
  CheckArgs(op);
  const int64_t queries = op.q.shape[0], heads = op.q.shape[1], head_dim = op.q.shape[2];
  const int64_t keys = op.k.shape[0], kv_heads = op.k.shape[1], kv_stride = kv_heads * head_dim;
  auto attend = [&](int64_t begin, int64_t end, int worker) {
    double* weights = reinterpret_cast<double*>(
        context.Scratch(worker, static_cast<size_t>(keys + head_dim) * sizeof(double)).data());
    double* sums = weights + keys;
    for (int64_t item = begin; item < end; ++item) {
      const int64_t query = item / heads, head = item % heads, kv_offset = head / (heads / kv_heads) * head_dim;
      const int64_t visible = op.causal ? keys - queries + query + 1 : keys;
      double largest = -INFINITY, total = 0;
      for (int64_t j = 0; j < visible; ++j) {
        weights[j] =
            op.scale * Dot(op.q.as<float>() + item * head_dim, op.k.as<float>() + j * kv_stride + kv_offset, head_dim);
        largest = std::max(largest, weights[j]);
      }
      std::fill_n(sums, head_dim, 0.0);
      for (int64_t j = 0; j < visible; ++j) {
        const double weight = std::exp(weights[j] - largest);
        const float* v = op.v.as<float>() + j * kv_stride + kv_offset;
        total += weight;
        for (int64_t c = 0; c < head_dim; ++c) sums[c] += weight * v[c];
      }
      for (int64_t c = 0; c < head_dim; ++c)
        op.out.as<float>()[item * head_dim + c] = static_cast<float>(sums[c] / total);
    }
  };
  const int64_t items = queries * heads;
  if (items * keys * head_dim <= kSerialElements || context.workers == 1) return attend(0, items, 0);
  context.ParallelFor(items, 1 + items / (8 * context.workers), attend);
}

}  // namespace vt
