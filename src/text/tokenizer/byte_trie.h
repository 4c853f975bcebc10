// A compact read-only trie over byte strings, for longest-match and all-prefix searches in one pass over the text.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace vllm::tokenizer {

class ByteTrie {
 public:
  static constexpr int32_t kNone = -1;

  ByteTrie() = default;
  // Of two equal strings the one with the larger value wins. Empty strings are ignored.
  explicit ByteTrie(std::span<const std::pair<std::string_view, int32_t>> entries);

  bool empty() const { return nodes_.size() <= 1; }
  // The node after `node` by `byte`, or kNone. The root is node 0.
  int32_t Step(int32_t node, uint8_t byte) const {
    if (node == 0) return root_[byte];
    const Node& from = nodes_[static_cast<size_t>(node)];
    for (uint32_t edge = from.first_edge; edge != from.end_edge; ++edge) {
      if (labels_[edge] == byte) return targets_[edge];
      if (labels_[edge] > byte) break;
    }
    return kNone;
  }
  // The value of the string that ends at `node`, or kNone.
  int32_t Value(int32_t node) const { return nodes_[static_cast<size_t>(node)].value; }

 private:
  struct Node {
    uint32_t first_edge = 0, end_edge = 0;
    int32_t value = kNone;
  };
  std::vector<Node> nodes_;
  std::vector<uint8_t> labels_;  // sorted within a node
  std::vector<int32_t> targets_;
  std::array<int32_t, 256> root_ = {};
};

}  // namespace vllm::tokenizer
