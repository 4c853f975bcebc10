// TraceSink: what it writes is JSON, from many threads and after a kill.
#include "base/trace.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>
#include <vector>

#include "base/result.h"

namespace base {
namespace {

std::string TracePath() { return testing::TempDir() + "trace_test.json"; }

nlohmann::json ReadTrace() {
  std::ifstream file(TracePath());
  return nlohmann::json::parse(file);
}

TEST(TraceSink, WritesNothingButAnEmptyListWithoutEvents) {
  {
    TraceSink sink(TracePath());
  }
  EXPECT_EQ(ReadTrace(), nlohmann::json::array());
}

TEST(TraceSink, WritesSpansWithTheirArguments) {
  {
    TraceSink sink(TracePath());
    sink.NameThread("engine");
    TraceScope scope(&sink, "schedule");
    scope.Arg("tokens", 3);
    scope.Arg("requests", 2);
    sink.Begin("outer");
    sink.End();
  }
  const nlohmann::json events = ReadTrace();
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0]["args"]["name"], "engine");
  EXPECT_EQ(events[1]["ph"], "B");
  EXPECT_EQ(events[2]["ph"], "E");
  EXPECT_EQ(events[3]["name"], "schedule");
  EXPECT_EQ(events[3]["ph"], "X");
  EXPECT_EQ(events[3]["args"], (nlohmann::json{{"tokens", 3}, {"requests", 2}}));
  EXPECT_GE(events[3]["dur"], 0);
}

TEST(TraceSink, KeepsEventsOfManyThreadsWhole) {
  {
    TraceSink sink(TracePath());
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&sink] {
        for (int i = 0; i < 200; ++i) TraceScope scope(&sink, "work");
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  const nlohmann::json events = ReadTrace();
  ASSERT_EQ(events.size(), 800u);
  std::set<int> thread_numbers;
  for (const nlohmann::json& event : events) thread_numbers.insert(event["tid"].get<int>());
  EXPECT_EQ(thread_numbers.size(), 4u);
}

TEST(TraceScope, DoesNothingWithoutASink) {
  TraceScope scope(nullptr, "nothing");
  scope.Arg("x", 1);
}

TEST(TraceSink, RefusesAPathThatCannotBeWritten) {
  try {
    TraceSink sink("/nonexistent/folder/trace.json");
    FAIL() << "no exception";
  } catch (const Exception& e) {
    EXPECT_EQ(e.code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(std::string(e.what()).find("/nonexistent/folder/trace.json"), std::string::npos);
  }
}

}  // namespace
}  // namespace base
