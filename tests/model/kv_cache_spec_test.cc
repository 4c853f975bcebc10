// The names of the KV cache's types.
#include "model/kv_cache_spec.h"

#include <gtest/gtest.h>

namespace vllm {
namespace {

TEST(KvCacheSpec, ParsesVllmsNamesAndFloat32) {
  EXPECT_EQ(ParseKvCacheDType("bfloat16"), vt::DType::kBF16);
  EXPECT_EQ(ParseKvCacheDType("float16"), vt::DType::kF16);
  EXPECT_EQ(ParseKvCacheDType("float32"), vt::DType::kF32);
  EXPECT_EQ(ParseKvCacheDType("fp8"), vt::DType::kF8E4M3);
  EXPECT_EQ(ParseKvCacheDType("fp8_e4m3"), vt::DType::kF8E4M3);
  EXPECT_EQ(ParseKvCacheDType("fp8_e5m2"), vt::DType::kF8E5M2);
  EXPECT_EQ(ParseKvCacheDType("int8_per_token_head"), vt::DType::kI8);
  for (const char* name : {"auto", "", "int8", "fp8_inc", "BFLOAT16"})
    EXPECT_EQ(ParseKvCacheDType(name), std::nullopt) << name;
}

TEST(KvCacheSpec, ListsEveryNameAndNamesTypesByTheirFirst) {
  EXPECT_EQ(KvCacheDTypeNames(), "auto, bfloat16, float16, float32, fp8, fp8_e4m3, fp8_e5m2, int8_per_token_head");
  EXPECT_EQ(KvCacheDTypeName(vt::DType::kF8E4M3), "fp8");
  EXPECT_EQ(KvCacheDTypeName(vt::DType::kBF16), "bfloat16");
}

TEST(KvCacheSpec, AutomaticIsBf16AndFloat32InExactNumerics) {
  EXPECT_EQ(DefaultKvCacheDType(vt::Numerics::kDefault), vt::DType::kBF16);
  EXPECT_EQ(DefaultKvCacheDType(vt::Numerics::kInvariant), vt::DType::kBF16);
  EXPECT_EQ(DefaultKvCacheDType(vt::Numerics::kExact), vt::DType::kF32);
}

}  // namespace
}  // namespace vllm
