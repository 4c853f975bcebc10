// Outside text as it may stand in a one-line message.
#pragma once
#include <string>
#include <string_view>

namespace vllm {

// Valid UTF-8 without control characters (they become \n, \x1b, …), cut after `max_bytes` with an ellipsis.
std::string Printable(std::string_view text, size_t max_bytes = 200);
// The same for a path, which is long only when it matters.
inline std::string PrintablePath(std::string_view path) { return Printable(path, 4096); }

}  // namespace vllm
