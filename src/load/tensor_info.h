// A named tensor of a model file: format, shape and where its bytes lie.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "quant/format.h"

namespace vllm {

struct TensorInfo {
  std::string name = {};
  // kNone for a safetensors dtype without a row in the format table (U8, F8_E4M3, …); `dtype` names it.
  vt::FormatId format = vt::FormatId::kF32;
  // Outermost first: [n, k] for a linear (GGUF's ne reversed). Empty for a scalar. The product fits an int64.
  std::vector<int64_t> shape = {};
  // Exactly the tensor's bytes, aligned to its element at least (a misaligned file's tensors are copied on load).
  std::span<const std::byte> data = {};
  // Index into Checkpoint::files, or -1 when `data` is a copy and no file range.
  int file_index = -1;
  // The file's own word for the format: "BF16", "F8_E4M3", "Q4_K".
  std::string dtype = {};

  // Product of the shape.
  int64_t elements() const {
    int64_t product = 1;
    for (const int64_t extent : shape) product *= extent;
    return product;
  }
};

}  // namespace vllm
