// Tests of the linear and embedding kernels: every format, instruction set and number of rows against a plain product.
#include "vt/cpu/linear.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iostream>
#include <string>

#include "quant/format.h"
#include "tests/vt/kernel_test_util.h"
#include "vt/cpu/isa.h"
#include "vt/weight.h"

namespace vt::testing {
namespace {

constexpr FormatId kFormats[] = {FormatId::kF32,  FormatId::kF16,  FormatId::kBF16, FormatId::kQ8_0, FormatId::kQ4_0,
                                 FormatId::kQ4_1, FormatId::kQ5_0, FormatId::kQ4_K, FormatId::kQ6_K};

// The instruction sets of this machine with kernels of their own here, in rising order.
std::vector<Isa> Isas() {
  std::vector<Isa> isas;
  for (const Isa isa : {Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Bf16}) {
    if (isa <= DetectIsa()) isas.push_back(isa);
  }
  return isas;
}

// A weight of random values in the given formats, stored at odd addresses as a mapped file may hold it.
struct TestWeight {
  PackedWeight packed;
  std::vector<std::vector<std::byte>> bytes;
  std::vector<float> values;  // [n, k], dequantized

  TestWeight(std::vector<std::pair<FormatId, int64_t>> segments, int64_t k, uint32_t seed) {
    packed.k = k;
    for (const auto& [id, n] : segments) {
      const Format& format = GetFormat(id);
      const int64_t row_bytes = RowBytes(format, k).value();
      const HostTensor<float> random = RandomTensor({n, k}, seed++, 0.3f);
      std::vector<std::byte>& own = bytes.emplace_back(static_cast<size_t>(n * row_bytes + 1));
      format.quantize(random.values.data(), n * k, own.data() + 1);
      const size_t at = values.size();
      values.resize(at + static_cast<size_t>(n * k));
      format.dequantize(own.data() + 1, n * k, values.data() + at);
      packed.segments.push_back({.format = id, .n = n, .row_bytes = row_bytes, .data = own.data() + 1});
      packed.n += n;
    }
  }
};

struct Product {
  std::vector<double> y, magnitude;  // magnitude: the sum of |x w|, the scale of rounding errors
};

Product PlainProduct(const TestWeight& w, const HostTensor<float>& x, const float* bias) {
  const int64_t rows = x.shape[0], n = w.packed.n, k = w.packed.k;
  Product product = {std::vector<double>(static_cast<size_t>(rows * n)),
                     std::vector<double>(static_cast<size_t>(rows * n))};
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i < n; ++i) {
      double sum = bias != nullptr ? bias[i] : 0, magnitude = std::fabs(sum);
      for (int64_t j = 0; j < k; ++j) {
        const double term =
            static_cast<double>(x.values[static_cast<size_t>(r * k + j)]) * w.values[static_cast<size_t>(i * k + j)];
        sum += term, magnitude += std::fabs(term);
      }
      product.y[static_cast<size_t>(r * n + i)] = sum;
      product.magnitude[static_cast<size_t>(r * n + i)] = magnitude;
    }
  }
  return product;
}

HostTensor<float> Multiply(const TestWeight& w, HostTensor<float> x, HostTensor<float>* bias, KernelContext& context) {
  HostTensor<float> out({x.shape[0], w.packed.n}, NAN);
  LinearOp<Tensor> op = {.x = x.view(), .out = out.view(), .weight = &w.packed};
  if (bias != nullptr) op.bias = bias->view();
  CpuLinear(OpArgs(op), context);
  return out;
}

// Largest |error| / magnitude.
double WorstError(const HostTensor<float>& y, const Product& expected) {
  double worst = 0;
  for (size_t i = 0; i < expected.y.size(); ++i) {
    const double error = std::fabs(y.values[i] - expected.y[i]) / (expected.magnitude[i] + 1e-30);
    if (!(error <= worst)) worst = error;
  }
  return worst;
}

bool SameBits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

// One rounding of a product or sum, times the longest chain of them: k / 8 terms of an AVX2 lane and the final
// additions.
double ExactBound(int64_t k) { return std::ldexp(static_cast<double>(k) / 8 + 16, -24); }
// Both factors rounded to 8 bits, the worst case; over long rows the errors of the terms cancel.
constexpr double kBf16Bound = 2.02 / 256, kBf16LongRowBound = 0.25 / 256;

constexpr int64_t kRowCounts[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 17, 33, 130};

class LinearFormats : public ::testing::TestWithParam<FormatId> {};

TEST_P(LinearFormats, ExactIsThePlainProductOnEveryInstructionSetAndNumberOfRows) {
  const int64_t k = 768, n = 37;
  const TestWeight w({{GetParam(), n}}, k, 1);
  const HostTensor<float> x = RandomTensor({130, k}, 2);
  const Product expected = PlainProduct(w, x, nullptr);
  for (const Isa isa : Isas()) {
    for (const int64_t rows : kRowCounts) {
      ThreadContext context(isa, 2, Numerics::kExact);
      HostTensor<float> part({rows, k}, std::vector<float>(x.values.begin(), x.values.begin() + rows * k));
      const HostTensor<float> y = Multiply(w, part, nullptr, context);
      Product some = {{expected.y.begin(), expected.y.begin() + rows * n},
                      {expected.magnitude.begin(), expected.magnitude.begin() + rows * n}};
      EXPECT_LT(WorstError(y, some), ExactBound(k)) << IsaLongName(isa) << " rows " << rows;
    }
  }
}

