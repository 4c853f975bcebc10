// Python's str over UTF-8: code points, character classes, case mapping, splitting, stripping. Thread-safe, no limits
// of its own.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vllm::jinja {

// Decodes the code point at `pos` and moves behind it. A byte that starts no well-formed sequence is returned as
// itself.
char32_t DecodeUtf8(std::string_view text, size_t& pos);
void AppendUtf8(std::string& out, char32_t code_point);
int64_t CountCodePoints(std::string_view text);
// Byte offset of the code point with this index; text.size() at or beyond the end.
size_t ByteOffset(std::string_view text, int64_t index);
// Byte length of the sequence that starts at `pos`.
size_t SequenceLength(std::string_view text, size_t pos);

// Character classes as Python defines them.
bool IsSpace(char32_t c);
bool IsAlpha(char32_t c);
bool IsDecimal(char32_t c);
bool IsDigit(char32_t c);
bool IsNumeric(char32_t c);
bool IsAlnum(char32_t c);
bool IsUpper(char32_t c);
bool IsLower(char32_t c);
bool IsTitle(char32_t c);
bool IsCased(char32_t c);
bool IsPrintable(char32_t c);
bool IsIdentifierStart(char32_t c);
bool IsIdentifierPart(char32_t c);
// The value of a decimal digit of any script, or -1.
int DecimalValue(char32_t c);

std::string ToUpper(std::string_view text);
std::string ToLower(std::string_view text);
std::string ToTitle(std::string_view text);  // str.title()
std::string Capitalize(std::string_view text);
std::string SwapCase(std::string_view text);
std::string CaseFold(std::string_view text);
bool AllIn(std::string_view text, bool (*in_class)(char32_t));  // false for ""
bool StrIsUpper(std::string_view text);
bool StrIsLower(std::string_view text);
bool StrIsTitle(std::string_view text);

enum class Side { kLeft, kRight, kBoth };
std::string_view StripSpace(std::string_view text, Side side);
std::string_view StripChars(std::string_view text, std::string_view chars, Side side);
// max < 0: no limit. An empty separator is the caller's error.
std::vector<std::string_view> SplitOn(std::string_view text, std::string_view separator, int64_t max);
std::vector<std::string_view> SplitOnFromRight(std::string_view text, std::string_view separator, int64_t max);
std::vector<std::string_view> SplitSpace(std::string_view text, int64_t max);
std::vector<std::string_view> SplitSpaceFromRight(std::string_view text, int64_t max);
std::vector<std::string_view> SplitLines(std::string_view text, bool keep_ends);
// count < 0: all.
std::string ReplaceAll(std::string_view text, std::string_view old, std::string_view with, int64_t count);
// Size that ReplaceAll would give.
int64_t ReplacedSize(std::string_view text, std::string_view old, std::string_view with, int64_t count);
int64_t CountOf(std::string_view text, std::string_view part);
// Like text.find(part, from), in linear time whatever the two are.
size_t FindText(std::string_view text, std::string_view part, size_t from = 0);
std::string EscapeHtml(std::string_view text);

}  // namespace vllm::jinja
