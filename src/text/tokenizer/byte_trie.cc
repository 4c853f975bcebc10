// Builds the trie breadth first from sorted strings, without recursion.
#include "text/tokenizer/byte_trie.h"

#include <algorithm>

namespace vllm::tokenizer {
namespace {

struct Range {
  size_t begin = 0, end = 0, depth = 0;
};

}  // namespace

ByteTrie::ByteTrie(std::span<const std::pair<std::string_view, int32_t>> entries) {
  root_.fill(kNone);
  std::vector<std::pair<std::string_view, int32_t>> sorted;
  for (const auto& entry : entries) {
    if (!entry.first.empty()) sorted.push_back(entry);
  }
  std::sort(sorted.begin(), sorted.end());
  nodes_.emplace_back();
  std::vector<Range> ranges = {{0, sorted.size(), 0}};  // ranges[i] belongs to nodes_[i]
  for (size_t node = 0; node < nodes_.size(); ++node) {
    const Range range = ranges[node];
    size_t at = range.begin;
    for (; at < range.end && sorted[at].first.size() == range.depth; ++at) nodes_[node].value = sorted[at].second;
    nodes_[node].first_edge = static_cast<uint32_t>(labels_.size());
    while (at < range.end) {
      const char label = sorted[at].first[range.depth];
      const size_t begin = at;
      while (at < range.end && sorted[at].first[range.depth] == label) ++at;
      labels_.push_back(static_cast<uint8_t>(label));
      targets_.push_back(static_cast<int32_t>(nodes_.size()));
      if (node == 0) root_[static_cast<uint8_t>(label)] = targets_.back();
      nodes_.emplace_back();
      ranges.push_back({begin, at, range.depth + 1});
    }
    nodes_[node].end_edge = static_cast<uint32_t>(labels_.size());
  }
}

}  // namespace vllm::tokenizer
