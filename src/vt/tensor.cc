// Tensor: a typed, strided view of device memory.
#include "vt/tensor.h"

#include "base/check.h"

namespace vt {

std::string_view DeviceName(DeviceType type) {
  switch (type) {
    case DeviceType::kCpu:
      return "cpu";
    case DeviceType::kCuda:
      return "cuda";
    case DeviceType::kVulkan:
      return "vulkan";
    case DeviceType::kRef:
      return "ref";
    case DeviceType::kOpaque:
      return "opaque";
  }
  return "?";
}

std::optional<DeviceType> ParseDevice(std::string_view name) {
  for (DeviceType type : {DeviceType::kCpu, DeviceType::kRef, DeviceType::kOpaque})
    if (DeviceName(type) == name) return type;
  return std::nullopt;
}

std::string_view DTypeName(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "f32";
    case DType::kF16:
      return "f16";
    case DType::kBF16:
      return "bf16";
    case DType::kI32:
      return "i32";
    case DType::kI64:
      return "i64";
    case DType::kU8:
      return "u8";
    case DType::kI8:
      return "i8";
    case DType::kF8E4M3:
      return "f8_e4m3";
    case DType::kF8E5M2:
      return "f8_e5m2";
  }
  return "?";
}

int64_t Tensor::elements() const {
  int64_t count = 1;
  for (int i = 0; i < rank; ++i) count *= shape[i];
  return count;
}

bool Tensor::is_contiguous() const {
  int64_t expected = 1;
  for (int i = rank - 1; i >= 0; --i) {
    if (shape[i] != 1 && stride[i] != expected) return false;
    expected *= shape[i];
  }
  return true;
}

Tensor MakeTensor(std::byte* data, DType dtype, std::initializer_list<int64_t> shape, DeviceId device) {
  CHECK(shape.size() <= kMaxRank, "rank ", shape.size());
  Tensor tensor{.data = data, .dtype = dtype, .rank = static_cast<uint8_t>(shape.size()), .device = device};
  int i = 0;
  for (int64_t size : shape) {
    CHECK(size >= 0, "dimension ", i, " is ", size);
    tensor.shape[i++] = size;
  }
  int64_t stride = 1;
  for (i = tensor.rank - 1; i >= 0; --i) {
    tensor.stride[i] = stride;
    stride *= tensor.shape[i];
  }
  return tensor;
}

Tensor FirstRows(Tensor tensor, int64_t rows) { return Rows(tensor, 0, rows); }

Tensor Rows(Tensor tensor, int64_t begin, int64_t rows) {
  CHECK(tensor.rank > 0 && begin >= 0 && rows >= 0 && begin + rows <= tensor.shape[0], "rows ", begin, "+", rows,
        " of ", tensor.shape[0]);
  tensor.data += begin * tensor.stride[0] * DTypeBytes(tensor.dtype);
  tensor.shape[0] = rows;
  return tensor;
}

}  // namespace vt
