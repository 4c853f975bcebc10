// The BF16 GEMM of the linear op for AMX (flags.cmake compiles this unit for AVX-512 with BF16): integer and BF16
// weights times x, both rounded to BF16, sums in f32.
//
// A panel of columns times a block of rows, one chunk of k after the other. The panel's chunk is expanded to tiles once
// and stays in the L2 cache; 32 rows of x stay in L1 while all columns of the panel pass. The tiles of the next chunk
// are made between the products of this one: the matrix unit leaves the vector units idle.
#include "vt/cpu/simd_avx512.h"
// Order matters: the vocabulary, then what is written in it.
#include "vt/cpu/linear_formats.h"
// Again.
#include "vt/cpu/amx_tiles.h"
#include "vt/cpu/linear_columns.h"

namespace {

// A tile of x is 16 rows of 32 of k; one of weights 16 pairs of k of 16 columns; one of sums 16 rows of 16 columns.
constexpr int64_t kTile = vt::kTileRows, kTileBytes = 1024, kTileRowBytes = 64;
// In tiles: the width of a panel, the depth of a chunk, the height of a block of rows.
constexpr int64_t kWidth = 8, kDepth = 16, kHeight = 32;
constexpr int64_t kChunkBytes = kWidth * kDepth * kTileBytes;
static_assert(2 * kChunkBytes + kHeight * kWidth * kTileBytes == vt::kAmxPanelBytes);

// Makes the tile of a vector of columns' i-th 32 weights.
using Expand = void (*)(const Column& column, int64_t i, unsigned char* tile);

// Two vectors of values as pairs of BF16.
VT_INLINE VI Bf16Pairs(VF first, VF second) {
  alignas(64) static constexpr uint16_t kOrder[32] = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                                      8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  const auto both = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(second, first));
  return _mm512_permutexvar_epi16(LoadI(kOrder), both);
}

template <int kByte>
VT_INLINE VF ByteAsFloat(VI codes) {
  // Shifts and shuffles run on different ports.
  if constexpr (kByte == 0) return ToFloat(And(codes, 255));
  if constexpr (kByte == 3) return ToFloat(ShiftRight(codes, 24));
  return ToFloat(ByteOf(codes, kByte));
}

template <class F>
void ExpandTile(const Column& column, int64_t i, unsigned char* tile) {
  constexpr int kParts = 32 / F::kGroup, kSteps = F::kGroup / 4, kGroups = F::kBlock / 32;
  static_assert(F::kCenter == 0 || !F::kMin);
  const int64_t block = i / kGroups;
  const int g = static_cast<int>(i % kGroups);
  const Bytes payload = column.payload + block * F::kPayload * vt::kR16Rows;
  VF d[kParts], m[kParts];
  F::Scales(F::Prepare(column.head + block * F::kHead * vt::kR16Rows, 0), g, d, m);
  // d * (code - center) as d * code - d * center, whose last term is exact: every center is a power of two.
  static_assert((F::kCenter & (F::kCenter - 1)) == 0);
  if constexpr (!F::kMin) {
    for (int p = 0; p < kParts; ++p) m[p] = Mul(d[p], Splat(-F::kCenter));
  }
#pragma GCC unroll 8
  for (int s = 0; s < 8; ++s, tile += 2 * kTileRowBytes) {
    const VI codes = F::Codes(payload, g, s);
    const VF scale = d[s / kSteps], offset = m[s / kSteps];
    StoreI(tile, Bf16Pairs(Fma(scale, ByteAsFloat<0>(codes), offset), Fma(scale, ByteAsFloat<1>(codes), offset)));
    StoreI(tile + kTileRowBytes,
           Bf16Pairs(Fma(scale, ByteAsFloat<2>(codes), offset), Fma(scale, ByteAsFloat<3>(codes), offset)));
  }
}

// BF16 weights lie in memory as tiles: they are only fetched into L2.
template <>
void ExpandTile<BF16>(const Column& column, int64_t i, unsigned char*) {
  for (int64_t at = 0; at < kTileBytes; at += 64) {
    _mm_prefetch(reinterpret_cast<const char*>(column.payload + i * kTileBytes + at), _MM_HINT_T1);
  }
}

template <class F>
constexpr bool kIsTiles = false;
template <>
constexpr bool kIsTiles<BF16> = true;

// One step of the walk through a part: the first of its vectors of columns, of its rows, of its 32s of k.
struct Step {
  int64_t vector = 0, row = 0, depth = 0;
  bool SameTiles(const Step& other) const { return vector == other.vector && depth == other.depth; }
};

// The tiles of weights of a step, made one by one: spread evenly over `turns` calls of Turn.
struct Expansion {
  Expand expand = nullptr;
  Column columns[kWidth] = {};
  unsigned char* tiles = nullptr;  // [columns][kDepth], unless weights are tiles
  int64_t first = 0, depth = 0, count = 0, turns = 1;
  int64_t done = 0, credit = 0;

