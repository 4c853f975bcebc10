// Tests of the linear and embedding kernels: every format, instruction set and number of rows against a plain product.
#include "vt/cpu/linear.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <iostream>
#include <string>

#include "tests/vt/cpu/linear_test_util.h"
#include "tests/vt/cpu/tile_emulation_util.h"
#include "vt/cpu/isa.h"

namespace vt::testing {
namespace {

constexpr FormatId kFormats[] = {FormatId::kF32,  FormatId::kF16,    FormatId::kBF16,  FormatId::kQ8_0,
                                 FormatId::kQ4_0, FormatId::kQ4_1,   FormatId::kQ5_0,  FormatId::kQ5_1,
                                 FormatId::kQ2_K, FormatId::kQ3_K,   FormatId::kQ4_K,  FormatId::kQ5_K,
                                 FormatId::kQ6_K, FormatId::kIQ4_NL, FormatId::kIQ4_XS};
bool IsFloat(FormatId id) { return id == FormatId::kF32 || id == FormatId::kF16 || id == FormatId::kBF16; }

// The instruction sets with kernels of their own here that this machine has, or can run once tiles are emulated, in
// rising order.
std::vector<Isa> Isas() {
  static const EmulatedTiles tiles;
  std::vector<Isa> isas;
  for (const Isa isa : {Isa::kAvx2, Isa::kAvxVnni, Isa::kAvx512, Isa::kAvx512Vnni, Isa::kAvx512Bf16, Isa::kAmx}) {
    const bool runs = isa <= DetectIsa() || (isa == Isa::kAmx && DetectIsa() == Isa::kAvx512Bf16);
    if (runs && (isa != Isa::kAvxVnni || HasAvxVnni())) isas.push_back(isa);
  }
  return isas;
}

// True when default numerics round to BF16: many rows where the machine multiplies it.
bool RoundsToBf16(FormatId format, int64_t rows, Isa isa) {
  if (rows <= (format == FormatId::kBF16 ? 4 : 8)) return false;
  return isa == Isa::kAmx ? format != FormatId::kF32 && format != FormatId::kF16
                          : isa == Isa::kAvx512Bf16 && format == FormatId::kBF16;
}

HostTensor<float> Multiply(const TestWeight& w, HostTensor<float> x, HostTensor<float>* bias, KernelContext& context) {
  HostTensor<float> out({x.shape[0], w.packed.n}, NAN);
  LinearOp<Tensor> op = {.x = x.view(), .out = out.view(), .weight = &w.packed};
  if (bias != nullptr) op.bias = bias->view();
  CpuLinear(OpArgs(op), context);
  return out;
}

bool SameBits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

// x rounded to 16 bits of the largest of 32: half a unit of that, times 32 at worst where one weight stands alone.
// Measured on these values: a hundredth.
constexpr double kDefaultBound = 4e-6;
// x rounded to 8 bits of the largest of 32; the errors of 768 terms cancel. Measured: half.
constexpr double kFastBound = 2.5e-3;
// x and, on AMX, weights rounded to 8 bits, each off by 2^-9 at most; over long rows the errors of the terms cancel.
constexpr double kBf16Bound = 1.01 / 256, kBf16LongRowBound = 0.125 / 256, kAmxLongRowBound = 0.2 / 256;
// Of default numerics.
double BoundOf(FormatId id, int64_t k, int64_t rows, Isa isa) {
  if (RoundsToBf16(id, rows, isa)) {
    return k <= 256 ? kBf16Bound : isa == Isa::kAmx ? kAmxLongRowBound : kBf16LongRowBound;
  }
  return IsFloat(id) ? ExactBound(k) : kDefaultBound + ExactBound(k);
}

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

TEST_P(LinearFormats, DefaultStaysWithinTheErrorOfItsFormat) {
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
      EXPECT_LT(WorstError(y, some), BoundOf(GetParam(), k, rows, isa)) << IsaLongName(isa) << " rows " << rows;
    }
  }
}

