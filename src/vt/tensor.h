// Tensor: a typed, strided view of device memory. It owns nothing and is trivially copyable.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "vt/device.h"
#include "vt/dtype.h"

namespace vt {

inline constexpr int kMaxRank = 5;

struct Tensor {
  std::byte* data = nullptr;  // on a device that is not host memory this address must not be dereferenced by the host
  DType dtype = DType::kF32;
  uint8_t rank = 0;
  std::array<int64_t, kMaxRank> shape = {};   // elements
  std::array<int64_t, kMaxRank> stride = {};  // elements
  DeviceId device = {};

  int64_t elements() const;
  // Bytes spanned by a contiguous tensor of this shape.
  int64_t bytes() const { return elements() * DTypeBytes(dtype); }
  bool is_contiguous() const;
  explicit operator bool() const { return data != nullptr; }

  // Typed host pointer; only for tensors in host memory, and inside kernels.
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data);
  }
};
static_assert(std::is_trivially_copyable_v<Tensor>);

// Row-major contiguous view.
Tensor MakeTensor(std::byte* data, DType dtype, std::initializer_list<int64_t> shape, DeviceId device);
// The first n entries of dimension 0.
Tensor FirstRows(Tensor tensor, int64_t rows);
// Rows [begin, begin + rows) of dimension 0.
Tensor Rows(Tensor tensor, int64_t begin, int64_t rows);

}  // namespace vt