  VT_INLINE void Turn() {
    for (credit += count; credit >= turns; credit -= turns) One();
  }
  void One() {
    if (done == count) return;
    const int64_t column = done / depth, i = done % depth;
    expand(columns[column], first + i, tiles + (column * kDepth + i) * kTileBytes);
    ++done;
  }
  void Finish() {
    while (done < count) One();
  }
};

struct Gemm {
  const LinearPart& part;
  Expand expand;
  bool direct;  // weights are tiles
  int64_t vectors = Vectors(part), depth = vt::PaddedK(part.k) / 32;

  int64_t Width(const Step& step) const { return vectors - step.vector < kWidth ? vectors - step.vector : kWidth; }
  int64_t Depth(const Step& step) const { return depth - step.depth < kDepth ? depth - step.depth : kDepth; }
  int64_t Height(const Step& step) const {
    const int64_t left = (part.rows - step.row + kTile - 1) / kTile;
    return left < kHeight ? left : kHeight;
  }
  // False at the end.
  bool Advance(Step& step) const {
    step.depth += kDepth;
    if (step.depth < depth) return true;
    step.depth = 0, step.row += kHeight * kTile;
    if (step.row < part.rows) return true;
    step.row = 0, step.vector += kWidth;
    return step.vector < vectors;
  }

  Expansion ExpansionOf(const Step& step, int buffer, int64_t turns) const {
    Expansion e = {.expand = expand,
                   .columns = {},
                   .tiles = part.panel + buffer * kChunkBytes,
                   .first = step.depth,
                   .depth = Depth(step),
                   .count = Width(step) * Depth(step),
                   .turns = turns};
    for (int64_t v = 0; v < Width(step); ++v) e.columns[v] = ColumnAt(part, step.vector + v);
    return e;
  }
  // The first tile of weights of a vector of columns in a step.
  Bytes Weights(const Step& step, int buffer, int64_t vector) const {
    if (direct) return ColumnAt(part, step.vector + vector).payload + step.depth * kTileBytes;
    return part.panel + buffer * kChunkBytes + vector * kDepth * kTileBytes;
  }
  // Sums that wait for the next chunk.
  unsigned char* Sums(int64_t row_tile, int64_t vector) const {
    return part.panel + 2 * kChunkBytes + (row_tile * kWidth + vector) * kTileBytes;
  }
};

// Begins the sums of a tile: with the bias, or with those of the chunks before.
template <int kSum>
VT_INLINE void BeginSums(const Gemm& gemm, const Step& step, int64_t row_tile, int64_t vector) {
  if (step.depth != 0) return TileLoad<kSum>(gemm.Sums(row_tile, vector), kTileRowBytes);
  if (gemm.part.bias == nullptr) return TileZero<kSum>();
  const int64_t column = (step.vector + vector) * kTile, left = gemm.part.columns - column;
  alignas(64) float bias[kTile];
  StoreF(bias,
         left >= kTile ? LoadF(gemm.part.bias + column) : LoadFirst(gemm.part.bias + column, static_cast<int>(left)));
  TileLoad<kSum>(bias, 0);  // the same for every row
}

template <int kSum>
VT_INLINE void EndSums(const Gemm& gemm, const Step& step, int64_t row_tile, int64_t vector) {
  const LinearPart& part = gemm.part;
  if (step.depth + kDepth < gemm.depth) return TileStore<kSum>(gemm.Sums(row_tile, vector), kTileRowBytes);
  const int64_t column = (step.vector + vector) * kTile, row = step.row + row_tile * kTile;
  if (part.columns - column >= kTile && part.rows - row >= kTile) {
    return TileStore<kSum>(part.y + row * part.y_stride + column, part.y_stride * 4);
  }
  alignas(64) float sums[kTile * kTile];
  TileStore<kSum>(sums, kTileRowBytes);
  for (int64_t r = 0; r < kTile && row + r < part.rows; ++r) {
    StoreColumns(part, row + r, step.vector + vector, LoadF(sums + r * kTile), false);
  }
}

