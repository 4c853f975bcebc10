// The emulated tile unit: what Intel's manual says of each operation, and of what the processor refuses.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "quant/half.h"
#include "tests/vt/cpu/tile_emulation_util.h"

namespace vt::testing {
namespace {

using Config = std::array<uint8_t, 64>;

// Tiles of the given rows and bytes of a row.
Config ConfigOf(std::vector<std::pair<int, int>> tiles) {
  Config config = {1};
  for (size_t t = 0; t < tiles.size(); ++t) {
    config[48 + t] = static_cast<uint8_t>(tiles[t].first);
    config[16 + 2 * t] = static_cast<uint8_t>(tiles[t].second);
  }
  return config;
}

uint16_t Bf16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return static_cast<uint16_t>(bits >> 16);
}

// sum + x . w with sum, x and w tiles of one row of pairs.
float Dot(float sum, std::vector<float> x, std::vector<float> w) {
  TileUnit unit;
  const int pairs = static_cast<int>(x.size() / 2);
  EXPECT_EQ(unit.Configure(ConfigOf({{1, 4}, {1, 4 * pairs}, {pairs, 4}}).data()), nullptr);
  std::vector<uint16_t> a, b;
  for (const float v : x) a.push_back(Bf16(v));
  for (const float v : w) b.push_back(Bf16(v));
  EXPECT_EQ(unit.Load(0, reinterpret_cast<std::byte*>(&sum), 4), nullptr);
  EXPECT_EQ(unit.Load(1, reinterpret_cast<std::byte*>(a.data()), 4 * pairs), nullptr);
  EXPECT_EQ(unit.Load(2, reinterpret_cast<std::byte*>(b.data()), 4), nullptr);
  EXPECT_EQ(unit.DotBf16(0, 1, 2), nullptr);
  float result = NAN;
  EXPECT_EQ(unit.Store(0, reinterpret_cast<std::byte*>(&result), 4), nullptr);
  return result;
}

TEST(TileEmulation, AddsProductsOfPairs) {
  EXPECT_EQ(Dot(0.5f, {1, 2, 3, 4}, {5, 6, 7, 8}), 70.5f);
  EXPECT_EQ(Dot(0, {-1.5f, 2}, {3, 0.25f}), -4.0f);
}

TEST(TileEmulation, SumsEvenAndOddProductsForThemselves) {
  // In one chain 2^25 + 1 would be 2^25, and minus 2^25 nothing; even and odd products keep the ones.
  EXPECT_EQ(Dot(0, {0x1p25f, 1, -0x1p25f, 1}, {1, 1, 1, 1}), 2.0f);
  EXPECT_EQ(Dot(0, {0x1p25f, 1, 1, 1, -0x1p25f, 1}, {1, 1, 1, 1, 1, 1}), 3.0f);
}

TEST(TileEmulation, FlushesDenormalsOfOperandsAndResults) {
  EXPECT_EQ(Dot(0, {0x1p-127f, 0}, {0x1p100f, 0}), 0.0f);
  EXPECT_EQ(Dot(0, {0x1p-100f, 0}, {0x1p-30f, 0}), 0.0f);
  EXPECT_EQ(Dot(0x1p-127f, {0, 0}, {0, 0}), 0.0f);
  EXPECT_EQ(Dot(0, {0x1p-100f, 0}, {0x1p-26f, 0}), 0x1p-126f);
}

TEST(TileEmulation, KeepsRowsAndColumnsApart) {
  TileUnit unit;
  ASSERT_EQ(unit.Configure(ConfigOf({{2, 12}, {2, 8}, {2, 12}}).data()), nullptr);
  // [row][pair][2] and [pair][column][2].
  const float x[2][2][2] = {{{1, 2}, {3, 4}}, {{5, 6}, {7, 8}}};
  const float w[2][3][2] = {{{1, 0}, {0, 1}, {2, 2}}, {{0, 1}, {1, 0}, {-1, 3}}};
  uint16_t a[8], b[12];
  for (int i = 0; i < 8; ++i) a[i] = Bf16((&x[0][0][0])[i]);
  for (int i = 0; i < 12; ++i) b[i] = Bf16((&w[0][0][0])[i]);
  ASSERT_EQ(unit.Zero(0), nullptr);
  ASSERT_EQ(unit.Load(1, reinterpret_cast<std::byte*>(a), 8), nullptr);
  ASSERT_EQ(unit.Load(2, reinterpret_cast<std::byte*>(b), 12), nullptr);
  ASSERT_EQ(unit.DotBf16(0, 1, 2), nullptr);
  float y[2][4] = {{0, 0, 0, -1}, {0, 0, 0, -1}};
  ASSERT_EQ(unit.Store(0, reinterpret_cast<std::byte*>(y), 16), nullptr);
  const float expected[2][4] = {{5, 5, 15, -1}, {13, 13, 39, -1}};
  for (int r = 0; r < 2; ++r) {
    for (int n = 0; n < 4; ++n) EXPECT_EQ(y[r][n], expected[r][n]) << r << " " << n;
  }
}

TEST(TileEmulation, RefusesWhatTheProcessorDoes) {
  TileUnit unit;
  std::byte memory[1024] = {};
  EXPECT_STREQ(unit.Zero(0), "tiles are used that are not configured");
  EXPECT_STREQ(unit.Load(0, memory, 64), "tiles are used that are not configured");
  ASSERT_EQ(unit.Configure(ConfigOf({{16, 64}, {16, 64}, {15, 64}, {16, 64}}).data()), nullptr);
  EXPECT_STREQ(unit.Store(4, memory, 64), "a tile is used that the configuration lacks");
  EXPECT_STREQ(unit.DotBf16(0, 1, 1), "a product of tiles that are not three");
  EXPECT_STREQ(unit.DotBf16(0, 1, 2), "sizes that do not fit");
  EXPECT_EQ(unit.DotBf16(0, 1, 3), nullptr);
  unit.Release();
  EXPECT_STREQ(unit.Zero(0), "tiles are used that are not configured");
}

TEST(TileEmulation, RefusesConfigurationsThatTheProcessorDoes) {
  TileUnit unit;
  const auto error = [&](size_t byte, uint8_t value) {
    Config config = ConfigOf({{16, 64}});
    config[byte] = value;
    return unit.Configure(config.data());
  };
  EXPECT_STREQ(error(0, 2), "unknown palette");
  EXPECT_STREQ(error(1, 1), "a start row, which only an interrupted load has");
  EXPECT_STREQ(error(9, 1), "reserved bytes that are not zero");
  EXPECT_STREQ(error(48, 17), "a tile larger than 16 rows of 64 bytes");
  EXPECT_STREQ(error(16, 65), "a tile larger than 16 rows of 64 bytes");
  EXPECT_STREQ(error(48, 0), "a tile of rows or columns only");
  EXPECT_STREQ(error(57, 1), "a tile that there is not");
  EXPECT_FALSE(unit.configured());
}

}  // namespace
}  // namespace vt::testing
