// UTF-8 walking and the character properties that tokenizers ask for. All text is valid UTF-8.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace vllm::tokenizer {

inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD
inline constexpr std::string_view kLowerBlock = "\xE2\x96\x81";   // U+2581, SentencePiece's space

// Bytes of the character that starts with `lead`, 1..4.
inline size_t CharBytes(char lead) {
  const auto byte = static_cast<uint8_t>(lead);
  return byte < 0xC0 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}
// The character at `at`, which is a boundary inside `text`.
char32_t CharAt(std::string_view text, size_t at);
// Start of the character that ends at `end` > 0.
size_t CharBefore(std::string_view text, size_t end);
void AppendChar(std::string& out, char32_t c);
size_t CountChars(std::string_view text);

bool IsWhitespace(char32_t c);      // White_Space
bool IsNumeric(char32_t c);         // N*
bool IsPunctuation(char32_t c);     // P* or ASCII punctuation
bool IsOther(char32_t c);           // C*
bool IsMark(char32_t c);            // M*
bool IsNonspacingMark(char32_t c);  // Mn
bool IsWord(char32_t c);            // Alphabetic, M*, Nd, Pc, join controls: \w of the Rust regex crate
bool IsChinese(char32_t c);         // the ideograph blocks that BERT surrounds with spaces
// Appends the lower-case form of `c`, which may be two characters.
void AppendLower(std::string& out, char32_t c);

enum class Form { kNfc, kNfd, kNfkc, kNfkd };
std::string Normalized(std::string_view text, Form form);
// End of the grapheme cluster that starts at `at`.
size_t GraphemeEnd(std::string_view text, size_t at);

// Byte -> the printable character that byte-level vocabularies spell it with (U+0021..U+0143), as UTF-8.
std::string_view ByteSpelling(uint8_t byte);
// Character -> byte, or -1 when it is not one of those.
int SpelledByte(char32_t c);
// The bytes that a byte-level spelling stands for; false (and `out` untouched) if a character is not of that alphabet.
bool AppendSpelledBytes(std::string& out, std::string_view spelling);

// Outside text as it may stand in a one-line message: valid UTF-8, control characters escaped, cut after 80 bytes.
std::string Shown(std::string_view text);
// The same for a path, which is not cut.
std::string ShownPath(std::string_view path);

}  // namespace vllm::tokenizer
