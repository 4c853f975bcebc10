// Token strings by id and ids by token string, in two flat arrays; ids may have holes.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vllm::tokenizer {

class Vocab {
 public:
  // A polynomial hash, so that the hash of every prefix and suffix of a string follows from one pass over it.
  static constexpr uint64_t kBase = 0x9E3779B97F4A7C15u;
  static uint64_t Hash(std::string_view text) {
    uint64_t hash = 0;
    for (const char c : text) hash = hash * kBase + static_cast<uint8_t>(c) + 1;
    return hash;
  }

  // Space for about that many tokens; only a hint.
  void Reserve(size_t tokens, size_t bytes);
  // Adds a token, or moves it to a new id. `id` >= 0. Throws base::Exception (kBadFile) when the text of all tokens
  // exceeds 4 GiB.
  void Add(std::string_view text, int32_t id);

  std::optional<int32_t> Find(std::string_view text) const { return Find(text, Hash(text)); }
  // `hash` is Hash(text).
  std::optional<int32_t> Find(std::string_view text, uint64_t hash) const;
  // Starts to load what Find of that hash will read: many look-ups in a row are bound by memory latency.
  void Prefetch(uint64_t hash) const;
  bool Has(int32_t id) const { return id >= 0 && static_cast<size_t>(id) < spans_.size() && spans_[id].present; }
  // "" for an id that is not there.
  std::string_view Text(int32_t id) const {
    return Has(id) ? std::string_view(text_).substr(spans_[id].offset, spans_[id].size) : std::string_view();
  }
  // Number of different token strings.
  size_t size() const { return size_; }
  // One more than the largest id.
  int32_t id_end() const { return static_cast<int32_t>(spans_.size()); }

 private:
  struct Span {
    uint32_t offset = 0, size = 0;
    bool present = false;
  };
  struct Slot {
    uint32_t tag = 0;  // upper bits of the hash, to skip most string comparisons
    int32_t id = -1;   // -1: free
    uint32_t offset = 0, size = 0;
  };
  size_t Probe(std::string_view text, uint64_t hash) const;
  void Grow(size_t slots);

  std::string text_;
  std::vector<Span> spans_;
  std::vector<Slot> slots_;
  size_t size_ = 0;
};

}  // namespace vllm::tokenizer
