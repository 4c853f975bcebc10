// The linear op on integer formats: x rounded to 16 or 8 bits, exact integer sums over a group of weights, f32 sums
// over the groups along k in order. So few rows and many, and all instruction sets, give the same bits. Included after
// linear_columns.h by the unit of each instruction set; everything is internal to that unit.
#pragma once

namespace {

// ------------------------------------------------------------------------------------------------ integers, few rows

constexpr int Log2(int n) { return n <= 1 ? 0 : 1 + Log2(n / 2); }

// Steps of four products of bytes whose sums are exact: pairs of products add up in 16 bits where the instruction set
// has no sums of 32, and x goes down to -128.
constexpr int ByteSteps(int largest_code) { return kNarrowSums ? 32768 / (2 * 128 * largest_code) : 8; }
// Whether kernels of a format multiply bytes.
template <class F>
constexpr bool kMultipliesBytes = ByteSteps(F::kLargest) > 0;
// Of `steps`, how many add up before their sums are widened.
template <class F, vt::XForm kForm>
constexpr int ExactSteps(int steps) {
  return kForm == vt::kXWords || ByteSteps(F::kLargest) > steps ? steps : ByteSteps(F::kLargest);
}

// What sums of bytes start from, and what they amount to, so that `sum` is added once.
VT_INLINE VI FirstBytes(VI sum) { return kNarrowSums ? ZeroI() : sum; }
VT_INLINE VI AddedBytes(VI sum, VI bytes) { return kNarrowSums ? Dot(sum, bytes, SplatI(0x00010001)) : bytes; }
// The same for a row of x in two planes.
VT_INLINE VI AddedPlanes(VI sum, VI high, VI low) {
  if (kNarrowSums) return Dot(Dot(sum, low, SplatI(0x00010001)), high, SplatI(0x01000100));
  return Add32(low, ShiftLeft(high, 8));
}

// The integer products of codes and x over steps [first, first + kSteps) of group g.
template <class F, vt::XForm kForm, int kSteps, int kRows, int kVectors>
VT_INLINE void AddProducts(const LinearPart& part, const Column (&columns)[kVectors], int64_t block, int64_t g,
                           int64_t i, int first, VI (&acc)[kVectors][kRows]) {
  constexpr int kExact = ExactSteps<F, kForm>(kSteps);
  const vt::QuantizedRows& x = part.quantized;
  VT_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    VT_UNROLL
    for (int r = 0; r < kRows; ++r) acc[v][r] = ZeroI();
  }
  VT_UNROLL
  for (int from = first; from < first + kSteps; from += kExact) {
    VI low[kVectors][kRows], high[kVectors][kRows];
    VT_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      VT_UNROLL
      for (int r = 0; r < kRows; ++r) low[v][r] = FirstBytes(acc[v][r]), high[v][r] = ZeroI();
    }
    VT_UNROLL
    for (int s = from; s < from + kExact; ++s) {
      VI codes[kVectors];
      VT_UNROLL
      for (int v = 0; v < kVectors; ++v)
        codes[v] = F::Codes(columns[v].payload + block * F::kPayload * vt::kR16Rows, g, s);
      VT_UNROLL
      for (int r = 0; r < kRows; ++r) {
        const int16_t* words = x.q + r * x.stride + i * 32 + s * 4;
        const int8_t* bytes = reinterpret_cast<const int8_t*>(x.q + r * x.stride) + i * 32 + s * 4;
        const VI first_x = SplatPair(kForm == vt::kXWords ? static_cast<const void*>(words) : bytes);
        const VI second_x = kForm == vt::kXWords    ? SplatPair(words + 2)
                            : kForm == vt::kXPlanes ? SplatPair(bytes + x.stride)
                                                    : ZeroI();
        VT_UNROLL
        for (int v = 0; v < kVectors; ++v) {
          if constexpr (kForm == vt::kXWords) {
            acc[v][r] = Dot(Dot(acc[v][r], And(codes[v], 0x00ff00ffu), first_x), UpperBytes(codes[v]), second_x);
          } else if constexpr (kForm == vt::kXPlanes) {
            high[v][r] = DotBytes(high[v][r], codes[v], first_x);
            low[v][r] = DotBytes(low[v][r], codes[v], second_x);
          } else {
            low[v][r] = DotBytes(low[v][r], codes[v], first_x);
          }
        }
      }
    }
    if constexpr (kForm == vt::kXWords) continue;
    VT_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      VT_UNROLL
      for (int r = 0; r < kRows; ++r) {
        acc[v][r] =
            kForm == vt::kXPlanes ? AddedPlanes(acc[v][r], high[v][r], low[v][r]) : AddedBytes(acc[v][r], low[v][r]);
      }
    }
  }
}

