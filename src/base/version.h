// The version of this program and of the vLLM whose semantics it follows.
#pragma once
#include <string_view>

namespace base {

inline constexpr std::string_view kVersion = "0.1.0";
inline constexpr std::string_view kVllmVersion = "0.33.0";

}  // namespace base