TEST_P(LinearFormats, DefaultStaysWithinTheRoundingOfBf16) {
  const int64_t k = 768, n = 37;
  const TestWeight w({{GetParam(), n}}, k, 3);
  const HostTensor<float> x = RandomTensor({130, k}, 4);
  const Product expected = PlainProduct(w, x, nullptr);
  for (const Isa isa : Isas()) {
    for (const int64_t rows : kRowCounts) {
      ThreadContext context(isa, 2, Numerics::kDefault);
      HostTensor<float> part({rows, k}, std::vector<float>(x.values.begin(), x.values.begin() + rows * k));
      const HostTensor<float> y = Multiply(w, part, nullptr, context);
      Product some = {{expected.y.begin(), expected.y.begin() + rows * n},
                      {expected.magnitude.begin(), expected.magnitude.begin() + rows * n}};
      EXPECT_LT(WorstError(y, some), kBf16LongRowBound) << IsaLongName(isa) << " rows " << rows;
    }
  }
}

TEST_P(LinearFormats, ExactAndInvariantBitsDoNotDependOnRowsOrWorkers) {
  for (const int64_t k : {int64_t{256}, int64_t{1280}}) {  // one sum block, and two of unequal length
    const int64_t n = 70;
    const TestWeight w({{GetParam(), n}}, k, 5);
    const HostTensor<float> x = RandomTensor({130, k}, 6);
    for (const Isa isa : Isas()) {
      ThreadContext one(isa, 1, Numerics::kExact);
      const HostTensor<float> all = Multiply(w, x, nullptr, one);
      for (const Numerics numerics : {Numerics::kExact, Numerics::kInvariant}) {
        for (const int64_t rows : kRowCounts) {
          for (const int workers : {1, 2, 3}) {
            ThreadContext context(isa, workers, numerics);
            const int64_t first = 130 - rows;
            HostTensor<float> part({rows, k}, std::vector<float>(x.values.begin() + first * k, x.values.end()));
            const HostTensor<float> y = Multiply(w, part, nullptr, context);
            EXPECT_TRUE(SameBits(y.values, std::span(all.values).subspan(static_cast<size_t>(first * n))))
                << IsaLongName(isa) << " rows " << rows << " workers " << workers << " k " << k;
          }
        }
      }
    }
  }
}

