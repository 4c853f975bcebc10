// The numeric policy of a plan. It is part of a plan's key and is shown to users; nothing changes it silently.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace vt {

enum class Numerics : int8_t {
  kExact,      // f32 activations, weights and KV; each output row is bit-equal whatever the batch
  kDefault,    // BF16 KV; matrix inputs may be rounded to BF16 or two int8 planes
  kInvariant,  // as kDefault, with one recipe for every number of rows
};

std::string_view NumericsName(Numerics numerics);
std::optional<Numerics> ParseNumerics(std::string_view name);

}  // namespace vt
