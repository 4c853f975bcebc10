// Tensors are views: shapes, rows and contiguity.
#include "vt/tensor.h"

#include <gtest/gtest.h>

#include "base/check.h"
#include "vt/buffer.h"

namespace vt {
namespace {

TEST(TensorTest, MakesRowMajorStrides) {
  float data[24];
  const Tensor tensor = MakeTensor(reinterpret_cast<std::byte*>(data), DType::kF32, {2, 3, 4}, {});
  EXPECT_EQ(tensor.stride[0], 12);
  EXPECT_EQ(tensor.stride[2], 1);
  EXPECT_EQ(tensor.elements(), 24);
  EXPECT_EQ(tensor.bytes(), 96);
  EXPECT_TRUE(tensor.is_contiguous());
}

TEST(TensorTest, RowsMoveThePointerByWholeRows) {
  float data[12] = {};
  const Tensor tensor = MakeTensor(reinterpret_cast<std::byte*>(data), DType::kF32, {4, 3}, {});
  const Tensor rows = Rows(tensor, 1, 2);
  EXPECT_EQ(rows.as<float>(), data + 3);
  EXPECT_EQ(rows.shape[0], 2);
  EXPECT_THROW(Rows(tensor, 3, 2), base::InternalError);
}

TEST(TensorTest, AStridedViewIsNotContiguous) {
  float data[12];
  Tensor tensor = MakeTensor(reinterpret_cast<std::byte*>(data), DType::kF32, {4, 3}, {});
  tensor.shape[1] = 2;
  EXPECT_FALSE(tensor.is_contiguous());
}

TEST(TensorTest, RefusesNegativeDimensions) {
  EXPECT_THROW(MakeTensor(nullptr, DType::kF32, {-1}, {}), base::InternalError);
}

TEST(TensorTest, DeviceAndNumericsNamesRoundTrip) {
  for (const DeviceType device : {DeviceType::kCpu, DeviceType::kRef, DeviceType::kOpaque})
    EXPECT_EQ(ParseDevice(DeviceName(device)), device);
  EXPECT_EQ(ParseDevice("cuda"), std::nullopt);
  for (const Numerics numerics : {Numerics::kExact, Numerics::kDefault, Numerics::kInvariant, Numerics::kFast})
    EXPECT_EQ(ParseNumerics(NumericsName(numerics)), numerics);
  EXPECT_EQ(ParseNumerics("bf16"), std::nullopt);
}

}  // namespace
}  // namespace vt
