// Packing of weights into R16: a transposition of each block's fields over sixteen rows.
#include "vt/cpu/r16.h"

#include <emmintrin.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>

#include "base/check.h"

namespace vt {
namespace {

// `count` elements of `width` bytes from `offset` of the file's block.
struct Field {
  int offset, width, count;
};

enum class Rewrite { kNone, kFlipSigns, kSpreadFifthBits };

struct Recipe {
  CpuFormat format;
  int weights, bytes;  // of the file's block
  Field head[2];
  Field payload[2];
  Rewrite rewrite;  // of the first payload field
};

// In the order of CpuFormat.
constexpr Recipe kRecipes[] = {
    {kCpuF32, 32, 128, {}, {{0, 4, 32}}, Rewrite::kNone},
    {kCpuF16, 32, 64, {}, {{0, 2, 32}}, Rewrite::kNone},
    {kCpuBF16, 32, 64, {}, {{0, 4, 16}}, Rewrite::kNone},
    {kCpuQ8_0, 32, 34, {{0, 2, 1}}, {{2, 4, 8}}, Rewrite::kFlipSigns},
    {kCpuQ4_0, 32, 18, {{0, 2, 1}}, {{2, 4, 4}}, Rewrite::kNone},
    {kCpuQ4_1, 32, 20, {{0, 2, 2}}, {{4, 4, 4}}, Rewrite::kNone},
    {kCpuQ5_0, 32, 22, {{0, 2, 1}}, {{2, 4, 1}, {6, 4, 4}}, Rewrite::kSpreadFifthBits},
    {kCpuQ5_1, 32, 24, {{0, 2, 2}}, {{4, 4, 1}, {8, 4, 4}}, Rewrite::kSpreadFifthBits},
    {kCpuQ2_K, 256, 84, {{0, 4, 4}, {80, 2, 2}}, {{16, 4, 16}}, Rewrite::kNone},
    {kCpuQ3_K, 256, 110, {{96, 4, 3}, {108, 2, 1}}, {{0, 4, 8}, {32, 4, 16}}, Rewrite::kNone},
    {kCpuQ4_K, 256, 144, {{4, 4, 3}, {0, 2, 2}}, {{16, 4, 32}}, Rewrite::kNone},
    {kCpuQ5_K, 256, 176, {{4, 4, 3}, {0, 2, 2}}, {{16, 4, 8}, {48, 4, 32}}, Rewrite::kNone},
    {kCpuQ6_K, 256, 210, {{192, 4, 4}, {208, 2, 1}}, {{0, 4, 32}, {128, 4, 16}}, Rewrite::kNone},
    {kCpuIQ4_NL, 32, 18, {{0, 2, 1}}, {{2, 4, 4}}, Rewrite::kNone},
    {kCpuIQ4_XS, 256, 136, {{4, 4, 1}, {0, 2, 2}}, {{8, 4, 32}}, Rewrite::kNone},
};
static_assert(sizeof kRecipes / sizeof kRecipes[0] == kCpuFormats);
static_assert([] {
  for (int i = 0; i < kCpuFormats; ++i) {
    if (kRecipes[i].format != i) return false;
  }
  return true;
}());

constexpr int Bytes(const Field (&fields)[2]) {
  return fields[0].width * fields[0].count + fields[1].width * fields[1].count;
}

template <class T>
T LoadAt(const std::byte* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

__m128i Load16(const std::byte* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }

// Sixteen bytes of each of some rows at once, `out` 16 rows wide: four dwords of four rows, eight words of eight. Rows
// of large matrices lie in the same sets of the first cache, so an element at a time would miss it every time.
void TransposeTile(const std::byte* const* rows, int offset, std::byte* out, uint32_t) {
  const __m128i a = Load16(rows[0] + offset), b = Load16(rows[1] + offset), c = Load16(rows[2] + offset),
                d = Load16(rows[3] + offset);
  const __m128i ab[2] = {_mm_unpacklo_epi32(a, b), _mm_unpackhi_epi32(a, b)};
  const __m128i cd[2] = {_mm_unpacklo_epi32(c, d), _mm_unpackhi_epi32(c, d)};
  for (int i = 0; i < 4; ++i) {
    const __m128i column =
        i % 2 == 0 ? _mm_unpacklo_epi64(ab[i / 2], cd[i / 2]) : _mm_unpackhi_epi64(ab[i / 2], cd[i / 2]);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i * kR16Rows * 4), column);
  }
}
void TransposeTile(const std::byte* const* rows, int offset, std::byte* out, uint16_t) {
  __m128i pairs[4][2], fours[2][4];
  for (int r = 0; r < 4; ++r) {
    const __m128i a = Load16(rows[2 * r] + offset), b = Load16(rows[2 * r + 1] + offset);
    pairs[r][0] = _mm_unpacklo_epi16(a, b);
    pairs[r][1] = _mm_unpackhi_epi16(a, b);
  }
  for (int r = 0; r < 2; ++r) {
    for (int half = 0; half < 2; ++half) {
      fours[r][2 * half] = _mm_unpacklo_epi32(pairs[2 * r][half], pairs[2 * r + 1][half]);
      fours[r][2 * half + 1] = _mm_unpackhi_epi32(pairs[2 * r][half], pairs[2 * r + 1][half]);
    }
  }
  for (int i = 0; i < 8; ++i) {
    const __m128i upper = fours[0][i / 2], lower = fours[1][i / 2];
    const __m128i column = i % 2 == 0 ? _mm_unpacklo_epi64(upper, lower) : _mm_unpackhi_epi64(upper, lower);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i * kR16Rows * 2), column);
  }
}

