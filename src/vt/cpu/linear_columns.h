// Columns of a linear in R16 as vectors: where they begin, and their results. Included after simd_*.h and
// linear_formats.h by the unit of each instruction set; everything is internal to that unit.
#pragma once
#include "vt/cpu/linear_kernels.h"
#include "vt/cpu/vec_unroll.h"

namespace {

using vt::LinearPart;

constexpr int kPair = 2;  // vectors of columns of a GEMM's panel
constexpr int kVectorBytes = kLanes * 4;

// One vector of columns: where its blocks begin.
struct Column {
  Bytes head, payload;
  int half;
};
VT_INLINE Column ColumnAt(const LinearPart& part, int64_t vector) {
  const Bytes group = part.groups + vector / kHalves * part.group_bytes;
  const int half = static_cast<int>(vector % kHalves);
  return {group, group + part.head_bytes + half * kVectorBytes, half};
}
VT_INLINE int64_t Vectors(const LinearPart& part) { return (part.columns + kLanes - 1) / kLanes; }

// The vectors of columns from `first` on that few-row kernels sum at once, and those that follow them. Beyond the last
// the first stands once more: its sums are not stored.
template <int kVectors>
struct ColumnSet {
  Column columns[kVectors], next[kVectors];
  VT_INLINE ColumnSet(const LinearPart& part, int64_t first) {
    VT_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      columns[v] = ColumnAt(part, first + v < Vectors(part) ? first + v : first);
      next[v] = ColumnAt(part, first + kVectors + v);
    }
  }
};

VT_INLINE void StoreColumns(const LinearPart& part, int64_t row, int64_t vector, VF sum, bool bias) {
  const int64_t column = vector * kLanes, left = part.columns - column;
  float* y = part.y + row * part.y_stride + column;
  if (left >= kLanes) {
    StoreF(y, bias && part.bias != nullptr ? Add(sum, LoadF(part.bias + column)) : sum);
  } else if (left > 0) {
    const int count = static_cast<int>(left);
    StoreFirst(y, bias && part.bias != nullptr ? Add(sum, LoadFirst(part.bias + column, count)) : sum, count);
  }
}
VT_INLINE VF LoadColumns(const LinearPart& part, int64_t row, int64_t vector) {
  const int64_t column = vector * kLanes, left = part.columns - column;
  const float* y = part.y + row * part.y_stride + column;
  return left >= kLanes ? LoadF(y) : left > 0 ? LoadFirst(y, static_cast<int>(left)) : Zero();
}

// Streams of several columns are too many for hardware prefetchers: each group asks for bytes so far ahead, into the L2
// cache (into L1 measured a fifth slower), with as many heads as go with those payloads.
constexpr int64_t kPayloadAhead = 4096, kHeadAhead = 1024;

template <int kBytes>
VT_INLINE void Prefetch(Bytes from) {
  VT_UNROLL
  for (int at = 0; at < kBytes; at += 64) _mm_prefetch(reinterpret_cast<const char*>(from + at), _MM_HINT_T1);
}

// What is read so far ahead of `at` in a run of `bytes`: beyond its end, the run that the same vector reads next.
VT_INLINE Bytes BytesAhead(Bytes run, int64_t at, int64_t bytes, Bytes next) {
  return at < bytes ? run + at : next + (at - bytes);
}

// The weights of a GEMM's next panel, which tiles fetch into L2 line by line while they compute.
struct Ahead {
  Bytes at, end;
  template <int kLines>
  VT_INLINE void Fetch() {
    if (at >= end) return;
    Prefetch<kLines * 64>(at);
    at += kLines * 64;
  }
};
VT_INLINE Ahead NextPanel(const LinearPart& part, int64_t vector) {
  const Bytes next = ColumnAt(part, vector + kPair).head;
  return {next, next + kPair * part.group_bytes / kHalves};
}

// Two numbers of 16 bits or four of 8.
VT_INLINE VI SplatPair(const void* q) {
  int32_t bits;
  std::memcpy(&bits, q, 4);
  return SplatI(bits);
}

}  // namespace
