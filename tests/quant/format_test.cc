// The format table against gguf-py: sizes, look-ups, and bit-exact conversions of seeded blocks.
#include "quant/format.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/check.h"

namespace vt {
namespace {

// The stream of tools/golden/quant.py.
class SplitMix {
 public:
  explicit SplitMix(uint64_t seed) : state_(seed) {}
  uint64_t Next() {
    state_ += 0x9E3779B97F4A7C15u;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }

 private:
  uint64_t state_;
};

std::vector<std::byte> RandomBytes(uint64_t seed, size_t count) {
  SplitMix random(seed);
  std::vector<std::byte> out((count + 7) / 8 * 8);
  for (size_t i = 0; i < out.size(); i += 8) {
    const uint64_t word = random.Next();
    std::memcpy(out.data() + i, &word, 8);
  }
  out.resize(count);
  return out;
}

std::vector<float> RandomFloats(uint64_t seed, size_t count) {
  SplitMix random(seed);
  std::vector<float> out(count);
  for (size_t i = 0; i < count; ++i) {
    const int run = static_cast<int>(i / 32);
    const float u = static_cast<float>(random.Next() >> 40) * 0x1p-23f - 1.0f;
    out[i] = run == 5 ? 0.0f : std::ldexp(u, run % 9 - 4);
  }
  return out;
}

uint64_t Hash(const void* data, size_t size) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (size_t i = 0; i < size; ++i) hash = (hash ^ static_cast<const uint8_t*>(data)[i]) * 0x100000001B3u;
  return hash;
}

std::vector<uint32_t> CanonicalBits(const std::vector<float>& values) {
  std::vector<uint32_t> bits(values.size());
  std::memcpy(bits.data(), values.data(), values.size() * sizeof(float));
  for (uint32_t& b : bits) b = (b & 0x7fffffffu) > 0x7f800000u ? 0x7fc00000u : b;
  return bits;
}

struct Golden {
  std::string direction, name;
  int64_t amount = 0;
  uint64_t hash = 0;
  std::vector<uint32_t> first;
};

std::vector<Golden> ReadGoldens() {
  std::ifstream file(VLLM_SOURCE_DIR "/tests/data/quant/conversions.txt");
  std::vector<Golden> out;
  for (std::string line; std::getline(file, line);) {
    std::istringstream in(line);
    Golden golden;
    in >> golden.direction >> golden.name >> golden.amount >> std::hex >> golden.hash;
    for (uint32_t bits = 0; in >> bits;) golden.first.push_back(bits);
    out.push_back(golden);
  }
  return out;
}

TEST(Format, EveryFormatDequantizesBitForBitAsGgufPy) {
  size_t seen = 0;
  for (const Golden& golden : ReadGoldens()) {
    if (golden.direction != "dequantize") continue;
    SCOPED_TRACE(golden.name);
    const Format* format = FindFormat(golden.name);
    ASSERT_NE(format, nullptr);
    const auto blocks =
        RandomBytes(1000 + static_cast<uint64_t>(format->id), static_cast<size_t>(golden.amount * format->block_bytes));
    std::vector<float> out(static_cast<size_t>(golden.amount * format->block_elements));
    format->dequantize(blocks.data(), static_cast<int64_t>(out.size()), out.data());
    const auto bits = CanonicalBits(out);
    for (size_t i = 0; i < golden.first.size(); ++i) EXPECT_EQ(bits[i], golden.first[i]) << "weight " << i;
    EXPECT_EQ(Hash(bits.data(), bits.size() * 4), golden.hash);
    ++seen;
  }
  EXPECT_EQ(seen, AllFormats().size()) << "every row of the table has a golden";
}

TEST(Format, SimpleFormatsQuantizeBitForBitAsGgufPy) {
  size_t seen = 0;
  for (const Golden& golden : ReadGoldens()) {
    if (golden.direction != "quantize") continue;
    SCOPED_TRACE(golden.name);
    const Format* format = FindFormat(golden.name);
    ASSERT_NE(format, nullptr);
    ASSERT_NE(format->quantize, nullptr);
    const auto in = RandomFloats(7, static_cast<size_t>(golden.amount));
    std::vector<std::byte> out(static_cast<size_t>(*RowBytes(*format, golden.amount)));
    format->quantize(in.data(), golden.amount, out.data());
    EXPECT_EQ(Hash(out.data(), out.size()), golden.hash);
    ++seen;
  }
  EXPECT_EQ(seen, 10u);
}

// Error of a round trip of random weights of one block, over the block's largest magnitude.
float WorstRelativeError(const Format& format, uint64_t seed) {
  const auto in = RandomFloats(seed, 256 * 16);
  std::vector<std::byte> packed(static_cast<size_t>(*RowBytes(format, 256 * 16)));
  std::vector<float> out(in.size());
  format.quantize(in.data(), static_cast<int64_t>(in.size()), packed.data());
  format.dequantize(packed.data(), static_cast<int64_t>(in.size()), out.data());
  float worst = 0;
  for (size_t block = 0; block < in.size(); block += 256) {
    float largest = 0, error = 0;
    for (size_t i = block; i < block + 256; ++i) {
      largest = std::fmax(largest, std::fabs(in[i]));
      error = std::fmax(error, std::fabs(in[i] - out[i]));
    }
    worst = std::fmax(worst, error / largest);
  }
  return worst;
}

TEST(Format, KQuantsRoundTripWithinOneStep) {
  EXPECT_LT(WorstRelativeError(GetFormat(FormatId::kQ4_K), 1), 2.0f / 15 * 0.75f);
  EXPECT_LT(WorstRelativeError(GetFormat(FormatId::kQ5_K), 2), 2.0f / 31 * 0.75f);
  EXPECT_LT(WorstRelativeError(GetFormat(FormatId::kQ6_K), 3), 1.0f / 32 * 1.1f);
}

TEST(Format, QuantizersSurviveZerosInfinitiesAndNans) {
  std::vector<float> in(512, 0.0f);
  in[256] = INFINITY;
  in[300] = -INFINITY;
  in[301] = NAN;
  for (const Format& format : AllFormats()) {
    if (format.quantize == nullptr) continue;
    SCOPED_TRACE(std::string(format.name));
    std::vector<std::byte> packed(static_cast<size_t>(*RowBytes(format, 512)));
    std::vector<float> out(512, 1.0f);
    format.quantize(in.data(), 512, packed.data());
    format.dequantize(packed.data(), 512, out.data());
    for (int i = 0; i < 256; ++i) EXPECT_EQ(out[static_cast<size_t>(i)], 0.0f);
  }
}

TEST(Format, NamesAndNumbersFindTheSameRow) {
  for (const Format& format : AllFormats()) {
    EXPECT_EQ(FindFormat(format.name), &format);
    EXPECT_EQ(FindFormat(static_cast<int64_t>(format.id)), &format);
    EXPECT_EQ(&GetFormat(format.id), &format);
  }
}

TEST(Format, UnknownNumbersAndNamesAreNull) {
  for (const int64_t type : {-1, 4, 5, 31, 36, 40, 255, 1 << 20}) EXPECT_EQ(FindFormat(type), nullptr) << type;
  EXPECT_EQ(FindFormat(int64_t{1} << 32), nullptr);
  EXPECT_EQ(FindFormat("Q9_9"), nullptr);
  EXPECT_THROW(GetFormat(FormatId::kNone), base::InternalError);
}

TEST(Format, RowBytesRefusesPartialBlocksAndOverflow) {
  EXPECT_EQ(RowBytes(GetFormat(FormatId::kQ4_0), 64), 36);
  EXPECT_EQ(RowBytes(GetFormat(FormatId::kQ4_K), 256), 144);
  EXPECT_EQ(RowBytes(GetFormat(FormatId::kF32), 0), 0);
  EXPECT_EQ(RowBytes(GetFormat(FormatId::kQ4_0), 33), std::nullopt);
  EXPECT_EQ(RowBytes(GetFormat(FormatId::kF32), -1), std::nullopt);
  EXPECT_EQ(RowBytes(GetFormat(FormatId::kF32), int64_t{1} << 62), std::nullopt);
}

}  // namespace
}  // namespace vt
