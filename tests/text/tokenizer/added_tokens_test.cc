// Added tokens with every flag; whole texts with them are compared with Hugging Face in tokenizer_test.cc.
#include "text/tokenizer/added_tokens.h"

#include <gtest/gtest.h>

namespace vllm {
namespace {

using tokenizer::AddedToken;
using tokenizer::AddedTokens;

AddedTokens Make(std::vector<AddedToken> tokens) {
  return AddedTokens(std::move(tokens), [](const std::string& text) { return text; });
}

// Text stands for itself, a token for its id in brackets.
std::string Shape(const AddedTokens& tokens, std::string_view text, bool parse_special = true) {
  std::string out;
  for (const tokenizer::Segment& segment : tokens.Split(text, false, parse_special)) {
    out += segment.id < 0 ? std::string(text.substr(segment.begin, segment.end - segment.begin))
                          : "[" + std::to_string(segment.id) + "]";
  }
  return out;
}

TEST(AddedTokens, TheLongestOfSeveralThatStartAtOnePlaceWins) {
  const AddedTokens tokens =
      Make({{.id = 1, .content = "ab"}, {.id = 2, .content = "abcd"}, {.id = 3, .content = "bc"}});
  EXPECT_EQ(Shape(tokens, "xabcdabcx"), "x[2][1]cx");
}

TEST(AddedTokens, SpecialOnesStayTextOnRequest) {
  const AddedTokens tokens = Make({{.id = 1, .content = "<a>", .special = true}, {.id = 2, .content = "<b>"}});
  EXPECT_EQ(Shape(tokens, "<a><b>", false), "<a>[2]");
}

TEST(AddedTokens, SingleWordsAreNotFoundInsideWords) {
  const AddedTokens tokens = Make({{.id = 1, .content = "ab", .single_word = true}});
  EXPECT_EQ(Shape(tokens, "ab xab abé ab-ab"), "[1] xab abé [1]-[1]");
}

TEST(AddedTokens, StrippingTakesTheSpacesBeside) {
  const AddedTokens tokens =
      Make({{.id = 1, .content = "<l>", .lstrip = true}, {.id = 2, .content = "<r>", .rstrip = true}});
  EXPECT_EQ(Shape(tokens, "a \u3000<l> b <r> \n<l>c"), "a[1] b [2][1]c");
}

TEST(AddedTokens, ManyTokensAndTurnsTakeLinearTime) {
  std::vector<AddedToken> many;
  for (int i = 0; i < 6000; ++i) many.push_back({.id = i, .content = "<unused" + std::to_string(i) + ">"});
  const AddedTokens tokens = Make(std::move(many));
  std::string text;
  for (int i = 0; i < 20000; ++i) text += "<unused17>hello<unuse";
  EXPECT_EQ(tokens.Split(text, false, true).size(), 40000u);
}

TEST(AddedTokens, IdsAreFoundByContentAndTokensById) {
  const AddedTokens tokens = Make({{.id = 4, .content = "x"}});
  EXPECT_EQ(tokens.Id("x"), 4);
  EXPECT_EQ(tokens.Id("y"), std::nullopt);
  EXPECT_EQ(tokens.Find(4)->content, "x");
  EXPECT_EQ(tokens.Find(5), nullptr);
}

}  // namespace
}  // namespace vllm
