// The plain view of the KV cache: what is stored comes back rounded to the cache's type.
#include "vt/ref/cache.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/vt/kernel_test_util.h"

namespace vt {
namespace {

using testing::HostTensor;

TEST(CacheView, EveryTypeReturnsWhatItCanHold) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kF8E4M3, DType::kF8E5M2, DType::kI8}) {
    const KvPage page{dtype, 16, 2, 4};
    HostTensor<uint8_t> bytes({2, page.bytes()}, uint8_t{0});
    const CacheView view(bytes.view(), page);
    const float key[] = {1, -0.5f, 0.25f, 127}, value[] = {-127, 2, 4, 8};
    for (const int64_t slot : {0, 17, 31}) view.Store(slot, 1, key, value);
    for (const int64_t slot : {0, 17, 31})
      for (int i = 0; i < 4; ++i) {
        // 127 is 128 in an 8-bit float; int8 has whole numbers only, as the largest is 127.
        const float tolerance = dtype == DType::kI8 ? 0.5f : dtype == DType::kF32 ? 0.0f : 1.0f;
        EXPECT_NEAR(view.Load(slot, KvKind::kKey, 1, i), key[i], i == 3 || dtype == DType::kI8 ? tolerance : 0);
        EXPECT_NEAR(view.Load(slot, KvKind::kValue, 1, i), value[i], i == 0 || dtype == DType::kI8 ? tolerance : 0);
        EXPECT_EQ(view.Load(slot, KvKind::kKey, 0, i), 0) << "the other head";
      }
  }
}

TEST(CacheView, I8HasVllmsScalesAndCodes) {
  std::ifstream file(std::string(VLLM_SOURCE_DIR) + "/tests/data/kv_cache/int8.txt");
  const KvPage page{DType::kI8, 16, 1, 16};
  int rows = 0;
  for (std::string line; std::getline(file, line); ++rows) {
    std::istringstream words(line);
    const auto next = [&] {
      std::string hex;
      words >> hex;
      return std::bit_cast<float>(static_cast<uint32_t>(std::strtoul(hex.c_str(), nullptr, 16)));
    };
    std::vector<float> row(16);
    for (float& x : row) x = next();
    const float scale = next();
    HostTensor<uint8_t> bytes({1, page.bytes()}, uint8_t{0});
    CacheView(bytes.view(), page).Store(5, 0, row.data(), row.data());
    for (const KvKind kind : {KvKind::kKey, KvKind::kValue}) {
      float stored;
      std::memcpy(&stored, bytes.values.data() + page.ScaleOffset(kind, 0, 5), sizeof stored);
      EXPECT_EQ(stored, scale) << "row " << rows;
    }
    for (int i = 0; i < 16; ++i) {
      int code;
      words >> code;
      for (const KvKind kind : {KvKind::kKey, KvKind::kValue})
        EXPECT_EQ(static_cast<int8_t>(bytes.values[static_cast<size_t>(page.Offset(kind, 0, 5, i))]), code)
            << "row " << rows << " element " << i;
    }
  }
  EXPECT_EQ(rows, 9);
}

}  // namespace
}  // namespace vt
