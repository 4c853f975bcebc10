// Rewrites Oniguruma's Ruby syntax to PCRE2's where the two differ in meaning.
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/tokenizer/regex.h"
#include "text/tokenizer/unicode.h"

namespace vllm::tokenizer {
namespace {

// White_Space. PCRE2's own \s also holds U+180E.
constexpr std::string_view kSpace =
    "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}";
// PCRE2's own \w lacks marks and most connectors. Outside of a class Oniguruma counts the numbers of Latin-1 in.
constexpr std::string_view kWordInClass = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}";
constexpr std::string_view kWord = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}";

class Translator {
 public:
  explicit Translator(std::string_view pattern) : in_(pattern) {}

  std::string Run() {
    while (at_ < in_.size()) {
      switch (in_[at_]) {
        case '\\':
          Escape();
          break;
        case '[':
          Class();
          break;
        case '(':
          Group();
          break;
        case ')':
          CloseGroup();
          break;
        case '{':
          Braces();
          break;
        case '|':
          Plain();
          atom_ = out_.size();
          break;
        case '*':
        case '+':
        case '?':
          Plain();
          break;
        default:
          Char();
          break;
      }
    }
    return std::move(out_);
  }

 private:
  [[noreturn]] void Refuse(std::string_view what) const {
    base::Throw(base::ErrorCode::kUnsupported, "regular expression '", Shown(in_), "' uses ", what, " at byte ", at_,
                ", which is not supported");
  }
  char Peek(size_t ahead) const { return at_ + ahead < in_.size() ? in_[at_ + ahead] : '\0'; }
  void Plain() { out_ += in_[at_++]; }
  void Char() {
    atom_ = out_.size();
    const size_t size = std::min(CharBytes(in_[at_]), in_.size() - at_);
    out_ += in_.substr(at_, size);
    at_ += size;
  }

  // Copies \p{..}, \x{..} and their kind; the letter is at at_ + 1.
  void CopyEscape() {
    out_ += in_.substr(at_, 2);
    at_ += 2;
    if (at_ >= in_.size() || in_[at_] != '{') return;
    const size_t close = in_.find('}', at_);
    if (close == std::string_view::npos) Refuse("an escape without its closing brace");
    out_ += in_.substr(at_, close + 1 - at_);
    at_ = close + 1;
  }

  bool CommonEscape(char letter) {  // the same inside and outside of a class
    switch (letter) {
      case 'v':
        out_ += "\\x{b}";
        at_ += 2;
        return true;
      case 'u':
        if (at_ + 6 > in_.size()) Refuse("\\u without four digits");
        out_ += "\\x{" + std::string(in_.substr(at_ + 2, 4)) + "}";
        at_ += 6;
        return true;
      case 'x':
        // Without braces Oniguruma means a byte, PCRE2 a character.
        if (Peek(2) != '{' && Peek(2) >= '8') Refuse("a byte that is not ASCII");
        CopyEscape();
        return true;
      case 'd':
      case 'D':
      case 'p':
      case 'P':
      case 't':
      case 'n':
      case 'r':
      case 'f':
      case 'a':
      case 'e':
        CopyEscape();
        return true;
      default:
        break;
    }
    if (static_cast<uint8_t>(letter) < 0x80 && !IsWord(static_cast<uint8_t>(letter))) {
      out_ += in_.substr(at_, 2);
      at_ += 2;
      return true;
    }
    return false;
  }

  void Escape() {
    if (at_ + 1 >= in_.size()) Refuse("a trailing backslash");
    const char letter = in_[at_ + 1];
    atom_ = out_.size();
    if (CommonEscape(letter)) return;
    const std::string word = "[" + std::string(kWord) + "]";
    std::string text;
    switch (letter) {
      case 's':
        text = "[" + std::string(kSpace) + "]";
        break;
      case 'S':
        text = "[^" + std::string(kSpace) + "]";
        break;
      case 'w':
        text = word;
        break;
      case 'W':
        text = "[^" + std::string(kWord) + "]";
        break;
      case 'h':
        text = "[0-9a-fA-F]";
        break;
      case 'H':
        text = "[^0-9a-fA-F]";
        break;
      case 'b':
        text = "(?:(?<=" + word + ")(?!" + word + ")|(?<!" + word + ")(?=" + word + "))";
        break;
      case 'B':
        text = "(?:(?<=" + word + ")(?=" + word + ")|(?<!" + word + ")(?!" + word + "))";
        break;
      case 'A':
      case 'Z':
      case 'z':
      case 'G':
      case 'R':
      case 'X':
        text = in_.substr(at_, 2);
        break;
      default:
        if (letter < '1' || letter > '9') Refuse("an unknown escape");
        text = in_.substr(at_, 2);
    }
    out_ += text;
    at_ += 2;
  }

