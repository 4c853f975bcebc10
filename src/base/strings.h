// Small text helpers: concatenation, UTF-8 checks, splitting, nearest names. Thread-safe, no allocation beyond the
// result.
#pragma once
#include <charconv>
#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace base {

inline void Append(std::string& out, std::string_view part) { out += part; }
// A template, because a plain bool parameter would win over string_view for a string literal.
template <std::same_as<bool> T>
void Append(std::string& out, T value) {
  out += value ? "true" : "false";
}
inline void Append(std::string& out, char value) { out += value; }
void Append(std::string& out, double value);
template <std::integral T>
  requires(!std::same_as<T, bool> && !std::same_as<T, char>)
void Append(std::string& out, T value) {
  char digits[24];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, value);
  out.append(digits, end);
}

// Joins strings, numbers and characters without separators.
template <class... Parts>
std::string StrCat(const Parts&... parts) {
  std::string out;
  (Append(out, parts), ...);
  return out;
}

bool IsValidUtf8(std::string_view text);
// Every byte that is not part of well-formed UTF-8 becomes U+FFFD (one per maximal subpart, as in the Unicode standard
// §3.9).
std::string ReplaceInvalidUtf8(std::string_view text);
std::vector<std::string_view> Split(std::string_view text, char separator);
std::string Join(std::span<const std::string> parts, std::string_view separator);
std::string ToLower(std::string_view ascii);
// Levenshtein distance over bytes.
int EditDistance(std::string_view a, std::string_view b);
// The candidate nearest to `name`, or "" when none is within a third of its length.
std::string Nearest(std::string_view name, std::span<const std::string> candidates);
// "1.5 GiB", "512 B".
std::string HumanBytes(uint64_t bytes);

}  // namespace base
