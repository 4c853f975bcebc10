// Python's number text and formatting: repr, str.format, the format mini-language, and % formatting. Also int() and
// float().
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "text/template/objects.h"
#include "text/template/value.h"

namespace vllm::jinja {

std::string IntText(Int value);
std::string FloatText(double value);  // repr(float): the shortest digits that give the same number
void AppendQuoted(std::string& out, std::string_view text);  // repr(str)
std::string AsciiRepr(std::string_view repr);                // ascii(): non-ASCII escaped

// int(text, base) and float(text); nothing where Python raises ValueError. Fails beyond 128 bits.
std::optional<Int> ParseInt(std::string_view text, int base);
std::optional<double> ParseFloat(std::string_view text);

// format(value, spec)
std::string FormatValue(Budget& budget, const Value& value, std::string_view spec);
// text % values
std::string PercentFormat(Budget& budget, const Str& text, const Value& values);
// text.format(*args, **kwargs), fields resolved as the sandbox does
std::string StrFormat(Interpreter& interpreter, const Str& text, const Args& args);

}  // namespace vllm::jinja