// Adds group g of a block (the i-th 32 weights of the row) to the sums.
template <class F, vt::XForm kForm, int kRows, int kVectors>
VT_INLINE void AddGroup(const LinearPart& part, const Column (&columns)[kVectors], const Column (&next)[kVectors],
                        const typename F::Prepared (&prepared)[kVectors], int64_t block, int g, int64_t i,
                        VF (&sum)[kVectors][kRows]) {
  constexpr int kParts = 32 / F::kGroup, kSteps = F::kGroup / 4;
  const vt::QuantizedRows& x = part.quantized;
  VF d[kVectors][kParts], m[kVectors][kParts];
  constexpr int kGroupBytes = F::kPayload * vt::kR16Rows / (F::kBlock / 32);
  VT_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    if (v % kHalves == 0) {  // the other half lies in the same lines
      Prefetch<kGroupBytes>(
          BytesAhead(columns[v].payload, i * kGroupBytes + kPayloadAhead, part.k / 32 * kGroupBytes, next[v].payload));
    }
    F::Scales(prepared[v], g, d[v], m[v]);
  }
  VT_UNROLL
  for (int p = 0; p < kParts; ++p) {
    VI acc[kVectors][kRows];
    AddProducts<F, kForm, kSteps>(part, columns, block, g, i, p * kSteps, acc);
    if constexpr (F::kCenter > 0) {
      VT_UNROLL
      for (int r = 0; r < kRows; ++r) {
        const int32_t sum16or32 =
            kParts == 1 ? x.sum32[r * (x.stride / 32) + i] : x.sum16[r * (x.stride / 16) + 2 * i + p];
        const VI start = ShiftLeft(SplatI(sum16or32), Log2(F::kCenter));
        VT_UNROLL
        for (int v = 0; v < kVectors; ++v) acc[v][r] = Add32(acc[v][r], start);
      }
    }
    VT_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const VF scale = Splat(x.scale[r * (x.stride / 32) + i]);
      VT_UNROLL
      for (int v = 0; v < kVectors; ++v) sum[v][r] = Fma(Mul(ToFloat(acc[v][r]), scale), d[v][p], sum[v][r]);
      if constexpr (F::kMin) {
        const VF min = Splat(kParts == 1 ? x.min32[r * (x.stride / 32) + i] : x.min16[r * (x.stride / 16) + 2 * i + p]);
        VT_UNROLL
        for (int v = 0; v < kVectors; ++v) sum[v][r] = Fma(min, m[v][p], sum[v][r]);
      }
    }
  }
}

template <class F, vt::XForm kForm, int kRows>
void FewRows(const LinearPart& part) {
  // Bits of groups that lie in the same lines are cheaper to take apart by shifts that the compiler knows, but not with
  // many sums.
  constexpr bool kShiftKnown = kNarrowSums && kRows == 1 && F::kShifts > 1;
  constexpr int kVectors = kShiftKnown ? 2 : FewIntVectors(kRows), kTogether = kShiftKnown ? F::kShifts : 1;
  constexpr int kGroups = F::kBlock / 32;
  const int64_t vectors = Vectors(part), blocks = part.k / F::kBlock;
  for (int64_t first = 0; first < vectors; first += kVectors) {
    const ColumnSet<kVectors> set(part, first);
    const auto& [columns, next] = set;
    VF sum[kVectors][kRows];
    VT_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      VT_UNROLL
      for (int r = 0; r < kRows; ++r) sum[v][r] = Zero();
    }
    for (int64_t b = 0; b < blocks; ++b) {
      typename F::Prepared prepared[kVectors];
      VT_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        const Bytes head = columns[v].head + b * F::kHead * vt::kR16Rows;
        constexpr int kHeadBytes = F::kHead * vt::kR16Rows;
        if (v % kHalves == 0) {
          Prefetch<kHeadBytes>(
              BytesAhead(columns[v].head, b * kHeadBytes + kHeadAhead, blocks * kHeadBytes, next[v].head));
        }
        prepared[v] = F::Prepare(head, columns[v].half);
      }
#pragma GCC unroll 1
      for (int from = 0; from < kGroups; from += kTogether) {
        VT_UNROLL
        for (int g = from; g < from + kTogether; ++g)
          AddGroup<F, kForm, kRows, kVectors>(part, columns, next, prepared, b, g, b * kGroups + g, sum);
      }
    }
    VT_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      VT_UNROLL
      for (int r = 0; r < kRows; ++r) {
        if (r < part.rows) StoreColumns(part, r, first + v, sum[v][r], true);
      }
    }
  }
}

// Some numbers of rows share a kernel: what is compiled is large.
constexpr int MoreRows(vt::XForm form, int rows) {
  const int more = form == vt::kXBytes ? 2 * rows : rows < 4 ? rows + 1 : rows + 2;
  return more < kFewRows ? more : kFewRows;
}

