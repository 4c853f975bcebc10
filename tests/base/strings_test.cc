// Text helpers: concatenation, UTF-8, splitting, nearest names.
#include "base/strings.h"

#include <gtest/gtest.h>

namespace base {
namespace {

TEST(Strings, StrCatJoinsTextNumbersAndBooleans) {
  EXPECT_EQ(StrCat("a", 1, ' ', -2, true, std::string("z"), uint64_t{18446744073709551615u}),
            "a1 -2truez18446744073709551615");
}

TEST(Strings, StrCatPrintsDoublesShort) { EXPECT_EQ(StrCat(0.5, ",", 1e9), "0.5,1e+09"); }

TEST(Strings, WellFormedUtf8IsValid) {
  EXPECT_TRUE(IsValidUtf8(""));
  EXPECT_TRUE(IsValidUtf8("a\xC3\xA9\xE2\x82\xAC\xF0\x9F\xA6\x99"));
  EXPECT_TRUE(IsValidUtf8("\xF4\x8F\xBF\xBF"));  // U+10FFFF
}

TEST(Strings, IllFormedUtf8IsInvalid) {
  for (const char* text : {"\x80", "\xC0\x80", "\xC3", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80",
                           "\xF5\x80\x80\x80", "\xF0\x9F\xA6"}) {
    EXPECT_FALSE(IsValidUtf8(text));
  }
}

TEST(Strings, EachMaximalIllFormedPartIsReplacedOnce) {
  EXPECT_EQ(ReplaceInvalidUtf8("a\xF0\x9F\xA6z"), "a\xEF\xBF\xBDz");  // one cut character
  EXPECT_EQ(ReplaceInvalidUtf8("\xED\xA0\x80"),
            "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");  // a surrogate: no valid prefix
  EXPECT_EQ(ReplaceInvalidUtf8("\xC3\xC3\xA9"), "\xEF\xBF\xBD\xC3\xA9");
  EXPECT_EQ(ReplaceInvalidUtf8("h\xC3\xA9"), "h\xC3\xA9");
}

TEST(Strings, SplitKeepsEmptyParts) {
  EXPECT_EQ(Split("a,,b,", ','), (std::vector<std::string_view>{"a", "", "b", ""}));
  EXPECT_EQ(Split("", ','), (std::vector<std::string_view>{""}));
}

TEST(Strings, JoinPutsSeparatorsBetween) {
  const std::vector<std::string> parts = {"a", "b", "c"};
  EXPECT_EQ(Join(parts, ", "), "a, b, c");
  EXPECT_EQ(Join({}, ", "), "");
}

TEST(Strings, ToLowerChangesAsciiOnly) { EXPECT_EQ(ToLower("ABz\xC3\x89"), "abz\xC3\x89"); }

TEST(Strings, EditDistanceCountsInsertionsDeletionsAndSubstitutions) {
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3);
  EXPECT_EQ(EditDistance("", "abc"), 3);
  EXPECT_EQ(EditDistance("abc", "abc"), 0);
}

TEST(Strings, NearestFindsATypo) {
  const std::vector<std::string> names = {"max-model-len", "max-num-seqs", "port"};
  EXPECT_EQ(Nearest("max-modle-len", names), "max-model-len");
  EXPECT_EQ(Nearest("prot", names), "");  // two edits are more than a third of four letters
  EXPECT_EQ(Nearest("por", names), "port");
}

TEST(Strings, HumanBytesUsesBinaryUnits) {
  EXPECT_EQ(HumanBytes(512), "512 B");
  EXPECT_EQ(HumanBytes(1536), "1.5 KiB");
  EXPECT_EQ(HumanBytes(uint64_t{3} << 30), "3.0 GiB");
  EXPECT_EQ(HumanBytes(uint64_t{150} << 20), "150 MiB");
}

}  // namespace
}  // namespace base
