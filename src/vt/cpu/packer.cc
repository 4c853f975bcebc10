// Packing of weights for the cpu provider, groups of rows over the workers.
#include "vt/cpu/packer.h"

#include <sys/mman.h>

#include <algorithm>

#include "base/check.h"

namespace vt {
namespace {

constexpr CpuFormatRow kRows[] = {
    {FormatId::kF32, kCpuF32},   {FormatId::kF16, kCpuF16},       {FormatId::kBF16, kCpuBF16},
    {FormatId::kQ8_0, kCpuQ8_0}, {FormatId::kQ4_0, kCpuQ4_0},     {FormatId::kQ4_1, kCpuQ4_1},
    {FormatId::kQ5_0, kCpuQ5_0}, {FormatId::kQ5_1, kCpuQ5_1},     {FormatId::kQ2_K, kCpuQ2_K},
    {FormatId::kQ3_K, kCpuQ3_K}, {FormatId::kQ4_K, kCpuQ4_K},     {FormatId::kQ5_K, kCpuQ5_K},
    {FormatId::kQ6_K, kCpuQ6_K}, {FormatId::kIQ4_NL, kCpuIQ4_NL}, {FormatId::kIQ4_XS, kCpuIQ4_XS},
};

int64_t Groups(int64_t n) { return (n + kR16Rows - 1) / kR16Rows; }

// Weights are read from one end to the other for every token: large pages save the walks of page tables. Advice only.
void AdviseHugePages(std::byte* begin, int64_t bytes) {
  constexpr uintptr_t kHuge = uintptr_t{2} << 20;
  const auto address = reinterpret_cast<uintptr_t>(begin);
  const uintptr_t first = (address + kHuge - 1) / kHuge * kHuge,
                  end = (address + static_cast<uintptr_t>(bytes)) / kHuge * kHuge;
  if (first < end) madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
}

}  // namespace

std::span<const CpuFormatRow> CpuFormats() { return kRows; }

const CpuFormatRow* FindCpuFormat(FormatId id) {
  const auto* const row = std::find_if(std::begin(kRows), std::end(kRows), [&](const auto& r) { return r.id == id; });
  return row == std::end(kRows) ? nullptr : row;
}

int64_t R16Packer::PackedBytes(const WeightSource& source, WeightUse use) const {
  const CpuFormatRow* row = FindCpuFormat(source.format);
  if (use == WeightUse::kRows || row == nullptr) return 0;
  return Groups(source.n) * R16ShapeOf(row->index, source.k).group_bytes;
}

Segment R16Packer::Pack(const WeightSource& source, std::byte* out) {
  const CpuFormatRow* row = FindCpuFormat(source.format);
  CHECK(row != nullptr, source.name, ": format ", static_cast<int>(source.format), " is not packed");
  const int64_t row_bytes = RowBytes(GetFormat(source.format), source.k).value();
  const int64_t group_bytes = R16ShapeOf(row->index, source.k).group_bytes;
  AdviseHugePages(out, Groups(source.n) * group_bytes);
  const auto pack = [&](int64_t begin, int64_t end, int) {
    for (int64_t g = begin; g < end; ++g) {
      const int64_t first = g * kR16Rows;
      PackR16Group(row->index, source.bytes.data() + first * row_bytes, row_bytes,
                   static_cast<int>(std::min<int64_t>(kR16Rows, source.n - first)), source.k, out + g * group_bytes);
    }
  };
  // Piece by piece, so that a large matrix is never in memory twice.
  constexpr int64_t kPieceBytes = int64_t{16} << 20;
  const int64_t piece = std::max<int64_t>(kPieceBytes / group_bytes, 1);
  for (int64_t begin = 0; begin < Groups(source.n); begin += piece) {
    const int64_t end = std::min(begin + piece, Groups(source.n));
    if (pool_) {
      pool_->ParallelFor(end - begin, 4, [&](int64_t b, int64_t e, int w) { pack(begin + b, begin + e, w); });
    } else {
      pack(begin, end, 0);
    }
    const int64_t first = begin * kR16Rows * row_bytes, last = std::min(end * kR16Rows, source.n) * row_bytes;
    if (source.drop) source.drop(source.bytes.subspan(static_cast<size_t>(first), static_cast<size_t>(last - first)));
  }
  return {.format = source.format,
          .layout = LayoutId::kR16,
          .n = source.n,
          .row_bytes = group_bytes / kR16Rows,
          .data = out};
}

}  // namespace vt
