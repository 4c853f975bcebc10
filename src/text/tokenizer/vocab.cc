// Open addressing over one text arena.
#include "text/tokenizer/vocab.h"

#include <bit>

#include "base/check.h"
#include "base/result.h"

namespace vllm::tokenizer {
namespace {

// The low bits of a polynomial hash are weak: spread them before they index the table.
uint64_t Mix(uint64_t hash) {
  hash ^= hash >> 32;
  hash *= 0xD6E8FEB86659FD93u;
  return hash ^ (hash >> 29);
}

}  // namespace

void Vocab::Reserve(size_t tokens, size_t bytes) {
  text_.reserve(bytes);
  spans_.reserve(tokens);
  Grow(std::bit_ceil(tokens + tokens / 2 + 64));
}

// The slot of `text`, or the free slot where it belongs.
size_t Vocab::Probe(std::string_view text, uint64_t hash) const {
  const uint64_t mixed = Mix(hash);
  const auto tag = static_cast<uint32_t>(mixed >> 32);
  const size_t mask = slots_.size() - 1;
  for (size_t at = mixed & mask;; at = (at + 1) & mask) {
    const Slot& slot = slots_[at];
    if (slot.id < 0) return at;
    if (slot.tag == tag && std::string_view(text_).substr(slot.offset, slot.size) == text) return at;
  }
}

void Vocab::Grow(size_t slots) {
  if (slots <= slots_.size()) return;
  std::vector<Slot> old(slots);
  old.swap(slots_);
  for (const Slot& slot : old) {
    if (slot.id < 0) continue;
    const std::string_view text = std::string_view(text_).substr(slot.offset, slot.size);
    slots_[Probe(text, Hash(text))] = slot;
  }
}

void Vocab::Add(std::string_view text, int32_t id) {
  CHECK(id >= 0, "token id ", id);
  if (slots_.size() < (size_ + 1) * 2) Grow(std::max<size_t>(slots_.size() * 2, 64));
  const uint64_t hash = Hash(text);
  Slot& slot = slots_[Probe(text, hash)];
  if (slot.id < 0) {
    if (text_.size() + text.size() > UINT32_MAX)
      base::Throw(base::ErrorCode::kBadFile, "the vocabulary is larger than 4 GiB");
    slot = {static_cast<uint32_t>(Mix(hash) >> 32), id, static_cast<uint32_t>(text_.size()),
            static_cast<uint32_t>(text.size())};
    text_ += text;
    ++size_;
  }
  slot.id = id;
  if (static_cast<size_t>(id) >= spans_.size()) spans_.resize(static_cast<size_t>(id) + 1);
  spans_[static_cast<size_t>(id)] = {slot.offset, slot.size, true};
}

void Vocab::Prefetch(uint64_t hash) const {
  if (!slots_.empty()) __builtin_prefetch(&slots_[Mix(hash) & (slots_.size() - 1)]);
}

std::optional<int32_t> Vocab::Find(std::string_view text, uint64_t hash) const {
  if (slots_.empty()) return std::nullopt;
  const Slot& slot = slots_[Probe(text, hash)];
  return slot.id < 0 ? std::nullopt : std::optional(slot.id);
}

}  // namespace vllm::tokenizer
