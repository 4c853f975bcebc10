// The row kernels over Vec; the unit includes its vec_*.h first and instantiates the table at its end.
//
// Layout: rows of contiguous floats. Work split: the caller hands disjoint rows to workers. Memory traffic: each row is
// read once from the caches and stays in L1 for the second pass that a norm needs.
#pragma once
#include <cstdint>

#include "vt/cpu/kv_write.h"
#include "vt/cpu/row_kernels.h"
#include "vt/cpu/vec_math.h"

namespace vt {
namespace {

// Calls f(i, count) over [0, n): whole vectors with count = Vec::kLanes, then the rest.
template <class F>
inline __attribute__((always_inline)) void ForLanes(int64_t n, F&& f) {
  int64_t i = 0;
  for (; i + Vec::kLanes <= n; i += Vec::kLanes) f(i, Vec::kLanes);
  if (i < n) f(i, n - i);
}

inline Vec::F LoadLanes(const float* p, int64_t count) {
  return count == Vec::kLanes ? Vec::Load(p) : Vec::LoadPart(p, count);
}

inline void StoreLanes(float* p, Vec::F v, int64_t count) {
  if (count == Vec::kLanes) return Vec::Store(p, v);
  Vec::StorePart(p, v, count);
}

// 1 / sqrt(sum / n + eps) in every lane.
inline Vec::F InverseRms(float sum, int64_t n, float eps) {
  const Vec::F mean = Vec::Div(Vec::Set(sum), Vec::Set(static_cast<float>(n)));
  return Vec::Div(Vec::Set(1), Vec::Sqrt(Vec::Add(mean, Vec::Set(eps))));
}

inline Vec::F Gain(const float* weight, int64_t count, bool one_plus) {
  const Vec::F w = LoadLanes(weight, count);
  return one_plus ? Vec::Add(Vec::Set(1), w) : w;
}

float SumOfSquares(const float* x, int64_t n) {
  Vec::F sum = Vec::Zero();
  ForLanes(n, [&](int64_t i, int64_t count) {
    const Vec::F v = LoadLanes(x + i, count);
    sum = Vec::Fma(v, v, sum);
  });
  return Vec::Sum(sum);
}

void AddNorm(const AddNormRows& rows, int64_t begin, int64_t end) {
  const int64_t columns = rows.columns;
  for (int64_t r = begin; r < end; ++r) {
    float* residual = rows.residual + r * columns;
    Vec::F sum = Vec::Zero();
    if (rows.branch != nullptr) {
      const float* branch = rows.branch + r * columns;
      Vec::F factor = Vec::Set(rows.scale);
      if (rows.branch_weight != nullptr)
        factor = Vec::Mul(factor, InverseRms(SumOfSquares(branch, columns), columns, rows.branch_eps));
      ForLanes(columns, [&](int64_t i, int64_t count) {
        Vec::F b = Vec::Mul(LoadLanes(branch + i, count), factor);
        if (rows.branch_weight != nullptr) b = Vec::Mul(b, Gain(rows.branch_weight + i, count, rows.branch_one_plus));
        const Vec::F v = Vec::Add(LoadLanes(residual + i, count), b);
        StoreLanes(residual + i, v, count);
        sum = Vec::Fma(v, v, sum);
      });
    } else if (rows.weight != nullptr) {
      ForLanes(columns, [&](int64_t i, int64_t count) {
        const Vec::F v = LoadLanes(residual + i, count);
        sum = Vec::Fma(v, v, sum);
      });
    }
    if (rows.out == nullptr) continue;
    float* out = rows.out + r * columns;
    if (rows.weight == nullptr) {
      ForLanes(columns, [&](int64_t i, int64_t count) { StoreLanes(out + i, LoadLanes(residual + i, count), count); });
      continue;
    }
    const Vec::F inverse = InverseRms(Vec::Sum(sum), columns, rows.eps);
    ForLanes(columns, [&](int64_t i, int64_t count) {
      const Vec::F v = Vec::Mul(LoadLanes(residual + i, count), inverse);
      StoreLanes(out + i, Vec::Mul(v, Gain(rows.weight + i, count, rows.one_plus)), count);
    });
  }
}

void NormalizeHead(float* x, int64_t n, const float* weight, bool one_plus, float eps) {
  const Vec::F inverse = InverseRms(SumOfSquares(x, n), n, eps);
  ForLanes(n, [&](int64_t i, int64_t count) {
    const Vec::F v = Vec::Mul(LoadLanes(x + i, count), inverse);
    StoreLanes(x + i, Vec::Mul(v, Gain(weight + i, count, one_plus)), count);
  });
}

// Cosines and sines of one position, [rope_dim / 2] each. The angle is an f32 product, as in the models' own code.
void FillRotation(const QkRows& rows, int32_t position, float* cosines, float* sines) {
  const Vec::F p = Vec::Set(static_cast<float>(position)), factor = Vec::Set(rows.attention_factor);
  ForLanes(rows.rope_dim / 2, [&](int64_t i, int64_t count) {
    Vec::F sine, cosine;
    SinCos(Vec::Mul(p, LoadLanes(rows.inverse_frequency + i, count)), sine, cosine);
    StoreLanes(cosines + i, Vec::Mul(cosine, factor), count);
    StoreLanes(sines + i, Vec::Mul(sine, factor), count);
  });
}

void RotateHead(float* x, int64_t half, bool interleaved, const float* cosines, const float* sines) {
  if (interleaved) {
    for (int64_t i = 0; i < half; ++i) {
      const float a = x[2 * i], b = x[2 * i + 1];
      x[2 * i] = a * cosines[i] - b * sines[i];
      x[2 * i + 1] = b * cosines[i] + a * sines[i];
    }
    return;
  }
  ForLanes(half, [&](int64_t i, int64_t count) {
    const Vec::F a = LoadLanes(x + i, count), b = LoadLanes(x + half + i, count);
    const Vec::F c = LoadLanes(cosines + i, count), s = LoadLanes(sines + i, count);
    StoreLanes(x + i, Vec::Fnma(b, s, Vec::Mul(a, c)), count);
    StoreLanes(x + half + i, Vec::Fma(a, s, Vec::Mul(b, c)), count);
  });
}

void QkNormRopeCacheWrite(const QkRows& rows, int64_t begin, int64_t end) {
  float cosines[kMaxRopeDim / 2], sines[kMaxRopeDim / 2];
  for (int64_t t = begin; t < end; ++t) {
    float* row = rows.qkv + t * rows.qkv_stride;
    if (rows.rope_dim > 0) FillRotation(rows, rows.positions[t], cosines, sines);
    for (int h = 0; h < rows.heads + rows.kv_heads; ++h) {
      float* head = row + int64_t{h} * rows.head_dim;
      const float* weight = h < rows.heads ? rows.q_norm : rows.k_norm;
      if (weight != nullptr) NormalizeHead(head, rows.head_dim, weight, rows.one_plus, rows.eps);
      if (rows.rope_dim > 0) RotateHead(head, rows.rope_dim / 2, rows.interleaved, cosines, sines);
    }
    const int64_t slot = rows.slots[t];
    if (slot < 0) continue;
    const float* k = row + int64_t{rows.heads} * rows.head_dim;
    for (int h = 0; h < rows.kv_heads; ++h)
      WriteKv(rows.kv, slot, h, rows.head_dim, k + int64_t{h} * rows.head_dim,
              k + int64_t{rows.kv_heads + h} * rows.head_dim);
  }
}

void GatedAct(RowActivation act, const float* gate, const float* up, float* out, int64_t n) {
  using V = Vec;
  ForLanes(n, [&](int64_t i, int64_t count) {
    const V::F x = LoadLanes(gate + i, count);
    // Both are x / (1 + exp(-u)): u = x, or twice the argument of gelu's tanh.
    V::F u = x;
    if (act == RowActivation::kGeluTanh) {
      const V::F cubic = V::Fma(V::Mul(V::Mul(x, x), x), V::Set(0.044715f), x);
      u = V::Mul(cubic, V::Set(1.5957691216057308f));
    }
    const V::F e = Exp(V::Sub(V::Zero(), u));
    const V::F y = V::Div(x, V::Add(V::Set(1), e));
    StoreLanes(out + i, V::Mul(y, LoadLanes(up + i, count)), count);
  });
}

void Softcap(float* x, int64_t n, float scale, float cap) {
  const Vec::F factor = Vec::Set(cap > 0 ? scale / cap : scale), limit = Vec::Set(cap);
  ForLanes(n, [&](int64_t i, int64_t count) {
    Vec::F v = Vec::Mul(LoadLanes(x + i, count), factor);
    if (cap > 0) v = Vec::Mul(limit, Tanh(v));
    StoreLanes(x + i, v, count);
  });
}

// Calls f(i) for vectors that cover [0, n); the last may overlap the one before it. n >= Vec::kLanes.
template <class F>
inline __attribute__((always_inline)) void ForWholeLanes(int64_t n, F&& f) {
  int64_t i = 0;
  for (; i + Vec::kLanes <= n; i += Vec::kLanes) f(i);
  if (i < n) f(n - Vec::kLanes);
}

MaxAt RowMaxShort(const float* x, int64_t n) {
  MaxAt best = {x[0], 0};
  for (int64_t i = 0; i < n; ++i) {
    if (x[i] != x[i]) return {x[i], -1};
    if (x[i] > best.value) best = {x[i], static_cast<int32_t>(i)};
  }
  return best;
}

// Place of the first element of x[0, n) that equals `value`, which is there; n >= Vec::kLanes.
int64_t PlaceOf(const float* x, int64_t n, float value) {
  const Vec::F wanted = Vec::Set(value);
  int64_t i = 0;
  Vec::M equal = Vec::Equal(Vec::Load(x), wanted);
  while (!Vec::Any(equal)) {
    i = i + 2 * Vec::kLanes <= n ? i + Vec::kLanes : n - Vec::kLanes;
    equal = Vec::Equal(Vec::Load(x + i), wanted);
  }
  return i + Vec::FirstLane(equal);
}

// Keeps only maxima and the block of the largest; that block is then read again for the place.
MaxAt RowMax(const float* x, int64_t n) {
  if (n < Vec::kLanes) return RowMaxShort(x, n);
  constexpr int64_t kBlock = 2048, kStep = 4 * Vec::kLanes;
  Vec::F best = Vec::Set(-__builtin_inff());
  int64_t best_begin = 0, best_count = n < kBlock ? n : kBlock;
  for (int64_t begin = 0; begin < n;) {
    // The rest goes with the last block, so that no block is shorter than a vector.
    const int64_t count = n - begin < 2 * kBlock ? n - begin : kBlock;
    const float* p = x + begin;
    Vec::F m0 = Vec::Load(p), m1 = m0, m2 = m0, m3 = m0;
    Vec::M nan = Vec::Unordered(m0, m0);
    int64_t i = 0;
    for (; i + kStep <= count; i += kStep) {
      const Vec::F a = Vec::Load(p + i), b = Vec::Load(p + i + Vec::kLanes);
      const Vec::F c = Vec::Load(p + i + 2 * Vec::kLanes), d = Vec::Load(p + i + 3 * Vec::kLanes);
      nan = Vec::Or(nan, Vec::Or(Vec::Unordered(a, b), Vec::Unordered(c, d)));
      m0 = Vec::Max(a, m0), m1 = Vec::Max(b, m1), m2 = Vec::Max(c, m2), m3 = Vec::Max(d, m3);
    }
    if (i < count) {
      const int64_t from = count - i < Vec::kLanes ? count - Vec::kLanes : i;
      ForWholeLanes(count - from, [&](int64_t j) {
        const Vec::F a = Vec::Load(p + from + j);
        nan = Vec::Or(nan, Vec::Unordered(a, a));
        m0 = Vec::Max(a, m0);
      });
    }
    if (Vec::Any(nan)) return {__builtin_nanf(""), -1};
    m0 = Vec::Max(Vec::Max(m0, m1), Vec::Max(m2, m3));
    if (Vec::Any(Vec::Greater(m0, best))) {
      best = Vec::Set(Vec::Largest(m0));
      best_begin = begin, best_count = count;
    }
    begin += count;
  }
  const float value = Vec::First(best);
  return {value, static_cast<int32_t>(best_begin + PlaceOf(x + best_begin, best_count, value))};
}

constexpr RowKernels kTable = {AddNorm, QkNormRopeCacheWrite, GatedAct, Softcap, RowMax};

}  // namespace
}  // namespace vt
