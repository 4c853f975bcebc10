// Row kernels per instruction set: plain structs and function tables, so that their units see no library code.
#pragma once
#include <cstdint>

#include "vt/cpu/kv_places.h"

namespace vt {

// Rotated elements of a head at most; the units hold a token's cosines and sines on the stack.
inline constexpr int kMaxRopeDim = 512;

// One AddNorm over rows of `columns` floats; pointers of absent operands are null.
struct AddNormRows {
  float* residual = nullptr;
  const float* branch = nullptr;
  const float* branch_weight = nullptr;
  const float* weight = nullptr;
  float* out = nullptr;
  int64_t columns = 0;
  bool branch_one_plus = false, one_plus = false;
  float branch_eps = 0, eps = 0, scale = 1;
};

// One QkNormRopeCacheWrite; strides are in elements.
struct QkRows {
  float* qkv = nullptr;
  int64_t qkv_stride = 0;
  const float* q_norm = nullptr;
  const float* k_norm = nullptr;
  bool one_plus = false;
  float eps = 0;
  int heads = 0, kv_heads = 0, head_dim = 0;
  int rope_dim = 0;
  bool interleaved = false;
  float attention_factor = 1;
  const float* inverse_frequency = nullptr;
  const int32_t* positions = nullptr;
  const int32_t* slots = nullptr;
  KvPlaces kv = {};
};

// A maximum and the lowest place that holds it; NaN and -1 where one element is NaN.
struct MaxAt {
  float value = 0;
  int32_t index = -1;
};

enum class RowActivation : int8_t { kSilu, kGeluTanh };

// All noexcept and thread-safe on disjoint rows; a row's result depends on that row alone.
struct RowKernels {
  void (*add_norm)(const AddNormRows& rows, int64_t begin, int64_t end) = nullptr;
  void (*qk_norm_rope_cache_write)(const QkRows& rows, int64_t begin, int64_t end) = nullptr;
  // out[i] = act(gate[i]) * up[i]
  void (*gated_act)(RowActivation act, const float* gate, const float* up, float* out, int64_t n) = nullptr;
  // x[i] = cap * tanh(x[i] * scale / cap); cap 0: x[i] *= scale
  void (*softcap)(float* x, int64_t n, float scale, float cap) = nullptr;
  // Of x[0, n), n > 0.
  MaxAt (*row_max)(const float* x, int64_t n) = nullptr;
};

extern const RowKernels kRowKernelsAvx2;
extern const RowKernels kRowKernelsAvx512;

}  // namespace vt