// Sums of kRows x kColumns tiles over a chunk of k. Tiles 0 to 3 are sums, 4 and 5 of x, 6 and 7 of weights.
template <int kRows, int kColumns>
void MultiplyTiles(const Gemm& gemm, const Step& step, int buffer, int64_t row_tile, int64_t vector, Expansion& next) {
  const Bytes x = reinterpret_cast<Bytes>(gemm.part.x_tiles) +
                  ((step.row / kTile + row_tile) * gemm.depth + step.depth) * kTileBytes;
  const int64_t x_stride = gemm.depth * kTileBytes, depth = gemm.Depth(step);
  const Bytes first = gemm.Weights(step, buffer, vector);
  const Bytes second = kColumns == 2 ? gemm.Weights(step, buffer, vector + 1) : nullptr;
  // Each pair of columns of a panel fetches a quarter of the next 32 rows into L2.
  const Bytes ahead = x + 2 * x_stride + vector * (kTileBytes / kWidth);
  const bool fetch = row_tile + 3 < gemm.Height(step);
  BeginSums<0>(gemm, step, row_tile, vector);
  if constexpr (kColumns == 2) BeginSums<1>(gemm, step, row_tile, vector + 1);
  if constexpr (kRows == 2) BeginSums<2>(gemm, step, row_tile + 1, vector);
  if constexpr (kRows == 2 && kColumns == 2) BeginSums<3>(gemm, step, row_tile + 1, vector + 1);
  for (int64_t i = 0; i < depth; ++i) {
    const int64_t at = i * kTileBytes;
    TileLoad<6>(first + at, kTileRowBytes);
    TileLoad<4>(x + at, kTileRowBytes);
    TileDotBf16<0, 4, 6>();
    if constexpr (kColumns == 2) {
      TileLoad<7>(second + at, kTileRowBytes);
      TileDotBf16<1, 4, 7>();
    }
    if constexpr (kRows == 2) {
      TileLoad<5>(x + x_stride + at, kTileRowBytes);
      TileDotBf16<2, 5, 6>();
      if constexpr (kColumns == 2) TileDotBf16<3, 5, 7>();
    }
    if (fetch) {
      for (int64_t line = 0; line < 2 * kTileBytes / kWidth; line += 64) {
        _mm_prefetch(reinterpret_cast<const char*>(ahead + at + line), _MM_HINT_T1);
        _mm_prefetch(reinterpret_cast<const char*>(ahead + x_stride + at + line), _MM_HINT_T1);
      }
    }
    next.Turn();
  }
  EndSums<0>(gemm, step, row_tile, vector);
  if constexpr (kColumns == 2) EndSums<1>(gemm, step, row_tile, vector + 1);
  if constexpr (kRows == 2) EndSums<2>(gemm, step, row_tile + 1, vector);
  if constexpr (kRows == 2 && kColumns == 2) EndSums<3>(gemm, step, row_tile + 1, vector + 1);
}

void Multiply(const Gemm& gemm, const Step& step, int buffer, Expansion& next) {
  const int64_t height = gemm.Height(step), width = gemm.Width(step);
  for (int64_t row_tile = 0; row_tile < height; row_tile += 2) {
    const bool two_rows = row_tile + 1 < height;
    for (int64_t vector = 0; vector < width; vector += 2) {
      const bool two_columns = vector + 1 < width;
      const auto multiply = two_rows ? (two_columns ? MultiplyTiles<2, 2> : MultiplyTiles<2, 1>)
                                     : (two_columns ? MultiplyTiles<1, 2> : MultiplyTiles<1, 1>);
      multiply(gemm, step, buffer, row_tile, vector, next);
    }
  }
}

void Configure(int64_t rows) {
  TileConfig config;
  for (int t = 0; t < 8; ++t) {
    config.row_bytes[t] = kTileRowBytes;
    // Products of fewer rows take less time.
    config.rows[t] = static_cast<uint8_t>(t < 6 && rows < kTile ? rows : kTile);
  }
  TileConfigure(config);
}

template <class F>
void Run(const LinearPart& part) {
  const Gemm gemm = {.part = part, .expand = ExpandTile<F>, .direct = kIsTiles<F>};
  Configure(part.rows);
  Step step;
  int buffer = 0;
  gemm.ExpansionOf(step, buffer, 1).Finish();
  for (bool more = true; more;) {
    Step next = step;
    more = gemm.Advance(next);
    const bool fresh = more && !next.SameTiles(step);
    const int64_t pairs = (gemm.Height(step) + 1) / 2 * ((gemm.Width(step) + 1) / 2);
    Expansion expansion = fresh ? gemm.ExpansionOf(next, 1 - buffer, pairs * gemm.Depth(step)) : Expansion{};
    Multiply(gemm, step, buffer, expansion);
    expansion.Finish();
    if (fresh) buffer = 1 - buffer;
    step = next;
  }
  TileRelease();
}

// A row of x as row `row` of its tiles.
void PackRow(const float* x, int64_t k, int64_t row, uint16_t* tiles) {
  const int64_t depth = vt::PaddedK(k) / 32;
  uint16_t* out = tiles + (row / kTile * depth * kTile + row % kTile) * 32;
  for (int64_t i = 0; i < depth; ++i, x += 32, out += kTile * 32) {
    const int count = static_cast<int>(k - i * 32 < 32 ? k - i * 32 : 32), upper = count > kLanes ? count - kLanes : 0;
    const VF low = count < kLanes ? LoadFirst(x, count) : LoadF(x), high = LoadFirst(x + kLanes, upper);
    StoreI(out, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low)));
  }
}

}  // namespace

namespace vt {

constinit const LinearAmxKernels kLinearAmx = {
    {nullptr, nullptr, Run<BF16>, Run<Q8_0>, Run<Q4_0>, Run<Q4_1>, Run<Q5_0>, Run<Q5_1>, Run<Q2_K>, Run<Q3_K>,
     Run<Q4_K>, Run<Q5_K>, Run<Q6_K>, Run<IQ4_NL>, Run<IQ4_XS>},
    PackRow,
};

}  // namespace vt
