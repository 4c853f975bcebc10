// Regular expressions of tokenizer files: Oniguruma syntax (as Hugging Face's tokenizers use it) run by PCRE2's JIT
// compiler.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

struct pcre2_real_code_8;
struct pcre2_real_match_data_8;

namespace vllm::tokenizer {

// The same language in PCRE2's syntax (with UTF, UCP and MULTILINE). Throws base::Exception (kUnsupported) naming the
// construct when it means something else, or nothing, there: class intersection, nested classes, absent operators,
// recursion.
std::string TranslateOniguruma(std::string_view pattern);

// Immutable, shareable between threads.
class Regex {
 public:
  // Of an Oniguruma pattern. Throws base::Exception (kUnsupported) with pattern, offset and reason.
  static Regex FromOniguruma(std::string_view pattern);
  // Of a pattern that is PCRE2's own.
  static Regex FromPcre(const std::string& pattern);
  // Of a literal.
  static Regex FromLiteral(std::string_view literal);

  // One pass over a subject. `subject` is valid UTF-8 and outlives the scan; look-arounds see all of it.
  class Scan {
   public:
    Scan(const Regex& regex, std::string_view subject);
    // The next match, left to right; an empty match directly after another match is skipped. Throws base::Exception
    // (kInvalidArgument) when the pattern backtracks beyond PCRE2's limit.
    bool Next();
    size_t begin() const { return begin_; }
    size_t end() const { return end_; }

   private:
    struct FreeMatchData {
      void operator()(pcre2_real_match_data_8* data) const;
    };
    const Regex& regex_;
    std::string_view subject_;
    std::unique_ptr<pcre2_real_match_data_8, FreeMatchData> data_;
    size_t at_ = 0, begin_ = 0, end_ = 0;
    size_t last_end_ = static_cast<size_t>(-1);
  };

 private:
  explicit Regex(std::shared_ptr<const pcre2_real_code_8> code, bool jit) : code_(std::move(code)), jit_(jit) {}
  // Shared by the copies of a normalizer or pre-tokenizer that holds it.
  std::shared_ptr<const pcre2_real_code_8> code_;
  bool jit_;
};

}  // namespace vllm::tokenizer
