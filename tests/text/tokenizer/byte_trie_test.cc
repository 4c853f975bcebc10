// Steps and values of the trie.
#include "text/tokenizer/byte_trie.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace vllm {
namespace {

using tokenizer::ByteTrie;

int32_t Find(const ByteTrie& trie, std::string_view text) {
  int32_t node = 0;
  for (const char c : text) {
    node = trie.Step(node, static_cast<uint8_t>(c));
    if (node == ByteTrie::kNone) return -2;
  }
  return trie.Value(node);
}

TEST(ByteTrie, FindsEveryStringAndNoOther) {
  std::vector<std::string> texts;
  for (int i = 0; i < 2000; ++i) texts.push_back(std::to_string(i * 7919 % 5003) + "\xFF\x01");
  std::vector<std::pair<std::string_view, int32_t>> entries;
  for (size_t i = 0; i < texts.size(); ++i) entries.emplace_back(texts[i], static_cast<int32_t>(i));
  const ByteTrie trie(entries);
  for (size_t i = 0; i < texts.size(); ++i) EXPECT_EQ(Find(trie, texts[i]), static_cast<int32_t>(i));
  EXPECT_EQ(Find(trie, "1"), ByteTrie::kNone);
  EXPECT_EQ(Find(trie, "x"), -2);
}

TEST(ByteTrie, OfEqualStringsTheLargerValueWins) {
  const std::vector<std::pair<std::string_view, int32_t>> entries = {{"a", 5}, {"a", 9}, {"a", 7}, {"", 1}};
  EXPECT_EQ(Find(ByteTrie(entries), "a"), 9);
}

TEST(ByteTrie, NothingMakesAnEmptyTrie) {
  EXPECT_TRUE(ByteTrie().empty());
  EXPECT_TRUE(ByteTrie(std::vector<std::pair<std::string_view, int32_t>>{{"", 1}}).empty());
}

}  // namespace
}  // namespace vllm
