// Tests of the AMX kernels of the linear op on exactly as much memory as they may touch. Where the machine has no tiles
// their instructions are emulated one by one, so that what the compiler made of the kernels is what is tested.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "quant/half.h"
#include "tests/vt/cpu/linear_test_util.h"
#include "tests/vt/cpu/tile_emulation_util.h"
#include "vt/cpu/isa.h"
#include "vt/cpu/linear_kernels.h"

namespace vt::testing {
namespace {

// Chains of half of k in f32, against products of numbers that are BF16 already.
double SumsBound(int64_t k) { return std::ldexp(static_cast<double>(k) / 2 + 4, -24); }
// x and w each rounded to 8 bits, so each off by 2^-9 at most.
double WorstCase(int64_t k) { return 1.002 / 256 + SumsBound(k); }

// The same numbers rounded to BF16.
void Round(std::vector<float>& values) {
  for (float& v : values) v = FloatFromBf16(Bf16FromFloat(v));
}

// Memory of exactly `count` numbers, aligned to 64 bytes, whose end is the end of an allocation.
template <class T>
class Aligned {
 public:
  Aligned(int64_t count, T fill) {
    const size_t size = (static_cast<size_t>(count) * sizeof(T) + 63) / 64 * 64;
    data_ = static_cast<T*>(std::aligned_alloc(64, size));
    std::fill_n(data_, count, fill);
  }
  ~Aligned() { std::free(data_); }
  Aligned(const Aligned&) = delete;
  Aligned& operator=(const Aligned&) = delete;
  T* data() { return data_; }

 private:
  T* data_;
};

std::vector<CpuFormatRow> AmxFormats() {
  std::vector<CpuFormatRow> formats;
  for (const CpuFormatRow& row : CpuFormats()) {
    if (kLinearAmx.gemm[row.index] != nullptr) formats.push_back(row);
  }
  return formats;
}

// The first `rows` of x times the first `columns` of w, with `gap` floats behind each row of the result.
HostTensor<float> MultiplyExactly(CpuFormat format, const TestWeight& w, const HostTensor<float>& x, int64_t rows,
                                  int64_t columns, const float* bias, int64_t gap = 0) {
  const int64_t k = w.packed.k, stride = columns + gap;
  const R16Shape shape = R16ShapeOf(format, k);
  Aligned<uint16_t> tiles(TilesBytes(rows, k) / 2, 0xffff);  // NaN
  for (int64_t r = 0; r < rows; ++r) kLinearAmx.pack_row(x.values.data() + r * k, k, r, tiles.data());
  Aligned<unsigned char> panel(kAmxPanelBytes, 0xff);
  // The weights alone, so that nothing else lies behind them.
  const int64_t groups = (columns + kR16Rows - 1) / kR16Rows;
  Aligned<unsigned char> weights(groups * shape.group_bytes, 0);
  std::copy_n(reinterpret_cast<const unsigned char*>(w.packed.segments[0].data), groups * shape.group_bytes,
              weights.data());
  HostTensor<float> y({rows, stride}, -7.0f);
  LinearPart part;
  part.rows = rows, part.k = k, part.x_tiles = tiles.data();
  part.groups = weights.data(), part.group_bytes = shape.group_bytes, part.head_bytes = shape.head_bytes;
  part.columns = columns, part.y = y.values.data(), part.y_stride = stride, part.bias = bias;
  part.panel = panel.data();
  const auto before = EmulatedTiles::counts();
  kLinearAmx.gemm[format](part);
  const auto after = EmulatedTiles::counts();
  EXPECT_EQ(after.configured - before.configured, after.released - before.released);
  if (DetectIsa() < Isa::kAmx) {
    const int64_t expected = (rows + 15) / 16 * groups * (PaddedK(k) / 32);
    EXPECT_EQ(after.products - before.products, expected);
  }
  HostTensor<float> dense({rows, columns}, 0.0f);
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = y.values.data() + r * stride;
    std::copy_n(row, columns, dense.values.data() + r * columns);
    for (int64_t c = columns; c < stride; ++c) EXPECT_EQ(row[c], -7.0f) << "row " << r << " column " << c;
  }
  return dense;
}

// The product of x and w rounded to BF16.
Product RoundedProduct(TestWeight w, HostTensor<float> x, const float* bias) {
  Round(w.values);
  Round(x.values);
  return PlainProduct(w, x, bias);
}

// What of a product the first rows and columns are.
Product Corner(const Product& all, int64_t stride, int64_t rows, int64_t columns) {
  Product corner;
  for (int64_t r = 0; r < rows; ++r) {
    const auto at = static_cast<std::ptrdiff_t>(r * stride);
    corner.y.insert(corner.y.end(), all.y.begin() + at, all.y.begin() + at + columns);
    corner.magnitude.insert(corner.magnitude.end(), all.magnitude.begin() + at, all.magnitude.begin() + at + columns);
  }
  return corner;
}

class LinearAmx : public ::testing::TestWithParam<CpuFormatRow> {
 protected:
  void SetUp() override {
    if (DetectIsa() < Isa::kAvx512Bf16) GTEST_SKIP() << "the kernels round with AVX-512 BF16";
  }
  // Row lengths below a chunk, and no multiples of one or of two tiles.
  std::vector<int64_t> Lengths() const {
    switch (GetFormat(GetParam().id).block_elements) {
      case 256:
        return {256, 768, 1280};
      case 32:
        return {32, 544, 1120};
      default:
        return {1, 33, 520, 1100};
    }
  }

