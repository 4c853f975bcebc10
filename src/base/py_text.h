// Numbers and lists as Python prints them: vLLM's error messages quote values that way.
#pragma once
#include <cstdint>
#include <span>
#include <string>

namespace base {

// repr(float): shortest text that reads back, "2.0", "1e+308", "nan", "-inf".
std::string PyRepr(double value);
// "[1, 2]".
std::string PyRepr(std::span<const int32_t> values);
// "['a', 'b']" with Python's choice of quotes and escapes for ASCII; other characters stay as they are.
std::string PyRepr(std::span<const std::string> values);

}  // namespace base
