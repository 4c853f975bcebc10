// Rewriting of regular expressions; that the results split alike is shown with the pre-tokenizers.
#include <gtest/gtest.h>

#include "base/result.h"
#include "text/tokenizer/regex.h"

namespace vllm {
namespace {

std::string Refusal(std::string_view pattern) {
  try {
    tokenizer::TranslateOniguruma(pattern);
  } catch (const base::Exception& e) {
    EXPECT_EQ(e.code(), base::ErrorCode::kUnsupported);
    return e.what();
  }
  return "";
}

TEST(Oniguruma, AnIntervalWithPlusIsRepeatedNotPossessive) {
  EXPECT_EQ(tokenizer::TranslateOniguruma("a(b|c){1,3}+"), "a(?:(b|c){1,3})+");
  EXPECT_EQ(tokenizer::TranslateOniguruma("a{,3}"), "a{0,3}");
}

TEST(Oniguruma, DotAllIsSpelledByAnotherLetter) { EXPECT_EQ(tokenizer::TranslateOniguruma("(?im:a)"), "(?is:a)"); }

TEST(Oniguruma, WhatMeansSomethingElseIsRefusedByName) {
  EXPECT_NE(Refusal("[a&&[b]]").find("class intersection"), std::string::npos);
  EXPECT_NE(Refusal("[a[b]]").find("a class within a class"), std::string::npos);
  EXPECT_NE(Refusal("[[:alpha:]]").find("a POSIX class"), std::string::npos);
  EXPECT_NE(Refusal("(?~a)").find("a group of an unknown kind"), std::string::npos);
  EXPECT_NE(Refusal("(*FAIL)").find("a verb"), std::string::npos);
  EXPECT_NE(Refusal("a{2}?").find("a lazy fixed repetition"), std::string::npos);
  EXPECT_NE(Refusal("\\xe9").find("a byte"), std::string::npos);
  EXPECT_NE(Refusal("\\y").find("an unknown escape"), std::string::npos);
  EXPECT_NE(Refusal("[\\y]").find("an unknown escape"), std::string::npos);
}

TEST(Oniguruma, RefusalsStayOnOneLine) {
  EXPECT_EQ(Refusal("a\n[b").find('\n'), std::string::npos);
  EXPECT_NE(Refusal("a\n[b").find("a\\x0a[b"), std::string::npos);
}

TEST(Oniguruma, UnfinishedPatternsAreRefused) {
  for (const char* pattern : {"[a", "\\", "[\\", "(?i", "(?#a", "\\p{L", "\\u12", ")"})
    EXPECT_NE(Refusal(pattern), "") << pattern;
}

}  // namespace
}  // namespace vllm
