// Tests of the R16 layout: where each row's bits go, and that none is lost.
#include "vt/cpu/r16.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "vt/cpu/packer.h"

namespace vt {
namespace {

std::vector<std::byte> RandomBytes(int64_t count) {
  std::vector<std::byte> bytes(static_cast<size_t>(count));
  std::mt19937 random(3);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() & 255);
  return bytes;
}

int64_t OnesIn(std::span<const std::byte> bytes) {
  int64_t count = 0;
  for (const std::byte byte : bytes) count += __builtin_popcount(std::to_integer<unsigned>(byte));
  return count;
}

TEST(R16, EveryFormatKeepsItsBytesPerWeight) {
  for (const CpuFormatRow& row : CpuFormats()) {
    const Format& format = GetFormat(row.id);
    const R16Block block = R16BlockOf(row.index);
    const int64_t blocks = block.weights / format.block_elements;
    EXPECT_EQ(block.head + block.payload, format.block_bytes * blocks) << format.name;
    const R16Shape shape = R16ShapeOf(row.index, 1024);
    EXPECT_LE(shape.group_bytes - 16 * RowBytes(format, 1024).value(), 63) << format.name;
    EXPECT_EQ(shape.group_bytes % 64, 0) << format.name;
    EXPECT_EQ(shape.head_bytes % 64, 0) << format.name;
  }
}

TEST(R16, PackingMovesBitsAndLosesNone) {
  const int64_t k = 512;
  for (const CpuFormatRow& row : CpuFormats()) {
    if (row.id == FormatId::kQ8_0) continue;  // its sign bits are flipped
    const int64_t row_bytes = RowBytes(GetFormat(row.id), k).value();
    const std::vector<std::byte> rows = RandomBytes(16 * row_bytes);
    std::vector<std::byte> group(static_cast<size_t>(R16ShapeOf(row.index, k).group_bytes), std::byte{255});
    PackR16Group(row.index, rows.data(), row_bytes, 16, k, group.data());
    EXPECT_EQ(OnesIn(group), OnesIn(rows)) << GetFormat(row.id).name;
  }
}

TEST(R16, ARowLiesInItsLaneOfEveryLine) {
  // Q4_1: halves d and m in the head, 16 bytes as four dwords in the payload.
  const int64_t k = 64, row_bytes = 40;
  const std::vector<std::byte> rows = RandomBytes(16 * row_bytes);
  std::vector<std::byte> group(static_cast<size_t>(R16ShapeOf(kCpuQ4_1, k).group_bytes));
  PackR16Group(kCpuQ4_1, rows.data(), row_bytes, 16, k, group.data());
  const auto same = [&](int64_t at, int64_t row, int64_t offset, size_t bytes) {
    return std::memcmp(group.data() + at, rows.data() + row * row_bytes + offset, bytes) == 0;
  };
  for (int64_t r = 0; r < 16; ++r) {
    for (int64_t block = 0; block < 2; ++block) {
      EXPECT_TRUE(same(block * 64 + r * 2, r, block * 20, 2));           // d
      EXPECT_TRUE(same(block * 64 + 32 + r * 2, r, block * 20 + 2, 2));  // m
      for (int64_t i = 0; i < 4; ++i)
        EXPECT_TRUE(same(128 + block * 256 + i * 64 + r * 4, r, block * 20 + 4 + 4 * i, 4));
    }
  }
}

TEST(R16, RowsThatAreNotThereAreZeros) {
  const int64_t k = 32, row_bytes = 34;
  const std::vector<std::byte> rows(2 * row_bytes, std::byte{0});
  std::vector<std::byte> group(static_cast<size_t>(R16ShapeOf(kCpuQ8_0, k).group_bytes), std::byte{7});
  PackR16Group(kCpuQ8_0, rows.data(), row_bytes, 2, k, group.data());
  // The code of zero is 128, and the scale is zero.
  for (size_t i = 0; i < 64; ++i) EXPECT_EQ(group[i], std::byte{0});
  for (size_t i = 64; i < group.size(); ++i) EXPECT_EQ(group[i], std::byte{128});
}

TEST(R16, TheLastBlockOfAFloatRowIsFilledUpWithZeros) {
  const int64_t k = 33;
  std::vector<float> rows(16 * 33, 1.0f);
  std::vector<std::byte> group(static_cast<size_t>(R16ShapeOf(kCpuF32, k).group_bytes), std::byte{7});
  PackR16Group(kCpuF32, reinterpret_cast<const std::byte*>(rows.data()), k * 4, 16, k, group.data());
  std::vector<float> packed(group.size() / 4);
  std::memcpy(packed.data(), group.data(), group.size());
  for (size_t i = 0; i < packed.size(); ++i) EXPECT_EQ(packed[i], i / 16 < 33 ? 1.0f : 0.0f) << i;
}

TEST(R16, PackingDoesNotDependOnTheWorkers) {
  const int64_t k = 256, n = 200;
  const std::vector<std::byte> rows = RandomBytes(n * 144);
  const WeightSource source = {.name = "w", .format = FormatId::kQ4_K, .n = n, .k = k, .bytes = rows};
  R16Packer one(nullptr), three(std::make_shared<base::ThreadPool>(3));
  const int64_t bytes = one.PackedBytes(source, WeightUse::kMatrix);
  EXPECT_EQ(bytes, 13 * R16ShapeOf(kCpuQ4_K, k).group_bytes);
  std::vector<std::byte> a(static_cast<size_t>(bytes)), b(static_cast<size_t>(bytes));
  one.Pack(source, a.data());
  const Segment segment = three.Pack(source, b.data());
  EXPECT_EQ(a, b);
  EXPECT_EQ(segment.layout, LayoutId::kR16);
  EXPECT_EQ(segment.row_bytes * 16, R16ShapeOf(kCpuQ4_K, k).group_bytes);
}

// A large matrix would otherwise be in memory twice.
TEST(R16, PackingDropsItsSourcePieceByPiece) {
  const int64_t k = 8192, n = 16 * 300 + 5;
  const std::vector<std::byte> rows(static_cast<size_t>(n * k * 4));
  WeightSource source = {.name = "w", .format = FormatId::kF32, .n = n, .k = k, .bytes = rows};
  size_t dropped = 0, largest = 0;
  source.drop = [&](std::span<const std::byte> part) {
    EXPECT_EQ(part.data(), rows.data() + dropped) << "in order, without gaps";
    dropped += part.size();
    largest = std::max(largest, part.size());
  };
  R16Packer packer(nullptr);
  std::vector<std::byte> packed(static_cast<size_t>(packer.PackedBytes(source, WeightUse::kMatrix)));
  packer.Pack(source, packed.data());
  EXPECT_EQ(dropped, rows.size());
  EXPECT_LE(largest, size_t{16} << 20);
}

TEST(R16, RowsThatAreOnlyLookedUpAndFormatsWithoutKernelsStayAsInTheFile) {
  const std::vector<std::byte> rows = RandomBytes(144);
  const R16Packer packer(nullptr);
  EXPECT_EQ(
      packer.PackedBytes({.name = "w", .format = FormatId::kQ4_K, .n = 1, .k = 256, .bytes = rows}, WeightUse::kRows),
      0);
  EXPECT_EQ(packer.PackedBytes({.name = "w", .format = FormatId::kIQ1_S, .n = 1, .k = 256, .bytes = rows},
                               WeightUse::kMatrix),
            0);
}

}  // namespace
}  // namespace vt
