// Unicode facts that utf8proc's simple mappings lack: case mappings to several characters, digits, numbers.
#pragma once
#include <cstdint>
#include <span>

namespace vllm::jinja {

struct SpecialCase {
  char32_t code_point;
  char32_t to[3];  // zero-terminated when shorter
};
struct CodeRange {
  char32_t first, last;
};

std::span<const SpecialCase> SpecialUpper();  // sorted; str.upper() gives more than one character
std::span<const SpecialCase> SpecialTitle();  // likewise for titlecase
std::span<const CodeRange> DigitRanges();     // sorted; digits that are not decimal
std::span<const CodeRange> NumericRanges();   // sorted; numeric characters that are no digits
std::span<const CodeRange> OtherLowercase();  // sorted; lowercase by property, not of category Ll
std::span<const CodeRange> OtherUppercase();  // sorted; uppercase by property, not of category Lu

}  // namespace vllm::jinja