 private:
  EmulatedTiles tiles_;
};

TEST_P(LinearAmx, IsThePlainProductForEveryShape) {
  for (const int64_t k : Lengths()) {
    const int64_t n = 47;
    const TestWeight w({{GetParam().id, n}}, k, 31);
    const HostTensor<float> x = RandomTensor({130, k}, 32);
    const Product all = PlainProduct(w, x, nullptr), rounded = RoundedProduct(w, x, nullptr);
    const bool longest = k == Lengths().back();
    for (const int64_t rows :
         longest ? std::vector<int64_t>{9, 15, 16, 17, 31, 32, 33, 130} : std::vector<int64_t>{33}) {
      for (const int64_t columns : {1, 15, 17, 31, 33, 47}) {
        const HostTensor<float> y = MultiplyExactly(GetParam().index, w, x, rows, columns, nullptr, columns % 3);
        EXPECT_LT(WorstError(y, Corner(rounded, n, rows, columns)), SumsBound(k))
            << "k " << k << " rows " << rows << " columns " << columns;
        EXPECT_LT(WorstError(y, Corner(all, n, rows, columns)), WorstCase(k))
            << "k " << k << " rows " << rows << " columns " << columns;
      }
    }
  }
}

TEST_P(LinearAmx, AddsTheBiasOnce) {
  const int64_t k = Lengths().back(), n = 37;
  const TestWeight w({{GetParam().id, n}}, k, 33);
  const HostTensor<float> x = RandomTensor({19, k}, 34), bias = RandomTensor({n}, 35, 30);
  EXPECT_LT(WorstError(MultiplyExactly(GetParam().index, w, x, 19, n, bias.values.data()),
                       RoundedProduct(w, x, bias.values.data())),
            SumsBound(k));
}

TEST_P(LinearAmx, EqualsTheProductOfRoundedNumbers) {
  // One weight and one x that is not zero: only their roundings to BF16 remain.
  const int64_t k = Lengths()[1], n = 17;
  const TestWeight w({{GetParam().id, n}}, k, 38);
  for (const int64_t j : {int64_t{0}, int64_t{21}, k - 1}) {
    HostTensor<float> x({9, k}, 0.0f);
    for (int64_t r = 0; r < 9; ++r) x.values[static_cast<size_t>(r * k + j)] = 1 + static_cast<float>(r) / 128;
    const HostTensor<float> y = MultiplyExactly(GetParam().index, w, x, 9, n, nullptr);
    for (int64_t r = 0; r < 9; ++r) {
      for (int64_t i = 0; i < n; ++i) {
        const uint16_t bits = Bf16FromFloat(w.values[static_cast<size_t>(i * k + j)]);
        const float expected = (1 + static_cast<float>(r) / 128) * FloatFromBf16(bits);
        EXPECT_EQ(y.values[static_cast<size_t>(r * n + i)], expected) << "row " << r << " column " << i << " k " << j;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, LinearAmx, ::testing::ValuesIn(AmxFormats()),
                         [](const auto& info) { return std::string(GetFormat(info.param.id).name); });

// A panel is 128 columns wide, a chunk 512 of k deep, a block of rows 512 high.
TEST(LinearAmxBlocks, GoOnFromPanelToPanelAndBlockToBlock) {
  if (DetectIsa() < Isa::kAvx512Bf16) GTEST_SKIP() << "the kernels round with AVX-512 BF16";
  const EmulatedTiles tiles;
  for (const auto& [id, k] :
       {std::pair{FormatId::kBF16, 1030}, std::pair{FormatId::kQ4_0, 480}, std::pair{FormatId::kQ4_K, 768}}) {
    const int64_t n = 150, rows = 530;
    const TestWeight w({{id, n}}, k, 36);
    const HostTensor<float> x = RandomTensor({rows, k}, 37);
    const HostTensor<float> y = MultiplyExactly(FindCpuFormat(id)->index, w, x, rows, n, nullptr);
    // Every third row is enough to see each tile.
    HostTensor<float> some({0, k}, 0.0f), y_some({0, n}, 0.0f);
    for (int64_t r = 0; r < rows; r += 3) {
      some.values.insert(some.values.end(), x.values.begin() + r * k, x.values.begin() + (r + 1) * k);
      y_some.values.insert(y_some.values.end(), y.values.begin() + r * n, y.values.begin() + (r + 1) * n);
      ++some.shape[0], ++y_some.shape[0];
    }
    EXPECT_LT(WorstError(y_some, RoundedProduct(w, some, nullptr)), SumsBound(k)) << GetFormat(id).name;
  }
}

TEST(LinearAmxTable, HasKernelsForIntegersAndBf16) {
  for (const CpuFormatRow& row : CpuFormats()) {
    const bool wide = row.index == kCpuF32 || row.index == kCpuF16;
    EXPECT_EQ(kLinearAmx.gemm[row.index] == nullptr, wide) << GetFormat(row.id).name;
  }
}

}  // namespace
}  // namespace vt::testing
