// The op vocabulary: one struct per op, over plan values (OpNode) or over tensors (OpArgs), and the table of kernels.
//
// Each struct lists its operands for ForEach, and copies its plain fields to another operand type by WithoutOperands.
// All activations are f32 [rows, columns], contiguous. Metadata is i32. Shapes below: T tokens of the step, R rows that
// need logits, S sequences of the step, B blocks of a sequence at most.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "vt/device.h"
#include "vt/kv_page.h"
#include "vt/numerics.h"
#include "vt/tensor.h"

namespace vt {

struct PackedWeight;

// Numbers are part of the statistics that users read; 18 and 21 are fixed.
enum class OpId : int16_t {
  kEmbed = 1,
  kAddNorm = 2,
  kLinear = 3,
  kQkNormRopeCacheWrite = 4,
  kPagedAttention = 5,
  kGatedAct = 6,
  kGatherRows = 7,
  kSoftcap = 8,
  kRowMax = 9,
  kLinearRowMax = 10,
  kAttention = 18,
  kAttentionCross = 19,
  kAttentionDenseFast = 20,
  kAttentionDenseFlash = 21,
  kAttentionDenseFa2 = 22,
};
static_assert(static_cast<int>(OpId::kAttention) == 18 && static_cast<int>(OpId::kAttentionDenseFlash) == 21);

std::string_view OpName(OpId op);

enum class NormKind : int8_t { kNone, kRms, kRmsOnePlus };
enum class Activation : int8_t { kSilu, kGeluTanh, kGelu };

// Rotary embedding of one layer as a table: angle(position, i) = position * inverse_frequency[i]; cos and sin are
// scaled by attention_factor (YaRN). Host data, built with the plan.
struct RopeTable {
  int dim = 0;  // rotated elements of a head; 0: none
  bool interleaved = false;
  float attention_factor = 1;
  std::vector<float> inverse_frequency = {};  // [dim / 2]
};

// x[T, D] = embedding row of each id, times scale. `weight` is [vocab, D] in any format.
template <class V>
struct EmbedOp {
  static constexpr OpId kId = OpId::kEmbed;
  V ids = {};  // i32 [T]
  V out = {};  // f32 [T, D]
  const PackedWeight* weight = nullptr;
  float scale = 1;
  template <class F>
  void ForEach(F&& f) {
    f(ids), f(out);
  }
  template <class W>
  EmbedOp<W> WithoutOperands() const {
    return {.weight = weight, .scale = scale};
  }
};

// residual += scale * norm_b(branch); out = norm_a(residual). `branch` may be absent (first norm of the model), then
// residual is only read; `out` may be absent (nothing reads the norm, as before a tap). RMS over the row, eps as given.
template <class V>
struct AddNormOp {
  static constexpr OpId kId = OpId::kAddNorm;
  V residual = {};       // f32 [rows, D], updated in place
  V branch = {};         // f32 [rows, D], optional
  V branch_weight = {};  // f32 [D], optional: norm_b, applied to the branch before the add (sandwich norms)
  V weight = {};         // f32 [D]: norm_a; absent: out = residual
  V out = {};            // f32 [rows, D], optional
  NormKind branch_norm = NormKind::kNone;
  NormKind norm = NormKind::kRms;
  float branch_eps = 1e-6f, eps = 1e-6f, scale = 1;
  template <class F>
  void ForEach(F&& f) {
    f(residual), f(branch), f(branch_weight), f(weight), f(out);
  }
  template <class W>
  AddNormOp<W> WithoutOperands() const {
    return {.branch_norm = branch_norm, .norm = norm, .branch_eps = branch_eps, .eps = eps, .scale = scale};
  }
};

// out[rows, n] = x[rows, k] * W^T (+ bias).
template <class V>
struct LinearOp {
  static constexpr OpId kId = OpId::kLinear;
  V x = {};
  V out = {};
  V bias = {};  // f32 [n], optional
  const PackedWeight* weight = nullptr;
  template <class F>
  void ForEach(F&& f) {
    f(x), f(out), f(bias);
  }
  template <class W>
  LinearOp<W> WithoutOperands() const {
    return {.weight = weight};
  }
};

// qkv[T, (H + 2 * KV) * d] in place: optional per-head RMS norm of q and k, rotary embedding of q and k, then k and v
// are written to the cache at slot[t] (a slot below 0 writes nothing), rounded to nearest even. 8-bit floats saturate.
// i8: scale = max(largest magnitude / 127, 1e-6), codes round half away from zero. A NaN of k or v (and an infinity,
// with i8) makes the token's key NaN, so that whoever sees it notices.
template <class V>
struct QkNormRopeCacheWriteOp {
  static constexpr OpId kId = OpId::kQkNormRopeCacheWrite;
  V qkv = {};        // f32 [T, (heads + 2 * kv_heads) * head_dim]
  V q_norm = {};     // f32 [head_dim], optional
  V k_norm = {};     // f32 [head_dim], optional
  V positions = {};  // i32 [T]
  V slots = {};      // i32 [T]: block * block_size + offset
  V cache = {};      // u8 [blocks, page bytes]: see KvPage
  DType kv_dtype = DType::kBF16;
  int block_size = 0, heads = 0, kv_heads = 0, head_dim = 0;
  NormKind qk_norm = NormKind::kNone;
  float eps = 1e-6f;
  const RopeTable* rope = nullptr;  // optional
  template <class F>
  void ForEach(F&& f) {
    f(qkv), f(q_norm), f(k_norm), f(positions), f(slots), f(cache);
  }
  template <class W>
  QkNormRopeCacheWriteOp<W> WithoutOperands() const {
    return {.kv_dtype = kv_dtype,
            .block_size = block_size,
            .heads = heads,
            .kv_heads = kv_heads,
            .head_dim = head_dim,
            .qk_norm = qk_norm,
            .eps = eps,
            .rope = rope};
  }
  KvPage page() const { return {kv_dtype, block_size, kv_heads, head_dim}; }
};

// Causal attention of the step's queries over the paged cache. Query t of sequence s (cu_q[s] <= t < cu_q[s + 1])
// stands at position seq_len[s] - cu_q[s + 1] + t and sees positions (p - window, p]; window 0 sees all up to p. scores
// = softcap(q . k * scale).
template <class V>
struct PagedAttentionOp {
  static constexpr OpId kId = OpId::kPagedAttention;
  V qkv = {};          // f32 [T, (heads + 2 * kv_heads) * head_dim]; q is the first heads * head_dim columns
  V cache = {};        // as above
  V cu_q = {};         // i32 [S + 1]
  V seq_len = {};      // i32 [S]: tokens of the sequence after this step
  V block_table = {};  // i32 [S, B]
  V out = {};          // f32 [T, heads * head_dim]
  DType kv_dtype = DType::kBF16;
  int block_size = 0, heads = 0, kv_heads = 0, head_dim = 0, window = 0;
  float scale = 0, softcap = 0;
  template <class F>
  void ForEach(F&& f) {
    f(qkv), f(cache), f(cu_q), f(seq_len), f(block_table), f(out);
  }
  template <class W>
  PagedAttentionOp<W> WithoutOperands() const {
    return {.kv_dtype = kv_dtype,
            .block_size = block_size,
            .heads = heads,
            .kv_heads = kv_heads,
            .head_dim = head_dim,
            .window = window,
            .scale = scale,
            .softcap = softcap};
  }
  KvPage page() const { return {kv_dtype, block_size, kv_heads, head_dim}; }
};

// out[T, n] = act(x[:, :n]) * x[:, n:].
template <class V>
struct GatedActOp {
  static constexpr OpId kId = OpId::kGatedAct;
  V x = {};    // f32 [T, 2 n]: gate, then up
  V out = {};  // f32 [T, n]
  Activation act = Activation::kSilu;
  template <class F>
  void ForEach(F&& f) {
    f(x), f(out);
  }
  template <class W>
  GatedActOp<W> WithoutOperands() const {
    return {.act = act};
  }
};

// out[R, D] = x[indices[r], :].
template <class V>
struct GatherRowsOp {
  static constexpr OpId kId = OpId::kGatherRows;
  V x = {};
  V indices = {};  // i32 [R]
  V out = {};
  template <class F>
  void ForEach(F&& f) {
    f(x), f(indices), f(out);
  }
  template <class W>
  GatherRowsOp<W> WithoutOperands() const {
    return {};
  }
};

// x = cap * tanh(x * scale / cap) in place; cap 0: x *= scale.
template <class V>
struct SoftcapOp {
  static constexpr OpId kId = OpId::kSoftcap;
  V x = {};
  float scale = 1, cap = 0;
  template <class F>
  void ForEach(F&& f) {
    f(x);
  }
  template <class W>
  SoftcapOp<W> WithoutOperands() const {
    return {.scale = scale, .cap = cap};
  }
};

// The first pass of sampling: max[r] is the largest element of x[r, :] and index[r] the lowest column that holds it;
// NaN and -1 for a row that holds a NaN.
template <class V>
struct RowMaxOp {
  static constexpr OpId kId = OpId::kRowMax;
  V x = {};      // f32 [rows, n], n > 0
  V max = {};    // f32 [rows]
  V index = {};  // i32 [rows]
  template <class F>
  void ForEach(F&& f) {
    f(x), f(max), f(index);
  }
  template <class W>
  RowMaxOp<W> WithoutOperands() const {
    return {};
  }
};

// A linear and the RowMax of its output in one: the output is looked through while it is in the caches.
template <class V>
struct LinearRowMaxOp {
  static constexpr OpId kId = OpId::kLinearRowMax;
  V x = {};
  V out = {};
  V bias = {};   // f32 [n], optional
  V max = {};    // f32 [rows]
  V index = {};  // i32 [rows]
  const PackedWeight* weight = nullptr;
  template <class F>
  void ForEach(F&& f) {
    f(x), f(out), f(bias), f(max), f(index);
  }
  template <class W>
  LinearRowMaxOp<W> WithoutOperands() const {
    return {.weight = weight};
  }
};

// Dense attention, correctness grade and frozen: out = softmax(scale * q k^T [+ causal mask]) v, one batch.
// kAttentionDenseFast, kAttentionDenseFlash and kAttentionDenseFa2 take the same arguments.
template <class V>
struct AttentionOp {
  static constexpr OpId kId = OpId::kAttention;
  V q = {};    // f32 [queries, heads, head_dim]
  V k = {};    // f32 [keys, kv_heads, head_dim]
  V v = {};    // f32 [keys, kv_heads, head_dim]
  V out = {};  // f32 [queries, heads, head_dim]
  float scale = 0;
  bool causal = false;
  template <class F>
  void ForEach(F&& f) {
    f(q), f(k), f(v), f(out);
  }
  template <class W>
  AttentionOp<W> WithoutOperands() const {
    return {.scale = scale, .causal = causal};
  }
};

template <class V>
using OpOver =
    std::variant<EmbedOp<V>, AddNormOp<V>, LinearOp<V>, QkNormRopeCacheWriteOp<V>, PagedAttentionOp<V>, GatedActOp<V>,
                 GatherRowsOp<V>, SoftcapOp<V>, RowMaxOp<V>, LinearRowMaxOp<V>, AttentionOp<V>>;

// A resolved op: every operand a Tensor; absent operands have null data.
using OpArgs = OpOver<Tensor>;

// What a kernel runs with: the numeric policy, the machine, and the worker threads.
class KernelContext;

using KernelFn = void (*)(const OpArgs& args, KernelContext& context);

// One provider's kernel of one op on one device.
struct OpKernel {
  OpId op = OpId::kEmbed;
  DeviceType device = DeviceType::kCpu;
  std::string_view provider = {};  // "ref", "cpu"
  KernelFn run = nullptr;
  std::atomic<uint64_t>* executed = nullptr;  // set by RegisterOp: the table's counter
};

// The explicit list of a provider, so that a static library cannot drop it. First kernel registered for (op, device)
// wins.
void RegisterOp(const OpKernel& kernel);
bool OpRegistered(OpId op, DeviceType device);
// Null when nothing is registered. Counts a choice, and announces the first with `op=<id> device=<id>` when stats are
// on.
const OpKernel* FindOp(OpId op, DeviceType device);

struct OpProviderStats {
  OpId op = OpId::kEmbed;
  DeviceType device = DeviceType::kCpu;
  std::string provider;
  uint64_t chosen = 0, executed = 0;
};
// Snapshot of all registered ops. Thread-safe.
std::vector<OpProviderStats> GetOpProviderStats();
void ResetOpProviderStats();
// Announces first selections on stderr (VT_OP_PROVIDER_STATS=1).
void SetOpProviderAnnouncements(bool on);
// Called by queues as they run a kernel. Thread-safe.
inline void CountExecution(const OpKernel& kernel) {
  if (kernel.executed) kernel.executed->fetch_add(1, std::memory_order_relaxed);
}

// Bounds of the dense flash rung's shared-memory tile: 2 * kAttentionDenseFlashTileCols * head_dim * elem bytes must
// fit 48 KiB.
inline constexpr int64_t kAttentionDenseFlashTileCols = 64;
inline constexpr int64_t kAttentionDenseMaxHeadDim = 256;
inline constexpr int64_t kAttentionSmemBytes = 49152;
int64_t AttentionDenseFlashSmemBytes(int64_t head_dim, int64_t elem);
// Largest head_dim whose tile fits, at most kAttentionDenseMaxHeadDim.
int64_t AttentionDenseFlashMaxHeadDim(int64_t elem);

class Queue;
// Runs the naive op on the queue's device. Callers outside vt carry a `VT-ATTN-NAIVE:` reason.
void Attention(Queue& queue, DeviceType device, const AttentionOp<Tensor>& args);
// The flash rung; refuses head_dim above the bound, naming it and vt::AttentionDenseFast, before anything is launched.
void AttentionDenseFlash(Queue& queue, DeviceType device, const AttentionOp<Tensor>& args);
void AttentionDenseFast(Queue& queue, DeviceType device, const AttentionOp<Tensor>& args);

}  // namespace vt
