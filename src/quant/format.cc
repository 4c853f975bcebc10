// The table of number formats and its look-ups.
#include "quant/format.h"

#include <array>

#include "base/check.h"
#include "quant/conversions.h"

namespace vt {
namespace {

using enum FormatId;

// Sizes follow ggml's block structs.
constexpr std::array kFormats = {
    Format{kF32, "F32", 1, 4, DequantizeF32, QuantizeF32},
    Format{kF16, "F16", 1, 2, DequantizeF16, QuantizeF16},
    Format{kQ4_0, "Q4_0", 32, 18, DequantizeQ4_0, QuantizeQ4_0},
    Format{kQ4_1, "Q4_1", 32, 20, DequantizeQ4_1, QuantizeQ4_1},
    Format{kQ5_0, "Q5_0", 32, 22, DequantizeQ5_0, QuantizeQ5_0},
    Format{kQ5_1, "Q5_1", 32, 24, DequantizeQ5_1, QuantizeQ5_1},
    Format{kQ8_0, "Q8_0", 32, 34, DequantizeQ8_0, QuantizeQ8_0},
    Format{kQ8_1, "Q8_1", 32, 36, DequantizeQ8_1, nullptr},
    Format{kQ2_K, "Q2_K", 256, 84, DequantizeQ2_K, nullptr},
    Format{kQ3_K, "Q3_K", 256, 110, DequantizeQ3_K, nullptr},
    Format{kQ4_K, "Q4_K", 256, 144, DequantizeQ4_K, QuantizeQ4_K},
    Format{kQ5_K, "Q5_K", 256, 176, DequantizeQ5_K, QuantizeQ5_K},
    Format{kQ6_K, "Q6_K", 256, 210, DequantizeQ6_K, QuantizeQ6_K},
    Format{kQ8_K, "Q8_K", 256, 292, DequantizeQ8_K, nullptr},
    Format{kIQ2_XXS, "IQ2_XXS", 256, 66, DequantizeIQ2_XXS, nullptr},
    Format{kIQ2_XS, "IQ2_XS", 256, 74, DequantizeIQ2_XS, nullptr},
    Format{kIQ3_XXS, "IQ3_XXS", 256, 98, DequantizeIQ3_XXS, nullptr},
    Format{kIQ1_S, "IQ1_S", 256, 50, DequantizeIQ1_S, nullptr},
    Format{kIQ4_NL, "IQ4_NL", 32, 18, DequantizeIQ4_NL, nullptr},
    Format{kIQ3_S, "IQ3_S", 256, 110, DequantizeIQ3_S, nullptr},
    Format{kIQ2_S, "IQ2_S", 256, 82, DequantizeIQ2_S, nullptr},
    Format{kIQ4_XS, "IQ4_XS", 256, 136, DequantizeIQ4_XS, nullptr},
    Format{kI8, "I8", 1, 1, DequantizeI8, nullptr},
    Format{kI16, "I16", 1, 2, DequantizeI16, nullptr},
    Format{kI32, "I32", 1, 4, DequantizeI32, nullptr},
    Format{kI64, "I64", 1, 8, DequantizeI64, nullptr},
    Format{kF64, "F64", 1, 8, DequantizeF64, nullptr},
    Format{kIQ1_M, "IQ1_M", 256, 56, DequantizeIQ1_M, nullptr},
    Format{kBF16, "BF16", 1, 2, DequantizeBF16, QuantizeBF16},
    Format{kTQ1_0, "TQ1_0", 256, 54, DequantizeTQ1_0, QuantizeTQ1_0},
    Format{kTQ2_0, "TQ2_0", 256, 66, DequantizeTQ2_0, QuantizeTQ2_0},
    Format{kMXFP4, "MXFP4", 32, 17, DequantizeMXFP4, QuantizeMXFP4},
};

}  // namespace

const Format* FindFormat(int64_t gguf_type) {
  for (const Format& format : kFormats) {
    if (static_cast<int64_t>(format.id) == gguf_type) return &format;
  }
  return nullptr;
}

const Format* FindFormat(std::string_view name) {
  for (const Format& format : kFormats) {
    if (format.name == name) return &format;
  }
  return nullptr;
}

const Format& GetFormat(FormatId id) {
  const Format* format = FindFormat(static_cast<int64_t>(id));
  CHECK(format != nullptr, "format id ", static_cast<int>(id), " has no row in the table");
  return *format;
}

std::span<const Format> AllFormats() { return kFormats; }

std::optional<int64_t> RowBytes(const Format& format, int64_t k) {
  if (k < 0 || k % format.block_elements != 0) return std::nullopt;
  int64_t bytes = 0;
  if (__builtin_mul_overflow(k / format.block_elements, int64_t{format.block_bytes}, &bytes)) return std::nullopt;
  return bytes;
}

}  // namespace vt
