// Number formats of weights: the names, block sizes and reference conversions of everything a model file may hold.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace vt {

// Values are GGUF's type numbers (ggml.h, enum ggml_type), so a file's number is an id once it is checked with
// FindFormat.
enum class FormatId : int16_t {
  kNone = -1,  // a dtype of another file format that has no row here
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ8_1 = 9,
  kQ2_K = 10,
  kQ3_K = 11,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kQ8_K = 15,
  kIQ2_XXS = 16,
  kIQ2_XS = 17,
  kIQ3_XXS = 18,
  kIQ1_S = 19,
  kIQ4_NL = 20,
  kIQ3_S = 21,
  kIQ2_S = 22,
  kIQ4_XS = 23,
  kI8 = 24,
  kI16 = 25,
  kI32 = 26,
  kI64 = 27,
  kF64 = 28,
  kIQ1_M = 29,
  kBF16 = 30,
  kTQ1_0 = 34,
  kTQ2_0 = 35,
  kMXFP4 = 39,
};

// Converts whole blocks: `count` is a multiple of block_elements. noexcept, thread-safe.
using DequantizeFn = void (*)(const std::byte* blocks, int64_t count, float* out);
// Reference packing (round to nearest as the format's own reference does); null where only reading is needed.
using QuantizeFn = void (*)(const float* in, int64_t count, std::byte* blocks);

struct Format {
  FormatId id = FormatId::kF32;
  std::string_view name;       // GGUF's spelling: "F32", "Q4_K", "IQ2_XXS"
  int32_t block_elements = 1;  // weights in one block
  int32_t block_bytes = 4;     // bytes of one block
  DequantizeFn dequantize = nullptr;
  QuantizeFn quantize = nullptr;
};

// Null for a number that is no format of the table.
const Format* FindFormat(int64_t gguf_type);
const Format* FindFormat(std::string_view name);
// The row of a format that is known to be in the table; CHECKs otherwise.
const Format& GetFormat(FormatId id);
std::span<const Format> AllFormats();

// Bytes of a row of k weights, or nullopt when k is not a multiple of the block.
std::optional<int64_t> RowBytes(const Format& format, int64_t k);

}  // namespace vt
