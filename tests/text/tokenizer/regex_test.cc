// Matching in one pass over long subjects.
#include "text/tokenizer/regex.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/result.h"

namespace vllm {
namespace {

using tokenizer::Regex;

std::vector<std::string> All(const Regex& regex, std::string_view text) {
  std::vector<std::string> out;
  for (Regex::Scan scan(regex, text); scan.Next();)
    out.emplace_back(text.substr(scan.begin(), scan.end() - scan.begin()));
  return out;
}

TEST(Regex, LookAroundsSeeTheWholeSubject) {
  EXPECT_EQ(All(Regex::FromOniguruma("(?<=a)b(?!c)"), "ab abc b"), (std::vector<std::string>{"b"}));
}

TEST(Regex, EmptyMatchesAdvance) { EXPECT_EQ(All(Regex::FromOniguruma("x*"), "axé").size(), 3u); }

TEST(Regex, LiteralsAreEscaped) {
  EXPECT_EQ(All(Regex::FromLiteral("a.b|(é"), "aXb a.b|(é"), (std::vector<std::string>{"a.b|(é"}));
}

TEST(Regex, RunsOfAMillionCharactersNeedNoStack) {
  const Regex llama = Regex::FromOniguruma(
      R"((?i:'s|'t)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)");
  for (const char c : {' ', '\n', 'a', '!'}) EXPECT_EQ(All(llama, std::string(1000000, c)).size(), 1u) << c;
}

TEST(Regex, CatastrophicBacktrackingIsAnErrorNotAHang) {
  const Regex regex = Regex::FromOniguruma("(a+)+$");
  EXPECT_THROW(All(regex, std::string(100000, 'a') + "b"), base::Exception);
}

TEST(Regex, ABadPatternIsRefusedWithItsText) {
  try {
    Regex::FromOniguruma("a(b");
    FAIL();
  } catch (const base::Exception& e) {
    EXPECT_NE(std::string(e.what()).find("a(b"), std::string::npos);
  }
  EXPECT_THROW(Regex::FromOniguruma(std::string(100000, 'a')), base::Exception);
}

}  // namespace
}  // namespace vllm
