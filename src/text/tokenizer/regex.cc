// Compiles and runs patterns with PCRE2.
#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/tokenizer/regex.h"

#include <pcre2.h>

#include "base/limits.h"
#include "base/result.h"
#include "text/tokenizer/unicode.h"

namespace vllm::tokenizer {
namespace {

std::string MessageOf(int code) {
  PCRE2_UCHAR text[160] = {};
  pcre2_get_error_message(code, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

}  // namespace

Regex Regex::FromOniguruma(std::string_view pattern) { return FromPcre(TranslateOniguruma(pattern)); }

Regex Regex::FromLiteral(std::string_view literal) {
  std::string pattern;
  for (const char c : literal) {
    // Every ASCII character that is no letter or digit may be escaped; NUL and the rest stand for themselves.
    const bool plain = static_cast<uint8_t>(c) >= 0x80 || c == '\0' || IsWord(static_cast<uint8_t>(c));
    if (!plain) pattern += '\\';
    pattern += c;
  }
  return FromPcre(pattern);
}

Regex Regex::FromPcre(const std::string& pattern) {
  if (pattern.size() > base::kMaxRegexBytes) {
    base::Throw(base::ErrorCode::kUnsupported, "a regular expression of ", pattern.size(),
                " bytes exceeds the limit of ", base::kMaxRegexBytes);
  }
  const std::unique_ptr<pcre2_compile_context, decltype(&pcre2_compile_context_free)> context(
      pcre2_compile_context_create(nullptr), &pcre2_compile_context_free);
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &error, &offset, context.get());
  if (code == nullptr) {
    base::Throw(base::ErrorCode::kUnsupported, "regular expression '", Shown(pattern), "' at byte ", offset, ": ",
                MessageOf(error));
  }
  std::shared_ptr<const pcre2_code> owner(code,
                                          [](const pcre2_code* p) { pcre2_code_free(const_cast<pcre2_code*>(p)); });
  const bool jit = pcre2_jit_compile(code, PCRE2_JIT_COMPLETE) == 0;
  return Regex(std::move(owner), jit);
}

void Regex::Scan::FreeMatchData::operator()(pcre2_real_match_data_8* data) const { pcre2_match_data_free(data); }

Regex::Scan::Scan(const Regex& regex, std::string_view subject)
    : regex_(regex), subject_(subject), data_(pcre2_match_data_create(1, nullptr)) {}

bool Regex::Scan::Next() {
  const auto* text = reinterpret_cast<PCRE2_SPTR>(subject_.data());
  while (at_ <= subject_.size()) {
    // PCRE2_NO_UTF_CHECK: otherwise every call validates the rest of the subject, which is quadratic.
    int found = PCRE2_ERROR_JIT_STACKLIMIT;
    if (regex_.jit_) {
      found = pcre2_jit_match(regex_.code_.get(), text, subject_.size(), at_, PCRE2_NO_UTF_CHECK, data_.get(), nullptr);
    }
    if (found == PCRE2_ERROR_JIT_STACKLIMIT) {  // the interpreter keeps its frames on the heap
      found = pcre2_match(regex_.code_.get(), text, subject_.size(), at_, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                          data_.get(), nullptr);
    }
    if (found == PCRE2_ERROR_NOMATCH) break;
    if (found < 0) {
      base::Throw(base::ErrorCode::kInvalidArgument, "the tokenizer's regular expression failed at byte ", at_, ": ",
                  MessageOf(found));
    }
    const PCRE2_SIZE* span = pcre2_get_ovector_pointer(data_.get());
    begin_ = span[0];
    end_ = span[1];
    if (begin_ > end_ || begin_ < at_) {  // \K inside a look-around
      base::Throw(base::ErrorCode::kInvalidArgument,
                  "the tokenizer's regular expression moves its match start at byte ", at_);
    }
    if (begin_ == end_ && begin_ == last_end_) {
      at_ = end_ < subject_.size() ? end_ + CharBytes(subject_[end_]) : end_ + 1;
      last_end_ = end_;
      continue;
    }
    at_ = last_end_ = end_;
    return true;
  }
  at_ = subject_.size() + 1;
  return false;
}

}  // namespace vllm::tokenizer
