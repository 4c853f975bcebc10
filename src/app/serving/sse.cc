// A line at a time; a line that came whole is not copied but into its event.
#include "app/serving/sse.h"

#include "base/limits.h"

namespace vllm {

bool SseParser::Feed(std::string_view bytes, const OnData& on_data) {
  while (!bytes.empty() && !too_large_) {
    if (after_return_ && bytes[0] == '\n') bytes.remove_prefix(1);
    after_return_ = false;
    const size_t end = bytes.find_first_of("\r\n");
    const std::string_view part = bytes.substr(0, end);
    if (line_.size() + data_.size() + part.size() > base::kMaxSseEventBytes) {
      too_large_ = true;
      break;
    }
    if (end == std::string_view::npos) {
      line_ += part;
      break;
    }
    if (line_.empty()) {
      EndLine(part, on_data);
    } else {
      line_ += part;
      EndLine(line_, on_data);
      line_.clear();
    }
    after_return_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
  }
  return !too_large_;
}

void SseParser::EndLine(std::string_view line, const OnData& on_data) {
  if (line.empty()) {
    if (has_data_) on_data(data_);
    data_.clear();
    has_data_ = false;
    return;
  }
  constexpr std::string_view kData = "data";
  if (!line.starts_with(kData)) return;
  line.remove_prefix(kData.size());
  if (!line.empty() && line[0] != ':') return;  // another field, as "dataset"
  if (!line.empty()) line.remove_prefix(1);
  if (!line.empty() && line[0] == ' ') line.remove_prefix(1);
  if (has_data_) data_ += '\n';
  data_ += line;
  has_data_ = true;
}

}  // namespace vllm
