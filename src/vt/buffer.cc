// Buffer: owned device memory.
#include "vt/buffer.h"

#include <utility>

#include "base/check.h"

namespace vt {

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this == &other) return *this;
  Reset();
  device_ = other.device_;
  data_ = std::exchange(other.data_, nullptr);
  size_ = std::exchange(other.size_, 0);
  free_ = std::exchange(other.free_, nullptr);
  return *this;
}

void Buffer::Reset() noexcept {
  if (data_ && free_) free_(data_, size_);
  data_ = nullptr;
}

Tensor Buffer::View(DType dtype, std::initializer_list<int64_t> shape, size_t offset) const {
  const Tensor view = MakeTensor(data_ + offset, dtype, shape, device_);
  CHECK(offset + static_cast<size_t>(view.bytes()) <= size_, "view of ", view.bytes(), " bytes at ", offset,
        " in a buffer of ", size_);
  return view;
}

std::string_view NumericsName(Numerics numerics) {
  switch (numerics) {
    case Numerics::kExact:
      return "exact";
    case Numerics::kDefault:
      return "default";
    case Numerics::kInvariant:
      return "invariant";
    case Numerics::kFast:
      return "fast";
  }
  return "?";
}

std::optional<Numerics> ParseNumerics(std::string_view name) {
  for (Numerics numerics : {Numerics::kExact, Numerics::kDefault, Numerics::kInvariant, Numerics::kFast})
    if (NumericsName(numerics) == name) return numerics;
  return std::nullopt;
}

}  // namespace vt
