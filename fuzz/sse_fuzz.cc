// Fuzz target: a stream of server-sent events, whole and cut at every place that the first byte chooses.
// Covers: src/app/serving/sse.cc
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "app/serving/sse.h"
#include "base/check.h"

namespace {

std::vector<std::string> Events(std::string_view text, size_t step) {
  vllm::SseParser parser;
  std::vector<std::string> events;
  for (size_t at = 0; at < text.size(); at += step)
    parser.Feed(text.substr(at, step), [&](std::string_view data) { events.emplace_back(data); });
  return events;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  CHECK(Events(text, data[0] + size_t{1}) == Events(text, size), "the cuts change the events");
  return 0;
}
