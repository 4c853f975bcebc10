// The numeric policy of a plan. It is part of a plan's key and is shown to users; nothing changes it silently.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace vt {

enum class Numerics : int8_t {
  kExact,      // f32 activations, weights and KV; each output row is bit-equal whatever the batch
  kDefault,    // BF16 KV; inputs of matrices rounded to 16 bits per 32, or for many rows to BF16 where that is faster
  kInvariant,  // as kDefault, with one recipe for every number of rows
  kFast,       // as kDefault, with inputs of matrices of integers rounded to 8 bits per 32 where that is faster
};

std::string_view NumericsName(Numerics numerics);
std::optional<Numerics> ParseNumerics(std::string_view name);

}  // namespace vt
