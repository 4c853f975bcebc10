// QkNormRopeCacheWrite on the CPU: per token one set of cosines and sines for all heads; tokens are split over workers.
#include "base/check.h"
#include "vt/cpu/isa_table.h"
#include "vt/cpu/kernels.h"
#include "vt/op_checks.h"

namespace vt {

void CpuQkNormRopeCacheWrite(const OpArgs& args, KernelContext& context) {
  const auto& op = std::get<QkNormRopeCacheWriteOp<Tensor>>(args);
  CheckArgs(op);
  QkRows rows{.qkv = op.qkv.as<float>(),
              .qkv_stride = op.qkv.shape[1],
              .q_norm = op.q_norm.as<float>(),
              .k_norm = op.k_norm.as<float>(),
              .one_plus = op.qk_norm == NormKind::kRmsOnePlus,
              .eps = op.eps,
              .heads = op.heads,
              .kv_heads = op.kv_heads,
              .head_dim = op.head_dim,
              .positions = op.positions.as<int32_t>(),
              .slots = op.slots.as<int32_t>(),
              .kv = KvPlacesOf(op.cache, op.page())};
  if (op.rope != nullptr) {
    CHECK(op.rope->dim <= kMaxRopeDim, "rope of ", op.rope->dim, " elements; at most ", kMaxRopeDim);
    rows.rope_dim = op.rope->dim;
    rows.interleaved = op.rope->interleaved;
    rows.attention_factor = op.rope->attention_factor;
    rows.inverse_frequency = op.rope->inverse_frequency.data();
  }
  const RowKernels& kernels = RowKernelsOf(context);
  ForRows(context, op.qkv.shape[0], op.qkv.shape[1],
          [&](int64_t begin, int64_t end) { kernels.qk_norm_rope_cache_write(rows, begin, end); });
}

}  // namespace vt