template <class F, vt::XForm kForm, int kRows = 1>
void Few(const LinearPart& part) {
  if (part.rows <= kRows) return FewRows<F, kForm, kRows>(part);
  if constexpr (kRows < kFewRows) Few<F, kForm, MoreRows(kForm, kRows)>(part);
}

// ----------------------------------------------------------------------------------------------------- integers, GEMM

// A chunk of weights of two vectors of columns. For x of 16 bits as 16-bit integers, code - kCenter: for each four of
// k, the even bytes of both vectors, then the odd ones; for x of 8 bits the bytes of the codes. After them d and m of
// each kGroup weights.
struct Panel {
  unsigned char* codes;
  float *d, *m;
};
template <class F, vt::XForm kForm>
void ExpandPanel(const LinearPart& part, int64_t vector, int64_t begin, int64_t end, const Panel& panel) {
  constexpr int kParts = 32 / F::kGroup, kGroups = F::kBlock / 32;
  const VI center = SplatI(F::kCenter << 16 | F::kCenter);
  for (int v = 0; v < kPair; ++v) {
    const int64_t vectors = Vectors(part);
    const Column column = ColumnAt(part, vector + v < vectors ? vector + v : vector);
    unsigned char* codes = panel.codes + v * kVectorBytes;
    float *d_out = panel.d + v * kLanes, *m_out = panel.m + v * kLanes;
    typename F::Prepared prepared;
    for (int64_t i = begin / 32; i < end / 32; ++i) {
      const int64_t block = i / kGroups;
      const int g = static_cast<int>(i % kGroups);
      if (g == 0) prepared = F::Prepare(column.head + block * F::kHead * vt::kR16Rows, column.half);
      VF d[kParts], m[kParts];
      F::Scales(prepared, g, d, m);
      VT_UNROLL
      for (int p = 0; p < kParts; ++p, d_out += kPair * kLanes, m_out += kPair * kLanes) {
        StoreF(d_out, d[p]);
        if constexpr (F::kMin) StoreF(m_out, m[p]);
      }
      VT_UNROLL
      for (int s = 0; s < 8; ++s, codes += kPair * kVectorBytes) {
        const VI bytes = F::Codes(column.payload + block * F::kPayload * vt::kR16Rows, g, s);
        if constexpr (kForm == vt::kXBytes) {
          StoreI(codes, bytes);
          continue;
        }
        StoreI(codes, Sub16(And(bytes, 0x00ff00ffu), center));
        codes += kPair * kVectorBytes;
        StoreI(codes, Sub16(UpperBytes(bytes), center));
      }
    }
  }
}

// Adds kSteps steps to the sums: products of four bytes, or of two 16-bit integers; either way x moves by four bytes.
template <vt::XForm kForm, int kSteps, int kExact, int kRows>
VT_INLINE void TileProducts(Bytes codes, const unsigned char* q, int64_t row_bytes, VI (&acc)[kRows][kPair]) {
  VT_UNROLL
  for (int from = 0; from < kSteps; from += kExact) {
    VI bytes[kRows][kPair];
    VT_UNROLL
    for (int r = 0; r < kRows; ++r) {
      VT_UNROLL
      for (int v = 0; v < kPair; ++v) bytes[r][v] = FirstBytes(acc[r][v]);
    }
    VT_UNROLL
    for (int s = from; s < from + kExact; ++s) {
      VI w[kPair];
      VT_UNROLL
      for (int v = 0; v < kPair; ++v) w[v] = LoadI(codes + (s * kPair + v) * kVectorBytes);
      VT_UNROLL
      for (int r = 0; r < kRows; ++r) {
        const VI values = SplatPair(q + r * row_bytes + s * 4);
        VT_UNROLL
        for (int v = 0; v < kPair; ++v) {
          if constexpr (kForm == vt::kXBytes) {
            bytes[r][v] = DotBytes(bytes[r][v], w[v], values);
          } else {
            acc[r][v] = Dot(acc[r][v], w[v], values);
          }
        }
      }
    }
    if constexpr (kForm != vt::kXBytes) continue;
    VT_UNROLL
    for (int r = 0; r < kRows; ++r) {
      VT_UNROLL
      for (int v = 0; v < kPair; ++v) acc[r][v] = AddedBytes(acc[r][v], bytes[r][v]);
    }
  }
}

