// Server-sent events as they arrive: bytes in, the data of whole events out.
#pragma once
#include <functional>
#include <string>
#include <string_view>

namespace vllm {

// Follows the HTML standard's event stream: lines end in \n, \r\n or \r, the data lines of an event are joined by \n,
// comments and other fields are skipped, and an event whose blank line never comes is none. Not thread-safe.
class SseParser {
 public:
  using OnData = std::function<void(std::string_view data)>;

  // Calls `on_data` for each event that ends in `bytes` and has data. False once an event is larger than
  // base::kMaxSseEventBytes; it parses nothing from then on.
  bool Feed(std::string_view bytes, const OnData& on_data);

 private:
  void EndLine(std::string_view line, const OnData& on_data);

  std::string line_;  // the beginning of a line whose end has not come
  std::string data_;
  bool has_data_ = false, after_return_ = false, too_large_ = false;
};

}  // namespace vllm