template <class T>
std::byte* Transpose(const std::byte* const (&rows)[kR16Rows], int offset, int count, std::byte* out) {
  constexpr int kSize = sizeof(T), kTile = 16 / kSize;  // elements and rows of a tile
  const int whole = count / kTile * kTile;
  for (int r = 0; r < kR16Rows; r += kTile) {
    for (int i = 0; i < whole; i += kTile) {
      TransposeTile(rows + r, offset + i * kSize, out + (i * kR16Rows + r) * kSize, T{});
    }
  }
  for (int i = whole; i < count; ++i) {
    for (int r = 0; r < kR16Rows; ++r) {
      std::memcpy(out + (i * kR16Rows + r) * kSize, rows[r] + offset + i * kSize, kSize);
    }
  }
  return out + count * kR16Rows * kSize;
}

std::byte* TransposeField(const std::byte* const (&rows)[kR16Rows], const Field& field, std::byte* out) {
  return field.width == 2 ? Transpose<uint16_t>(rows, field.offset, field.count, out)
                          : Transpose<uint32_t>(rows, field.offset, field.count, out);
}

uint32_t SpreadFifthBits(uint32_t bits) {
  uint32_t out = 0;
  for (uint32_t i = 0; i < 32; ++i) out |= (bits >> i & 1u) << (8 * (i % 4) + i / 4);
  return out;
}

void RewriteDwords(Rewrite rewrite, std::byte* begin, const std::byte* end) {
  if (rewrite == Rewrite::kNone) return;
  for (; begin != end; begin += 4) {
    const uint32_t value = LoadAt<uint32_t>(begin);
    const uint32_t out = rewrite == Rewrite::kFlipSigns ? value ^ 0x80808080u : SpreadFifthBits(value);
    std::memcpy(begin, &out, sizeof out);
  }
}

}  // namespace

R16Block R16BlockOf(CpuFormat format) {
  const Recipe& recipe = kRecipes[format];
  return {recipe.weights, Bytes(recipe.head), Bytes(recipe.payload)};
}

R16Shape R16ShapeOf(CpuFormat format, int64_t k) {
  const R16Block block = R16BlockOf(format);
  const int64_t blocks = (k + block.weights - 1) / block.weights;
  const int64_t head = (blocks * block.head * kR16Rows + 63) / 64 * 64;
  return {blocks, head, head + blocks * block.payload * kR16Rows};
}

void PackR16Group(CpuFormat format, const std::byte* rows, int64_t row_bytes, int count, int64_t k, std::byte* group) {
  CHECK(count > 0 && count <= kR16Rows, count, " rows");
  const Recipe& recipe = kRecipes[format];
  const R16Shape shape = R16ShapeOf(format, k);
  std::byte* head = group;
  std::byte* payload = group + shape.head_bytes;
  constexpr std::byte kZeros[256] = {};
  std::byte padded[kR16Rows][128];  // the last block of a float row that is no whole one
  for (int64_t b = 0; b < shape.blocks; ++b) {
    const std::byte* blocks[kR16Rows];
    const int64_t left = row_bytes - b * recipe.bytes;
    for (int r = 0; r < kR16Rows; ++r) {
      blocks[r] = r < count ? rows + r * row_bytes + b * recipe.bytes : kZeros;
      if (r < count && left < recipe.bytes) {
        std::memset(padded[r], 0, sizeof padded[r]);
        std::memcpy(padded[r], blocks[r], static_cast<size_t>(left));
        blocks[r] = padded[r];
      }
    }
    for (const Field& field : recipe.head) head = TransposeField(blocks, field, head);
    std::byte* const first = payload;
    payload = TransposeField(blocks, recipe.payload[0], payload);
    RewriteDwords(recipe.rewrite, first, payload);
    payload = TransposeField(blocks, recipe.payload[1], payload);
  }
  std::fill(head, group + shape.head_bytes, std::byte{0});
}

}  // namespace vt
