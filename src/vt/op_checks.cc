// Preconditions of the ops that every provider shares: shapes, dtypes and the values of metadata.
#include "vt/op_checks.h"

#include <algorithm>

#include "base/check.h"
#include "vt/weight.h"

namespace vt {
namespace {

// A contiguous tensor of this type and shape.
void CheckTensor(const char* name, const Tensor& tensor, DType dtype, std::initializer_list<int64_t> shape) {
  CHECK(tensor.data != nullptr || tensor.elements() == 0, name, " is absent");
  CHECK(tensor.dtype == dtype, name, " is ", DTypeName(tensor.dtype), ", not ", DTypeName(dtype));
  CHECK(tensor.rank == shape.size(), name, " has rank ", static_cast<int>(tensor.rank), ", not ", shape.size());
  int i = 0;
  for (int64_t size : shape) {
    CHECK(tensor.shape[i] == size, name, " dimension ", i, " is ", tensor.shape[i], ", not ", size);
    ++i;
  }
  CHECK(tensor.is_contiguous(), name, " is not contiguous");
}

void CheckRank(const char* name, const Tensor& tensor, int rank) {
  CHECK(tensor.rank == rank, name, " has rank ", static_cast<int>(tensor.rank), ", not ", rank);
}

void CheckWeight(const PackedWeight* weight, int64_t n, int64_t k) {
  CHECK(weight != nullptr, "no weight");
  CHECK(weight->n == n && weight->k == k, "weight is [", weight->n, ", ", weight->k, "], not [", n, ", ", k, "]");
  int64_t rows = 0;
  for (const Segment& segment : weight->segments) rows += segment.n;
  CHECK(rows == n, "segments hold ", rows, " rows of ", n);
}

void CheckCache(const Tensor& cache, const KvPage& page) {
  switch (page.dtype) {
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
    case DType::kI8:
    case DType::kF8E4M3:
    case DType::kF8E5M2:
      break;
    default:
      CHECK(false, "the cache holds ", DTypeName(page.dtype));
  }
  CHECK(page.block_size > 0 && page.block_size % KvPage::kUnit == 0, "block size ", page.block_size, "; a multiple of ",
        KvPage::kUnit);
  CHECK(page.head_dim % 2 == 0, "head_dim ", page.head_dim, "; an even number");
  CheckRank("cache", cache, 2);
  CheckTensor("cache", cache, DType::kU8, {cache.shape[0], page.bytes()});
}

void CheckHeads(int heads, int kv_heads, int head_dim) {
  CHECK(heads > 0 && kv_heads > 0 && heads % kv_heads == 0, heads, " heads, ", kv_heads, " kv heads");
  CHECK(head_dim > 0, "head_dim ", head_dim);
}

// Values of [begin, end) of every entry of an i32 vector.
void CheckValues(const char* name, const Tensor& tensor, int64_t begin, int64_t end) {
  const int32_t* values = tensor.as<int32_t>();
  for (int64_t i = 0; i < tensor.shape[0]; ++i)
    CHECK(values[i] >= begin && values[i] < end, name, "[", i, "] is ", values[i], ", outside [", begin, ", ", end,
          ")");
}

}  // namespace

void CheckArgs(const EmbedOp<Tensor>& op) {
  CheckRank("out", op.out, 2);
  CheckTensor("out", op.out, DType::kF32, {op.out.shape[0], op.out.shape[1]});
  CheckTensor("ids", op.ids, DType::kI32, {op.out.shape[0]});
  CHECK(op.weight != nullptr, "no weight");
  CheckWeight(op.weight, op.weight->n, op.out.shape[1]);
  CheckValues("ids", op.ids, 0, op.weight->n);
}

void CheckArgs(const AddNormOp<Tensor>& op) {
  CheckRank("residual", op.residual, 2);
  const int64_t rows = op.residual.shape[0], columns = op.residual.shape[1];
  CheckTensor("residual", op.residual, DType::kF32, {rows, columns});
  if (op.branch) CheckTensor("branch", op.branch, DType::kF32, {rows, columns});
  if (op.branch_weight) CheckTensor("branch_weight", op.branch_weight, DType::kF32, {columns});
  if (op.weight) CheckTensor("weight", op.weight, DType::kF32, {columns});
  if (op.out) CheckTensor("out", op.out, DType::kF32, {rows, columns});
  CHECK(static_cast<bool>(op.branch_weight) == (op.branch_norm != NormKind::kNone),
        "branch_weight and branch_norm must come together");
  CHECK(!op.weight || op.norm != NormKind::kNone, "weight without a norm");
}

void CheckArgs(const LinearOp<Tensor>& op) {
  CheckRank("x", op.x, 2);
  CheckRank("out", op.out, 2);
  const int64_t rows = op.x.shape[0];
  CheckTensor("x", op.x, DType::kF32, {rows, op.x.shape[1]});
  CheckTensor("out", op.out, DType::kF32, {rows, op.out.shape[1]});
  if (op.bias) CheckTensor("bias", op.bias, DType::kF32, {op.out.shape[1]});
  CheckWeight(op.weight, op.out.shape[1], op.x.shape[1]);
}

void CheckArgs(const QkNormRopeCacheWriteOp<Tensor>& op) {
  CheckHeads(op.heads, op.kv_heads, op.head_dim);
  CheckRank("qkv", op.qkv, 2);
  const int64_t tokens = op.qkv.shape[0];
  CheckTensor("qkv", op.qkv, DType::kF32, {tokens, int64_t{op.heads + 2 * op.kv_heads} * op.head_dim});
  CheckTensor("positions", op.positions, DType::kI32, {tokens});
  CheckTensor("slots", op.slots, DType::kI32, {tokens});
  if (op.q_norm) CheckTensor("q_norm", op.q_norm, DType::kF32, {op.head_dim});
  if (op.k_norm) CheckTensor("k_norm", op.k_norm, DType::kF32, {op.head_dim});
  CHECK((op.q_norm || op.k_norm) == (op.qk_norm != NormKind::kNone), "qk_norm and its weights must come together");
  CheckCache(op.cache, op.page());
  CheckValues("positions", op.positions, 0, INT32_MAX);
  CheckValues("slots", op.slots, INT32_MIN, op.cache.shape[0] * op.block_size);
  if (op.rope == nullptr) return;
  CHECK(op.rope->dim >= 0 && op.rope->dim % 2 == 0 && op.rope->dim <= op.head_dim, "rope of ", op.rope->dim,
        " elements, head_dim ", op.head_dim);
  CHECK(op.rope->inverse_frequency.size() == static_cast<size_t>(op.rope->dim / 2), "rope holds ",
        op.rope->inverse_frequency.size(), " frequencies for ", op.rope->dim, " elements");
}

void CheckArgs(const PagedAttentionOp<Tensor>& op) {
  CheckHeads(op.heads, op.kv_heads, op.head_dim);
  CHECK(op.window >= 0 && op.softcap >= 0, "window ", op.window, ", softcap ", op.softcap);
  CheckRank("qkv", op.qkv, 2);
  CheckRank("block_table", op.block_table, 2);
  const int64_t tokens = op.qkv.shape[0], sequences = op.block_table.shape[0];
  CheckTensor("qkv", op.qkv, DType::kF32, {tokens, int64_t{op.heads + 2 * op.kv_heads} * op.head_dim});
  CheckTensor("out", op.out, DType::kF32, {tokens, int64_t{op.heads} * op.head_dim});
  CheckTensor("cu_q", op.cu_q, DType::kI32, {sequences + 1});
  CheckTensor("seq_len", op.seq_len, DType::kI32, {sequences});
  CheckTensor("block_table", op.block_table, DType::kI32, {sequences, op.block_table.shape[1]});
  CheckCache(op.cache, op.page());
  const int32_t* cu_q = op.cu_q.as<int32_t>();
  const int32_t* seq_len = op.seq_len.as<int32_t>();
  const int64_t block_size = op.block_size, row_blocks = op.block_table.shape[1];
  CHECK(cu_q[0] == 0 && cu_q[sequences] <= tokens, "cu_q spans [", cu_q[0], ", ", cu_q[sequences], ") of ", tokens);
  for (int64_t s = 0; s < sequences; ++s) {
    const int64_t queries = cu_q[s + 1] - cu_q[s];
    CHECK(queries >= 0 && queries <= seq_len[s], "sequence ", s, " of ", seq_len[s], " has ", queries, " queries");
    if (queries == 0) continue;
    const int64_t first = op.window > 0 ? std::max<int64_t>(0, seq_len[s] - queries - op.window + 1) : 0;
    CHECK(seq_len[s] <= row_blocks * block_size, "sequence ", s, " of ", seq_len[s], " has ", row_blocks, " blocks");
    const int32_t* blocks = op.block_table.as<int32_t>() + s * row_blocks;
    for (int64_t b = first / block_size; b * block_size < seq_len[s]; ++b)
      CHECK(blocks[b] >= 0 && blocks[b] < op.cache.shape[0], "block_table[", s, "][", b, "] is ", blocks[b], " of ",
            op.cache.shape[0]);
  }
}

void CheckArgs(const GatedActOp<Tensor>& op) {
  CheckRank("out", op.out, 2);
  CheckTensor("out", op.out, DType::kF32, {op.out.shape[0], op.out.shape[1]});
  CheckTensor("x", op.x, DType::kF32, {op.out.shape[0], 2 * op.out.shape[1]});
}

void CheckArgs(const GatherRowsOp<Tensor>& op) {
  CheckRank("x", op.x, 2);
  CheckRank("indices", op.indices, 1);
  CheckTensor("x", op.x, DType::kF32, {op.x.shape[0], op.x.shape[1]});
  CheckTensor("indices", op.indices, DType::kI32, {op.indices.shape[0]});
  CheckTensor("out", op.out, DType::kF32, {op.indices.shape[0], op.x.shape[1]});
  CheckValues("indices", op.indices, 0, op.x.shape[0]);
}

void CheckArgs(const SoftcapOp<Tensor>& op) {
  CheckRank("x", op.x, 2);
  CheckTensor("x", op.x, DType::kF32, {op.x.shape[0], op.x.shape[1]});
  CHECK(op.cap >= 0, "cap ", op.cap);
}

void CheckArgs(const RowMaxOp<Tensor>& op) {
  CheckRank("x", op.x, 2);
  const int64_t rows = op.x.shape[0], columns = op.x.shape[1];
  CHECK(columns > 0, "rows without columns have no maximum");
  CheckTensor("x", op.x, DType::kF32, {rows, columns});
  CheckTensor("max", op.max, DType::kF32, {rows});
  CheckTensor("index", op.index, DType::kI32, {rows});
}

void CheckArgs(const LinearRowMaxOp<Tensor>& op) {
  CheckArgs(LinearOp<Tensor>{.x = op.x, .out = op.out, .bias = op.bias, .weight = op.weight});
  CheckArgs(RowMaxOp<Tensor>{.x = op.out, .max = op.max, .index = op.index});
}

void CheckArgs(const AttentionOp<Tensor>& op) {
  CheckRank("q", op.q, 3);
  CheckRank("k", op.k, 3);
  const int64_t queries = op.q.shape[0], heads = op.q.shape[1], head_dim = op.q.shape[2];
  const int64_t keys = op.k.shape[0], kv_heads = op.k.shape[1];
  CHECK(kv_heads > 0 && heads % kv_heads == 0, heads, " heads, ", kv_heads, " kv heads");
  CheckTensor("q", op.q, DType::kF32, {queries, heads, head_dim});
  CheckTensor("k", op.k, DType::kF32, {keys, kv_heads, head_dim});
  CheckTensor("v", op.v, DType::kF32, {keys, kv_heads, head_dim});
  CheckTensor("out", op.out, DType::kF32, {queries, heads, head_dim});
  CHECK(keys > 0 && (!op.causal || queries <= keys), queries, " queries, ", keys, " keys");
}

}  // namespace vt
