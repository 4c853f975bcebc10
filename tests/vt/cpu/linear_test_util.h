// Weights in R16, the plain product and the measure of an error: what tests of the linear kernels share.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "quant/format.h"
#include "quant/half.h"
#include "tests/vt/kernel_test_util.h"
#include "vt/cpu/packer.h"
#include "vt/cpu/platform.h"
#include "vt/weight.h"

namespace vt::testing {

// Blocks of a format with any bits but those of the halves, which are scales near `spread`.
template <class F>
std::vector<std::byte> MakeBlocks(const Format& format, int64_t bytes, float spread, uint32_t seed, F&& byte_at) {
  std::vector<int> halves = {0};
  if (format.id == FormatId::kQ4_1 || format.id == FormatId::kQ5_1) halves = {0, 2};
  if (format.id == FormatId::kQ4_K || format.id == FormatId::kQ5_K) halves = {0, 2};
  if (format.id == FormatId::kQ2_K) halves = {80, 82};
  if (format.id == FormatId::kQ3_K) halves = {108};
  if (format.id == FormatId::kQ6_K) halves = {208};
  std::vector<std::byte> out(static_cast<size_t>(bytes));
  std::mt19937 random(seed);
  for (std::byte& byte : out) byte = byte_at(random);
  for (size_t block = 0; block < out.size(); block += static_cast<size_t>(format.block_bytes)) {
    for (const int at : halves) {
      const uint16_t half = HalfFromFloat(spread * (0.5f + static_cast<float>(random() % 1000) / 1000));
      std::memcpy(out.data() + block + static_cast<size_t>(at), &half, 2);
    }
  }
  return out;
}

// A weight in the given formats, packed from odd addresses as a mapped file may hold it.
struct TestWeight {
  PackedWeight packed;
  std::vector<std::shared_ptr<Buffer>> buffers;
  std::vector<float> values;  // [n, k], dequantized

  // Random values; random blocks, where a format has no quantizer.
  TestWeight(std::vector<std::pair<FormatId, int64_t>> segments, int64_t k, uint32_t seed) {
    packed.k = k;
    for (const auto& [id, n] : segments) {
      const Format& format = GetFormat(id);
      const int64_t bytes = n * RowBytes(format, k).value();
      std::vector<std::byte> blocks(static_cast<size_t>(bytes));
      if (format.quantize != nullptr) {
        const HostTensor<float> random = RandomTensor({n, k}, seed++, 0.3f);
        format.quantize(random.values.data(), n * k, blocks.data());
      } else {
        const auto any = [](std::mt19937& random) { return static_cast<std::byte>(random() & 255); };
        blocks = MakeBlocks(format, bytes, 0.003f, seed++, any);
      }
      Add(id, n, blocks);
    }
  }
  // All bytes of codes alike.
  TestWeight(FormatId id, int64_t n, int64_t k, std::byte codes) {
    packed.k = k;
    const Format& format = GetFormat(id);
    Add(id, n, MakeBlocks(format, n * RowBytes(format, k).value(), 0.003f, 1, [&](std::mt19937&) { return codes; }));
  }

  void Add(FormatId id, int64_t n, std::span<const std::byte> blocks) {
    std::vector<std::byte> own(blocks.size() + 1);
    std::copy(blocks.begin(), blocks.end(), own.begin() + 1);
    const size_t at = values.size();
    values.resize(at + static_cast<size_t>(n * packed.k));
    GetFormat(id).dequantize(own.data() + 1, n * packed.k, values.data() + at);
    const WeightSource source = {.name = "w", .format = id, .n = n, .k = packed.k, .bytes = std::span(own).subspan(1)};
    R16Packer packer(nullptr);
    const int64_t bytes = packer.PackedBytes(source, WeightUse::kMatrix);
    buffers.push_back(std::make_shared<Buffer>(AllocateHost({}, static_cast<size_t>(bytes))));
    packed.segments.push_back(packer.Pack(source, buffers.back()->data()));
    packed.n += n;
  }
};

struct Product {
  std::vector<double> y, magnitude;  // magnitude: the sum of |x w|, the scale of rounding errors
};

inline Product PlainProduct(const TestWeight& w, const HostTensor<float>& x, const float* bias) {
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

// Largest |error| / magnitude.
inline double WorstError(const HostTensor<float>& y, const Product& expected) {
  double worst = 0;
  for (size_t i = 0; i < expected.y.size(); ++i) {
    const double error = std::fabs(y.values[i] - expected.y[i]) / (expected.magnitude[i] + 1e-30);
    if (!(error <= worst)) worst = error;
  }
  return worst;
}

// One rounding of a product or sum, times the longest chain of them: the terms of a piece, then the pieces.
inline double ExactBound(int64_t k) {
  return std::ldexp(std::min<double>(static_cast<double>(k), 128) + static_cast<double>(k) / 128 + 2, -24);
}

}  // namespace vt::testing