TEST_P(LinearFormats, BitsDoNotDependOnRowsOrWorkers) {
  const bool super = GetFormat(GetParam()).block_elements == 256;
  for (const int64_t k : {super ? int64_t{256} : int64_t{96}, int64_t{1280}}) {
    const int64_t n = 70;
    const TestWeight w({{GetParam(), n}}, k, 5);
    const HostTensor<float> x = RandomTensor({130, k}, 6);
    for (const Isa isa : Isas()) {
      for (const Numerics numerics : {Numerics::kExact, Numerics::kInvariant, Numerics::kDefault, Numerics::kFast}) {
        const bool rounds = numerics == Numerics::kDefault || numerics == Numerics::kFast;
        const bool bf16 = rounds && RoundsToBf16(GetParam(), 130, isa);
        ThreadContext one(isa, 1, numerics);
        const HostTensor<float> all = Multiply(w, x, nullptr, one);
        for (const int64_t rows : kRowCounts) {
          if (bf16 && !RoundsToBf16(GetParam(), rows, isa)) continue;  // another recipe
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

TEST_P(LinearFormats, IntegerFormatsGiveTheSameBitsOnEveryInstructionSet) {
  if (IsFloat(GetParam())) return;
  const int64_t k = 768;
  const TestWeight w({{GetParam(), 37}}, k, 21);
  const HostTensor<float> x = RandomTensor({130, k}, 22);
  ThreadContext first(Isa::kAvx2, 1, Numerics::kDefault);
  const HostTensor<float> expected = Multiply(w, x, nullptr, first);
  for (const Isa isa : Isas()) {
    ThreadContext context(isa, 2, isa == Isa::kAmx ? Numerics::kInvariant : Numerics::kDefault);
    EXPECT_TRUE(SameBits(Multiply(w, x, nullptr, context).values, expected.values)) << IsaLongName(isa);
  }
}

// Also that it is what runs: 8 bits cannot be as exact as 16.
TEST_P(LinearFormats, FastRoundsInputsToEightBitsWithTheSameBitsWhereBytesAreMultiplied) {
  if (IsFloat(GetParam())) return;
  const int64_t k = 768, n = 37;
  const TestWeight w({{GetParam(), n}}, k, 31);
  for (const int64_t rows : {1, 2, 3, 4, 5, 6, 7, 9, 33}) {
    const HostTensor<float> x = RandomTensor({rows, k}, 32);
    const Product expected = PlainProduct(w, x, nullptr);
    HostTensor<float> first_result;
    for (const Isa isa : Isas()) {
      ThreadContext context(isa, 2, Numerics::kFast), normal(isa, 2, Numerics::kDefault);
      const HostTensor<float> y = Multiply(w, x, nullptr, context);
      const double worst = WorstError(y, expected);
      EXPECT_LT(worst, kFastBound) << IsaLongName(isa) << " rows " << rows;
      if (!CpuLinearKernelName(GetParam(), rows, Numerics::kFast, isa).starts_with("int8")) {
        EXPECT_TRUE(SameBits(y.values, Multiply(w, x, nullptr, normal).values)) << IsaLongName(isa) << " rows " << rows;
        continue;
      }
      EXPECT_GT(worst, 2 * kDefaultBound) << IsaLongName(isa) << " rows " << rows;
      if (first_result.values.empty()) first_result = y;
      EXPECT_TRUE(SameBits(y.values, first_result.values)) << IsaLongName(isa) << " rows " << rows;
    }
  }
}

// Sums of products in 16 bits would overflow here first: all codes the largest or the smallest, and q of 32639, -32639
// and, but for one of each 32, 32384 = 256 * 127 - 128, or 127 and -127.
TEST_P(LinearFormats, TheLargestCodesAndInputsDoNotOverflow) {
  const int64_t k = 768, n = 9;
  HostTensor<float> x({3, k}, 1.0f);
  std::fill_n(x.values.begin() + k, k, -1.0f);
  for (int64_t i = 0; i < k; ++i) x.values[static_cast<size_t>(2 * k + i)] = i % 32 == 5 ? 1.0f : 32384.0f / 32639;
  for (const int codes : {0x00, 0x7f, 0x80, 0xff}) {
    if (IsFloat(GetParam())) continue;
    const TestWeight w(GetParam(), n, k, static_cast<std::byte>(codes));
    const Product expected = PlainProduct(w, x, nullptr);
    for (const Isa isa : Isas()) {
      for (const Numerics numerics : {Numerics::kInvariant, Numerics::kFast}) {
        ThreadContext context(isa, 2, numerics);
        HostTensor<float> many({12, k}, 0.0f);
        for (int64_t i = 0; i < 12 * k; ++i)
          many.values[static_cast<size_t>(i)] = x.values[static_cast<size_t>(i % (3 * k))];
        const HostTensor<float> few = Multiply(w, x, nullptr, context);
        EXPECT_LT(WorstError(few, expected), numerics == Numerics::kFast ? kFastBound : kDefaultBound + ExactBound(k))
            << IsaLongName(isa) << " codes " << codes;
        if (numerics == Numerics::kFast && isa == Isa::kAmx) continue;
        const HostTensor<float> all = Multiply(w, many, nullptr, context);
        EXPECT_TRUE(SameBits(std::span(all.values).first(3 * n), few.values)) << IsaLongName(isa) << " codes " << codes;
      }
    }
  }
}

// A chunk of a panel ends at 8192.
TEST_P(LinearFormats, LongRowsAreTheSameInChunks) {
  const int64_t k = 8192 + 512;
  const TestWeight w({{GetParam(), 20}}, k, 23);
  const HostTensor<float> x = RandomTensor({10, k}, 24);
  const Product expected = PlainProduct(w, x, nullptr);
  for (const Isa isa : Isas()) {
    ThreadContext context(isa, 2, Numerics::kInvariant), exact(isa, 1, Numerics::kExact);
    const HostTensor<float> y = Multiply(w, x, nullptr, context);
    EXPECT_LT(WorstError(y, expected), kDefaultBound + ExactBound(k)) << IsaLongName(isa);
    EXPECT_LT(WorstError(Multiply(w, x, nullptr, exact), expected), ExactBound(k)) << IsaLongName(isa);
    HostTensor<float> one({1, k}, std::vector<float>(x.values.begin(), x.values.begin() + k));
    EXPECT_TRUE(SameBits(Multiply(w, one, nullptr, context).values, std::span(y.values).first(20)));
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
          EXPECT_LT(WorstError(Multiply(w, x, nullptr, normal), expected), BoundOf(format, k, rows, isa)) << k;
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
      EXPECT_LT(WorstError(Multiply(w, x, &bias, normal), expected), BoundOf(FormatId::kQ4_K, k, rows, isa)) << rows;
    }
  }
}

TEST(Linear, SegmentsWhoseKernelsReadOtherFormsOfXGiveTheBitsOfEachAlone) {
  const int64_t k = 512;
  const TestWeight both({{FormatId::kQ4_K, 20}, {FormatId::kQ8_0, 12}, {FormatId::kF16, 3}}, k, 41);
  const TestWeight nibbles({{FormatId::kQ4_K, 20}}, k, 41), bytes({{FormatId::kQ8_0, 12}}, k, 42);
  for (const Isa isa : Isas()) {
    for (const Numerics numerics : {Numerics::kDefault, Numerics::kFast}) {
      for (const int64_t rows : {1, 3, 12}) {
        const HostTensor<float> x = RandomTensor({rows, k}, 43);
        ThreadContext context(isa, 2, numerics);
        const HostTensor<float> all = Multiply(both, x, nullptr, context);
        const HostTensor<float> first = Multiply(nibbles, x, nullptr, context);
        const HostTensor<float> second = Multiply(bytes, x, nullptr, context);
        for (size_t r = 0; r < static_cast<size_t>(rows); ++r) {
          const std::span row = std::span(all.values).subspan(r * 35, 35);
          EXPECT_TRUE(SameBits(row.first(20), std::span(first.values).subspan(r * 20, 20))) << IsaLongName(isa);
          EXPECT_TRUE(SameBits(row.subspan(20, 12), std::span(second.values).subspan(r * 12, 12))) << IsaLongName(isa);
        }
      }
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

TEST(Linear, RowsThatAreNotFiniteDoNotReachTheirNeighbours) {
  for (const auto& [format, k] : {std::pair{FormatId::kF32, int64_t{33}}, std::pair{FormatId::kQ4_0, int64_t{64}}}) {
    const TestWeight w({{format, 6}}, k, 18);
    for (const float bad : {NAN, INFINITY}) {
      for (const int64_t rows : {3, 12}) {
        HostTensor<float> x = RandomTensor({rows, k}, 19);
        x.values[static_cast<size_t>(k + 5)] = bad;
        for (const Isa isa : Isas()) {
          ThreadContext context(isa, 1, Numerics::kDefault);
          const HostTensor<float> y = Multiply(w, x, nullptr, context);
          for (size_t i = 0; i < static_cast<size_t>(rows * 6); ++i)
            EXPECT_EQ(std::isfinite(y.values[i]), i / 6 != 1) << i;
        }
      }
    }
  }
}

TEST(Linear, ZerosAndTheSmallestNumbersGiveZeros) {
  const TestWeight w({{FormatId::kQ8_0, 6}}, 64, 25);
  HostTensor<float> x({2, 64}, 0.0f);
  for (size_t i = 64; i < 128; ++i) x.values[i] = 1e-42f;
  for (const Isa isa : Isas()) {
    ThreadContext context(isa, 1, Numerics::kDefault);
    for (const float y : Multiply(w, x, nullptr, context).values) EXPECT_EQ(y, 0.0f);
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
  EXPECT_EQ(reason,
            "weight format IQ2_XXS has no cpu kernel (there are: F32 F16 BF16 Q8_0 Q4_0 Q4_1 Q5_0 Q5_1 "
            "Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_NL IQ4_XS)");
  EXPECT_FALSE(CpuLinearSupports(FormatId::kIQ1_S, info, nullptr));
}

TEST(Linear, TheKernelFollowsRowsNumericsAndInstructionSet) {
  const auto name = [](FormatId format, int64_t rows, Numerics numerics, Isa isa) {
    return CpuLinearKernelName(format, rows, numerics, isa);
  };
  EXPECT_EQ(name(FormatId::kQ4_K, 8, Numerics::kDefault, Isa::kAmx), "int16 few rows");
  EXPECT_EQ(name(FormatId::kQ4_K, 9, Numerics::kDefault, Isa::kAmx), "amx bf16");
  EXPECT_EQ(name(FormatId::kQ4_K, 9, Numerics::kDefault, Isa::kAvx512Bf16), "int16 panels");
  EXPECT_EQ(name(FormatId::kQ4_K, 9, Numerics::kInvariant, Isa::kAmx), "int16 panels");
  EXPECT_EQ(name(FormatId::kQ4_K, 9, Numerics::kExact, Isa::kAmx), "f32");
  EXPECT_EQ(name(FormatId::kBF16, 4, Numerics::kDefault, Isa::kAmx), "f32");
  EXPECT_EQ(name(FormatId::kBF16, 5, Numerics::kDefault, Isa::kAmx), "amx bf16");
  EXPECT_EQ(name(FormatId::kF32, 9, Numerics::kDefault, Isa::kAmx), "f32");
  EXPECT_EQ(name(FormatId::kF16, 9, Numerics::kDefault, Isa::kAmx), "f32");
  EXPECT_EQ(name(FormatId::kQ4_K, 7, Numerics::kDefault, Isa::kAvx2), "int16 panels");
  EXPECT_EQ(name(FormatId::kQ4_K, 1, Numerics::kExact, Isa::kAvx2), "f32");
  EXPECT_EQ(name(FormatId::kQ4_K, 1, Numerics::kFast, Isa::kAvx2), "int8 few rows");
  EXPECT_EQ(name(FormatId::kQ6_K, 7, Numerics::kFast, Isa::kAvx2), "int8 panels");
  EXPECT_EQ(name(FormatId::kQ8_0, 1, Numerics::kFast, Isa::kAvx2), "int16 few rows");
  EXPECT_EQ(name(FormatId::kIQ4_XS, 9, Numerics::kFast, Isa::kAvx512), "int16 panels");
  EXPECT_EQ(name(FormatId::kQ8_0, 9, Numerics::kFast, Isa::kAvxVnni), "int8 panels");
  EXPECT_EQ(name(FormatId::kBF16, 5, Numerics::kDefault, Isa::kAvx512Bf16), "bf16");
  EXPECT_EQ(name(FormatId::kBF16, 9, Numerics::kInvariant, Isa::kAvx512Bf16), "f32");
  EXPECT_EQ(name(FormatId::kBF16, 4, Numerics::kDefault, Isa::kAvx512Bf16), "f32");
  std::string names;
  for (const Isa isa : Isas()) {
    names += std::string(names.empty() ? "" : ", ") + std::string(IsaLongName(isa));
    if (isa > DetectIsa()) names += " (tiles emulated)";
  }
  ::testing::Test::RecordProperty("instruction_sets", names);
  std::cout << "linear tests ran on: " << names << "\n";
}

}  // namespace
}  // namespace vt::testing