  void Class() {
    atom_ = out_.size();
    Plain();
    if (Peek(0) == '^') Plain();
    bool first = true;
    for (;; first = false) {
      if (at_ >= in_.size()) Refuse("a character class without its end");
      const char c = in_[at_];
      if (c == ']' && !first) break;
      if (c == '[') Refuse(Peek(1) == ':' ? "a POSIX class" : "a class within a class");
      if (c == '&' && Peek(1) == '&') Refuse("class intersection (&&)");
      if (c == ']') {
        out_ += "\\]";
        ++at_;
      } else if (c == '\\') {
        ClassEscape();
      } else {
        Plain();
      }
    }
    Plain();
  }

  void ClassEscape() {
    if (at_ + 1 >= in_.size()) Refuse("a trailing backslash");
    const char letter = in_[at_ + 1];
    if (CommonEscape(letter)) return;
    switch (letter) {
      case 's':
        out_ += kSpace;
        break;
      case 'S':
        out_ += "\\S\\x{180e}";
        break;
      case 'w':
        out_ += kWordInClass;
        break;
      case 'h':
        out_ += "0-9a-fA-F";
        break;
      case 'b':
        out_ += "\\x{8}";
        break;
      default:
        Refuse("an unknown escape in a character class");
    }
    at_ += 2;
  }

  void Group() {
    groups_.push_back(out_.size());
    Plain();
    if (Peek(0) == '*') Refuse("a verb");
    if (Peek(0) != '?') return;
    const char kind = Peek(1);
    if (kind == ':' || kind == '=' || kind == '!' || kind == '>') {
      out_ += in_.substr(at_, 2);
      at_ += 2;
    } else if (kind == '<') {
      out_ += in_.substr(at_, 3);
      at_ = std::min(at_ + 3, in_.size());
    } else if (kind == '#') {
      const size_t close = in_.find(')', at_);
      if (close == std::string_view::npos) Refuse("a comment without its end");
      out_.pop_back();
      groups_.pop_back();
      at_ = close + 1;
    } else {
      Flags();
    }
  }

  void Flags() {
    Plain();  // '?'
    while (at_ < in_.size() && in_[at_] != ':' && in_[at_] != ')') {
      switch (in_[at_]) {
        case 'i':
        case 'x':
        case '-':
          out_ += in_[at_];
          break;
        case 'm':
          out_ += 's';
          break;  // Ruby's m is "dot matches newline"
        default:
          Refuse("a group of an unknown kind");
      }
      ++at_;
    }
    if (at_ >= in_.size()) Refuse("a group without its end");
    if (in_[at_] == ':') Plain();
  }

  void CloseGroup() {
    if (groups_.empty()) Refuse("a closing parenthesis without its opening one");
    atom_ = groups_.back();
    groups_.pop_back();
    Plain();
  }

  // {n,m}: Ruby knows no possessive interval, {n,m}+ repeats it.
  void Braces() {
    const size_t close = in_.find('}', at_);
    const std::string_view body = close == std::string_view::npos ? "" : in_.substr(at_ + 1, close - at_ - 1);
    if (body.empty() || body == "," || body.find_first_not_of("0123456789,") != std::string_view::npos) {
      atom_ = out_.size();
      out_ += "\\{";
      ++at_;
      return;
    }
    out_ += body[0] == ',' ? "{0" : "{";
    out_ += body;
    out_ += '}';
    at_ = close + 1;
    if (Peek(0) == '+') {
      out_.insert(atom_, "(?:");
      out_ += ')';
    } else if (Peek(0) == '?' && body.find(',') == std::string_view::npos) {
      Refuse("a lazy fixed repetition");
    }
  }

  std::string_view in_;
  size_t at_ = 0;
  std::string out_;
  size_t atom_ = 0;             // where the last atom begins in out_
  std::vector<size_t> groups_;  // where the open groups begin in out_
};

}  // namespace

std::string TranslateOniguruma(std::string_view pattern) { return Translator(pattern).Run(); }

}  // namespace vllm::tokenizer
