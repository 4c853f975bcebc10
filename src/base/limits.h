// Every bound on outside input and on queues, each with its reason. Exceeding one is an error that names it.
#pragma once
#include <cstddef>
#include <cstdint>

namespace base {

// JSON of clients: deep enough for any tool schema seen, far below where copying or dumping would exhaust a stack.
inline constexpr int kMaxJsonDepth = 128;

}  // namespace base