template <class F, vt::XForm kForm, int kRows>
VT_INLINE void IntTile(const LinearPart& part, int64_t row, int64_t vector, int64_t begin, int64_t end,
                       const Panel& panel, Ahead& ahead) {
  constexpr int kParts = 32 / F::kGroup, kSteps = F::kGroup / (kForm == vt::kXBytes ? 4 : 2);
  const vt::QuantizedRows& x = part.quantized;
  VF sum[kRows][kPair];
  VT_UNROLL
  for (int r = 0; r < kRows; ++r) {
    VT_UNROLL
    for (int v = 0; v < kPair; ++v) sum[r][v] = begin == 0 ? Zero() : LoadColumns(part, row + r, vector + v);
  }
  const unsigned char* q = reinterpret_cast<const unsigned char*>(x.q + row * x.stride);
  q += kForm == vt::kXBytes ? begin : 2 * begin;
  const float* scales = x.scale + row * (x.stride / 32) + begin / 32;
  const float* mins =
      kParts == 1 ? x.min32 + row * (x.stride / 32) + begin / 32 : x.min16 + row * (x.stride / 16) + begin / 16;
  const int32_t* sums =
      kParts == 1 ? x.sum32 + row * (x.stride / 32) + begin / 32 : x.sum16 + row * (x.stride / 16) + begin / 16;
  Bytes codes = panel.codes;
  const float *d = panel.d, *m = panel.m;
  for (int64_t i = 0; i < (end - begin) / 32; ++i) {
    // Four lines for 32 of k: two tiles fetch a panel of 8 bits.
    ahead.Fetch<4>();
#pragma GCC unroll 1
    for (int p = 0; p < kParts; ++p) {
      VI acc[kRows][kPair];
      VT_UNROLL
      for (int r = 0; r < kRows; ++r) {
        VI start = ZeroI();
        if constexpr (kForm == vt::kXBytes && F::kCenter > 0) {
          start = ShiftLeft(SplatI(sums[r * (x.stride / F::kGroup) + i * kParts + p]), Log2(F::kCenter));
        }
        VT_UNROLL
        for (int v = 0; v < kPair; ++v) acc[r][v] = start;
      }
      TileProducts<kForm, kSteps, ExactSteps<F, kForm>(kSteps)>(codes, q, x.stride * 2, acc);
      codes += kSteps * kPair * kVectorBytes, q += kSteps * 4;
      VT_UNROLL
      for (int r = 0; r < kRows; ++r) {
        const VF scale = Splat(scales[r * (x.stride / 32) + i]);
        VT_UNROLL
        for (int v = 0; v < kPair; ++v) {
          sum[r][v] = Fma(Mul(ToFloat(acc[r][v]), scale), LoadF(d + v * kLanes), sum[r][v]);
        }
        if constexpr (F::kMin) {
          const VF min = Splat(mins[r * (x.stride / F::kGroup) + i * kParts + p]);
          VT_UNROLL
          for (int v = 0; v < kPair; ++v) sum[r][v] = Fma(min, LoadF(m + v * kLanes), sum[r][v]);
        }
      }
      d += kPair * kLanes, m += kPair * kLanes;
    }
  }
  VT_UNROLL
  for (int r = 0; r < kRows; ++r) {
    VT_UNROLL
    for (int v = 0; v < kPair; ++v) StoreColumns(part, row + r, vector + v, sum[r][v], end == part.k);
  }
}

template <class F, vt::XForm kForm, int kRows>
void IntTiles(const LinearPart& part, int64_t row, int64_t vector, int64_t begin, int64_t end, const Panel& panel,
              Ahead& ahead) {
  for (; row + kRows <= part.rows; row += kRows) IntTile<F, kForm, kRows>(part, row, vector, begin, end, panel, ahead);
  if constexpr (kRows > 1) {
    constexpr int kFewer = kRows > 4 ? 4 : kRows > 2 ? 2 : 1;
    if (row < part.rows) IntTiles<F, kForm, kFewer>(part, row, vector, begin, end, panel, ahead);
  }
}

template <class F, vt::XForm kForm>
void Gemm(const LinearPart& part) {
  constexpr int64_t kChunk = vt::kPanelRows;
  const int64_t chunk = part.k < kChunk ? part.k : kChunk;
  float* const d = reinterpret_cast<float*>(part.panel + chunk * 2 * kPair * kLanes);
  const Panel panel = {part.panel, d, d + chunk / F::kGroup * kPair * kLanes};
  for (int64_t vector = 0; vector < Vectors(part); vector += kPair) {
    Ahead ahead = NextPanel(part, vector);
    for (int64_t begin = 0; begin < part.k; begin += kChunk) {
      const int64_t end = begin + kChunk < part.k ? begin + kChunk : part.k;
      ExpandPanel<F, kForm>(part, vector, begin, end, panel);
      IntTiles<F, kForm, kIntTileRows>(part, 0, vector, begin, end, panel, ahead);
    }
  }
}

}  // namespace
