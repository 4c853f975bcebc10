// The event parser of the load generator, however the bytes are cut.
#include "app/serving/sse.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/limits.h"

namespace vllm {
namespace {

// The data of the events in `text`, fed in pieces of `step` bytes.
std::vector<std::string> Events(std::string_view text, size_t step) {
  SseParser parser;
  std::vector<std::string> events;
  for (size_t at = 0; at < text.size(); at += step)
    EXPECT_TRUE(parser.Feed(text.substr(at, step), [&](std::string_view data) { events.emplace_back(data); }));
  return events;
}

TEST(SseParser, GivesTheSameEventsHoweverTheBytesAreCut) {
  const std::string_view text =
      ": ping\n\ndata: {\"a\":1}\r\n\r\nevent: x\ndata:one\ndata: two\n\ndata: [DONE]\r\rdata: cut";
  const std::vector<std::string> expected = {"{\"a\":1}", "one\ntwo", "[DONE]"};
  for (size_t step = 1; step <= text.size(); ++step) EXPECT_EQ(Events(text, step), expected) << step;
}

TEST(SseParser, TakesOneBlankOnlyAfterTheColon) {
  EXPECT_EQ(Events("data:  x \n\n", 64), std::vector<std::string>{" x "});
}

TEST(SseParser, AnEventWithoutDataIsNone) { EXPECT_TRUE(Events("event: x\nid: 1\n\n\n\n", 5).empty()); }

TEST(SseParser, AFieldWhoseNameOnlyBeginsWithDataIsAnother) { EXPECT_TRUE(Events("dataset: x\n\n", 64).empty()); }

TEST(SseParser, RefusesAnEventAboveTheLimit) {
  SseParser parser;
  const std::string piece(1 << 20, 'x');
  bool fits = parser.Feed("data: ", [](std::string_view) {});
  for (size_t bytes = 0; bytes <= base::kMaxSseEventBytes && fits; bytes += piece.size())
    fits = parser.Feed(piece, [](std::string_view) {});
  EXPECT_FALSE(fits);
  EXPECT_FALSE(parser.Feed("\n\ndata: x\n\n", [](std::string_view) { FAIL(); }));
}

}  // namespace
}  // namespace vllm
