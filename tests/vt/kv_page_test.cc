// The layout of a KV page: sizes, and that every byte belongs to one element or scale.
#include "vt/kv_page.h"

#include <gtest/gtest.h>

#include <vector>

namespace vt {
namespace {

constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kF8E4M3, DType::kF8E5M2, DType::kI8};

TEST(KvPage, EveryByteBelongsToOneElementOrScale) {
  for (const DType dtype : kTypes)
    for (const int block_size : {16, 48}) {
      const KvPage page{dtype, block_size, 3, 24};
      std::vector<int> owners(static_cast<size_t>(page.bytes()));
      const auto own = [&](int64_t offset, int64_t bytes) {
        for (int64_t i = 0; i < bytes; ++i) ++owners.at(static_cast<size_t>(offset + i));
      };
      for (const KvKind kind : {KvKind::kKey, KvKind::kValue})
        for (int head = 0; head < 3; ++head)
          for (int token = 0; token < block_size; ++token) {
            for (int i = 0; i < 24; ++i) own(page.Offset(kind, head, token, i), page.element_bytes());
            if (page.scaled()) own(page.ScaleOffset(kind, head, token), 4);
          }
      EXPECT_EQ(owners, std::vector<int>(owners.size(), 1)) << DTypeName(dtype) << " " << block_size;
    }
}

TEST(KvPage, EightBitsTakeHalfOfSixteenAndI8ItsScalesToo) {
  const auto bytes = [](DType dtype) { return KvPage{dtype, 32, 8, 128}.bytes(); };
  EXPECT_EQ(bytes(DType::kBF16), 2 * 32 * 8 * 128 * 2);
  EXPECT_EQ(bytes(DType::kF16), bytes(DType::kBF16));
  EXPECT_EQ(bytes(DType::kF32), 2 * bytes(DType::kBF16));
  EXPECT_EQ(2 * bytes(DType::kF8E4M3), bytes(DType::kBF16));
  EXPECT_EQ(2 * bytes(DType::kF8E5M2), bytes(DType::kBF16));
  EXPECT_EQ(bytes(DType::kI8), bytes(DType::kF8E4M3) + 2 * 32 * 8 * 4);
}

}  // namespace
}  // namespace vt
