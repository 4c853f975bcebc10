// Text of a growing sequence: characters over several tokens, stop strings over several tokens, any grouping of tokens.
#include "engine/out/sequence_text.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "tests/engine/out/piece_tokenizer.h"

namespace vllm {
namespace {

const std::vector<std::string> kHalfCharacters = {"Hi ", "\xF0\x9F", "\xA6\x99", " caf", "\xC3", "\xA9", " end"};
const std::vector<std::string> kStops = {"alpha ", "be", "ta ST", "OPP", " tail", "ED ", "STO", "P!x", "after"};

struct Shown {
  std::vector<std::string> deltas = {};
  std::string text = {};
  std::vector<int32_t> tokens = {};
  std::optional<std::string> stop = {};
};

// Feeds `ids` in groups that end where bit i of `cuts` is set, until a stop string or the end.
Shown Feed(const PieceTokenizer& tokenizer, const SamplingParams& params, const std::vector<int32_t>& ids,
           uint32_t cuts, bool stopped_by_token = false) {
  SequenceText text(*tokenizer, params, std::vector<int32_t>{'x'});
  Shown run;
  for (size_t begin = 0; begin < ids.size() && !run.stop;) {
    size_t end = begin + 1;
    while (end < ids.size() && !(cuts >> (end - 1) & 1)) ++end;
    const std::vector<int32_t> group(ids.begin() + begin, ids.begin() + end);
    const auto update = text.Add(group, stopped_by_token && end == ids.size());
    run.tokens.insert(run.tokens.end(), group.begin(), group.begin() + update.kept_tokens);
    run.stop = update.stop_string;
    run.deltas.push_back(text.TakeText(run.stop || end == ids.size()));
    run.text += run.deltas.back();
    begin = end;
  }
  return run;
}

constexpr uint32_t kEveryToken = ~0u;

TEST(SequenceTextTest, ACharacterOverTwoTokensComesOutWhole) {
  const PieceTokenizer tokenizer(kHalfCharacters);
  const Shown run = Feed(tokenizer, {}, tokenizer.Ids(kHalfCharacters), kEveryToken);
  EXPECT_EQ(run.deltas, (std::vector<std::string>{"Hi ", "", "🦙", " caf", "", "é", " end"}));
}

TEST(SequenceTextTest, EveryGroupingOfTokensGivesTheSameText) {
  const PieceTokenizer tokenizer(kHalfCharacters);
  const std::vector<int32_t> ids = tokenizer.Ids(kHalfCharacters);
  for (uint32_t cuts = 0; cuts < 64; ++cuts) {
    const Shown run = Feed(tokenizer, {}, ids, cuts);
    EXPECT_EQ(run.text, "Hi 🦙 café end") << cuts;
    for (const std::string& delta : run.deltas) EXPECT_TRUE(base::IsValidUtf8(delta));
  }
}

TEST(SequenceTextTest, AnUnfinishedCharacterIsNeverShown) {
  const PieceTokenizer tokenizer(kHalfCharacters);
  EXPECT_EQ(Feed(tokenizer, {}, tokenizer.Ids({"Hi ", "\xF0\x9F"}), kEveryToken).text, "Hi ");
}

TEST(SequenceTextTest, AStopStringOverSeveralTokensIsCutOut) {
  const PieceTokenizer tokenizer(kStops);
  SamplingParams params;
  params.stop = {"STOP!"};
  for (uint32_t cuts = 0; cuts < 256; ++cuts) {
    const Shown run = Feed(tokenizer, params, tokenizer.Ids(kStops), cuts);
    EXPECT_EQ(run.text, "alpha beta STOPP tailED ") << cuts;
    EXPECT_EQ(run.stop, "STOP!");
    EXPECT_EQ(run.tokens, tokenizer.Ids({"alpha ", "be", "ta ST", "OPP", " tail", "ED ", "STO", "P!x"}));
    std::string shown;
    for (const std::string& delta : run.deltas) {
      shown += delta;
      EXPECT_TRUE(std::string("alpha beta STOPP tailED ").starts_with(shown)) << shown;
    }
  }
}

TEST(SequenceTextTest, AFalseStartIsReleased) {
  const PieceTokenizer tokenizer(kStops);
  SamplingParams params;
  params.stop = {"STOP!"};
  const Shown run = Feed(tokenizer, params, tokenizer.Ids(kStops), kEveryToken);
  EXPECT_EQ(run.deltas, (std::vector<std::string>{"al", "ph", "a bet", "a S", "TOPP ", "tai", "lED", " "}))
      << "four characters are held back";
}

TEST(SequenceTextTest, TheStopStringIsIncludedWhenAskedFor) {
  const PieceTokenizer tokenizer(kStops);
  SamplingParams params;
  params.stop = {"STOP!"};
  params.include_stop_str_in_output = true;
  for (uint32_t cuts = 0; cuts < 256; ++cuts) {
    const Shown run = Feed(tokenizer, params, tokenizer.Ids(kStops), cuts);
    EXPECT_EQ(run.text, "alpha beta STOPP tailED STOP!") << cuts;
    EXPECT_EQ(run.stop, "STOP!");
  }
}

TEST(SequenceTextTest, TheStopStringThatEndsFirstWins) {
  const PieceTokenizer tokenizer({"abcdef"});
  SamplingParams params;
  params.stop = {"bcdef", "cd", "bcd"};
  const Shown run = Feed(tokenizer, params, tokenizer.Ids({"abcdef"}), kEveryToken);
  EXPECT_EQ(run.stop, "cd") << "ends with bcd; the earlier in the list";
  EXPECT_EQ(run.text, "ab");
}

TEST(SequenceTextTest, HeldBackTextIsCountedInCharacters) {
  const PieceTokenizer tokenizer({"ééé", "🦙🦙"});
  SamplingParams params;
  params.stop = {"🦙é!"};
  const Shown run = Feed(tokenizer, params, tokenizer.Ids({"ééé", "🦙🦙", "a"}), kEveryToken);
  EXPECT_EQ(run.deltas, (std::vector<std::string>{"é", "éé", "🦙🦙a"}));
}

TEST(SequenceTextTest, StopStringsWaitForMinTokens) {
  const PieceTokenizer tokenizer({"one ", "two "});
  SamplingParams params;
  params.stop = {"two"};
  params.min_tokens = 3;
  const std::vector<int32_t> ids = tokenizer.Ids({"one ", "two ", "one ", "two ", "one "});
  for (uint32_t cuts = 0; cuts < 16; ++cuts) {
    const Shown run = Feed(tokenizer, params, ids, cuts);
    EXPECT_EQ(run.text, "one two one ") << cuts;
    EXPECT_EQ(run.tokens.size(), 4u);
  }
}

TEST(SequenceTextTest, TheTextOfTheEndTokenIsLeftOut) {
  const PieceTokenizer tokenizer({"word"});
  SamplingParams params;
  params.skip_special_tokens = false;
  const std::vector<int32_t> ids = {tokenizer.Id("word"), PieceTokenizer::kEnd};
  EXPECT_EQ(Feed(tokenizer, params, ids, kEveryToken, true).text, "word");
  EXPECT_EQ(Feed(tokenizer, params, ids, kEveryToken, true).tokens.size(), 2u);
  params.include_stop_str_in_output = true;
  EXPECT_EQ(Feed(tokenizer, params, ids, kEveryToken, true).text, "word<end>");
}

TEST(SequenceTextTest, WithoutDetokenizeThereIsNoText) {
  const PieceTokenizer tokenizer({"word"});
  SamplingParams params;
  params.detokenize = false;
  const Shown run = Feed(tokenizer, params, tokenizer.Ids({"word"}), kEveryToken);
  EXPECT_EQ(run.text, "");
  EXPECT_EQ(run.tokens.size(), 1u);
}

TEST(SequenceTextTest, LongTextWithStopStringsStaysLinear) {
  const PieceTokenizer tokenizer({"la "});
  SamplingParams params;
  params.stop = {"never", "la lo"};
  SequenceText text(*tokenizer, params, {});
  size_t shown = 0;
  const std::vector<int32_t> one = tokenizer.Ids({"la "});
  for (int i = 0; i < 200'000; ++i) {
    ASSERT_FALSE(text.Add(one, false).stop_string);
    shown += text.TakeText(false).size();
  }
  EXPECT_EQ(shown + text.TakeText(true).size(), 600'000u);
}

}  // namespace
}  // namespace vllm