TEST_P(LinearFormats, EmbedEqualsTheReferenceBitForBit) {
  const int64_t k = 512;
  const TestWeight w({{GetParam(), 9}, {FormatId::kF16, 4}}, k, 7);
  HostTensor<int32_t> ids = IntTensor({0, 8, 3, 12, 9, 3});
  for (const Isa isa : Isas()) {
    ThreadContext context(isa, 2);
    HostTensor<float> out({6, k}, NAN);
    CpuEmbed(OpArgs(EmbedOp<Tensor>{.ids = ids.view(), .out = out.view(), .weight = &w.packed, .scale = 1.5f}),
             context);
    for (size_t t = 0; t < 6; ++t) {
      for (int64_t c = 0; c < k; ++c) {
        ASSERT_EQ(out.values[t * k + static_cast<size_t>(c)],
                  w.values[static_cast<size_t>(ids.values[t] * k + c)] * 1.5f)
            << IsaLongName(isa) << " token " << t << " column " << c;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, LinearFormats, ::testing::ValuesIn(kFormats),
                         [](const auto& info) { return std::string(GetFormat(info.param).name); });

TEST(Linear, TakesRowLengthsThatAreNoMultipleOfAVector) {
  for (const Isa isa : Isas()) {
    for (const FormatId format : {FormatId::kF32, FormatId::kF16, FormatId::kBF16}) {
      for (const int64_t k : {1, 7, 31, 33, 100, 1100}) {
        const TestWeight w({{format, 5}}, k, 8);
        for (const int64_t rows : {1, 3, 20}) {
          const HostTensor<float> x = RandomTensor({rows, k}, 9);
          const Product expected = PlainProduct(w, x, nullptr);
          ThreadContext exact(isa, 2, Numerics::kExact), normal(isa, 2, Numerics::kDefault);
          EXPECT_LT(WorstError(Multiply(w, x, nullptr, exact), expected), ExactBound(k)) << k;
          EXPECT_LT(WorstError(Multiply(w, x, nullptr, normal), expected), kBf16Bound) << k;
        }
      }
    }
    for (const FormatId format : {FormatId::kQ4_1, FormatId::kQ8_0, FormatId::kQ5_0, FormatId::kQ4_0}) {
      for (const int64_t k : {32, 576, 1120}) {
        const TestWeight w({{format, 5}}, k, 10);
        for (const int64_t rows : {1, 20}) {
          const HostTensor<float> x = RandomTensor({rows, k}, 11);
          ThreadContext context(isa, 2, Numerics::kExact);
          EXPECT_LT(WorstError(Multiply(w, x, nullptr, context), PlainProduct(w, x, nullptr)), ExactBound(k)) << k;
        }
      }
    }
  }
}

TEST(Linear, MergedSegmentsOfDifferentFormatsAreOneProductWithBias) {
  const int64_t k = 256;
  const TestWeight w({{FormatId::kQ4_K, 65}, {FormatId::kQ4_K, 3}, {FormatId::kQ6_K, 17}, {FormatId::kF32, 1}}, k, 12);
  HostTensor<float> bias = RandomTensor({86}, 13);
  for (const Isa isa : Isas()) {
    for (const int64_t rows : {1, 8, 9, 250}) {
      const HostTensor<float> x = RandomTensor({rows, k}, 14);
      const Product expected = PlainProduct(w, x, bias.values.data());
      // Eight workers and few columns: many rows are split as well.
      ThreadContext exact(isa, 8, Numerics::kExact), normal(isa, 8, Numerics::kDefault);
      EXPECT_LT(WorstError(Multiply(w, x, &bias, exact), expected), ExactBound(k)) << rows;
      EXPECT_LT(WorstError(Multiply(w, x, &bias, normal), expected), kBf16Bound) << rows;
    }
  }
}

TEST(Linear, BiasKeepsBitsIndependentOfTheNumberOfRows) {
  const int64_t k = 1600;
  const TestWeight w({{FormatId::kQ8_0, 19}}, k, 15);
  HostTensor<float> bias = RandomTensor({19}, 16);
  const HostTensor<float> x = RandomTensor({20, k}, 17);
  for (const Isa isa : Isas()) {
    ThreadContext context(isa, 2, Numerics::kExact);
    const HostTensor<float> all = Multiply(w, x, &bias, context);
    HostTensor<float> first({1, k}, std::vector<float>(x.values.begin(), x.values.begin() + k));
    EXPECT_TRUE(SameBits(Multiply(w, first, &bias, context).values, std::span(all.values).first(19)));
  }
}

TEST(Linear, RowsOfNansDoNotReachTheirNeighbours) {
  const int64_t k = 33;  // padded: the kernel reads beyond the row
  const TestWeight w({{FormatId::kF32, 6}}, k, 18);
  HostTensor<float> x = RandomTensor({12, k}, 19);
  const Product expected = PlainProduct(w, x, nullptr);
  for (int64_t j = 0; j < k; ++j) x.values[static_cast<size_t>(5 * k + j)] = NAN;
  for (const Isa isa : Isas()) {
    ThreadContext context(isa, 1, Numerics::kDefault);
    const HostTensor<float> y = Multiply(w, x, nullptr, context);
    for (size_t i = 0; i < 72; ++i) {
      EXPECT_EQ(std::isnan(y.values[i]), i / 6 == 5) << i;
    }
  }
}

TEST(Linear, NoRowsAreNoWork) {
  const TestWeight w({{FormatId::kF32, 3}}, 32, 20);
  ThreadContext context(Isa::kAvx2, 2);
  EXPECT_TRUE(Multiply(w, HostTensor<float>({0, 32}, 0.0f), nullptr, context).values.empty());
}

TEST(Linear, FormatsWithoutAKernelAreRefusedByNameWithTheListOfThoseThatHave) {
  const PlatformInfo info;
  std::string reason;
  for (const FormatId format : kFormats) EXPECT_TRUE(CpuLinearSupports(format, info, &reason));
  EXPECT_FALSE(CpuLinearSupports(FormatId::kIQ2_XXS, info, &reason));
  EXPECT_EQ(reason, "weight format IQ2_XXS has no cpu kernel (there are: F32 F16 BF16 Q8_0 Q4_0 Q4_1 Q5_0 Q4_K Q6_K)");
  EXPECT_FALSE(CpuLinearSupports(FormatId::kQ3_K, info, nullptr));
}

TEST(Linear, TheKernelFollowsRowsNumericsAndInstructionSet) {
  EXPECT_EQ(CpuLinearKernelName(8, Numerics::kDefault, Isa::kAmx), "f32 few rows");
  EXPECT_EQ(CpuLinearKernelName(9, Numerics::kDefault, Isa::kAvx512Bf16), "bf16 blocked");
  EXPECT_EQ(CpuLinearKernelName(9, Numerics::kDefault, Isa::kAvx512Vnni), "f32 blocked");
  EXPECT_EQ(CpuLinearKernelName(9, Numerics::kInvariant, Isa::kAmx), "f32 blocked");
  std::string names;
  for (const Isa isa : Isas()) names += std::string(names.empty() ? "" : ", ") + std::string(IsaLongName(isa));
  ::testing::Test::RecordProperty("instruction_sets", names);
  std::cout << "linear tests ran on: " << names << "\n";
}

}  // namespace
}  // namespace vt::testing
