// Short pieces by scanning for the best pair, long ones by a heap over a linked list: both pick the same merges.
#include "text/tokenizer/bpe.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <functional>
#include <utility>

#include "base/result.h"
#include "text/tokenizer/unicode.h"

namespace vllm::tokenizer {
namespace {

// Up to this many symbols the quadratic scan over contiguous memory is faster than the heap.
constexpr size_t kShortSymbols = 48;

uint64_t PairKey(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

size_t MixPair(uint64_t pair) {
  pair *= 0x9E3779B97F4A7C15u;
  return pair ^ (pair >> 31);
}

struct Split {
  size_t left_chars = 0, right_chars = 0;
  Merge merge = {};
};

// Finds the ways to write a token as two others, each in constant time by the hashes of its prefixes and suffixes.
class SplitFinder {
 public:
  explicit SplitFinder(const Vocab& vocab) : vocab_(vocab) {}

  void Append(int32_t id, std::vector<Split>& out) {
    const std::string_view text = vocab_.Text(id);
    prefixes_.assign(1, 0);
    for (const char c : text) prefixes_.push_back(prefixes_.back() * Vocab::kBase + static_cast<uint8_t>(c) + 1);
    while (powers_.size() <= text.size()) powers_.push_back(powers_.back() * Vocab::kBase);
    const size_t first = text.empty() ? 0 : CharBytes(text[0]);
    for (size_t at = first; at < text.size(); at += CharBytes(text[at])) {
      vocab_.Prefetch(prefixes_[at]);
      vocab_.Prefetch(Suffix(at));
    }
    const size_t chars = CountChars(text);
    size_t left_chars = 1;
    for (size_t at = first; at < text.size(); at += CharBytes(text[at]), ++left_chars) {
      const auto left = vocab_.Find(text.substr(0, at), prefixes_[at]);
      if (!left) continue;
      const auto right = vocab_.Find(text.substr(at), Suffix(at));
      if (right) out.push_back({left_chars, chars - left_chars, {*left, *right, id, 0}});
    }
  }

 private:
  // The hash of what follows byte `at` of the current token.
  uint64_t Suffix(size_t at) const { return prefixes_.back() - prefixes_[at] * powers_[prefixes_.size() - 1 - at]; }

  const Vocab& vocab_;
  std::vector<uint64_t> prefixes_, powers_ = {1};
};

}  // namespace

std::vector<Merge> DeriveMerges(const Vocab& vocab, std::vector<int32_t> ids, const std::vector<double>& scores,
                                bool one_rank) {
  const auto score = [&](int32_t id) { return scores[static_cast<size_t>(id)]; };
  std::sort(ids.begin(), ids.end(),
            [&](int32_t a, int32_t b) { return std::pair(-score(a), a) < std::pair(-score(b), b); });
  SplitFinder finder(vocab);
  std::vector<Merge> merges;
  std::vector<Split> group;  // of one score
  uint32_t rank = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    finder.Append(ids[i], group);
    if (i + 1 < ids.size() && score(ids[i + 1]) == score(ids[i])) continue;
    std::sort(group.begin(), group.end(), [](const Split& a, const Split& b) {
      if (a.left_chars != b.left_chars) return a.left_chars > b.left_chars;
      if (a.right_chars != b.right_chars) return a.right_chars > b.right_chars;
      return a.merge.merged < b.merge.merged;
    });
    for (Split& split : group) {
      split.merge.rank = one_rank ? rank : rank++;
      merges.push_back(split.merge);
    }
    if (one_rank) ++rank;
    group.clear();
  }
  return merges;
}

Bpe::Bpe(Vocab vocab, const std::vector<Merge>& merges, BpeOptions options)
    : vocab_(std::move(vocab)), options_(std::move(options)), bmp_(0x10000, -1), bytes_(256, -1) {
  pairs_.resize(std::bit_ceil(merges.size() * 2 + 2));
  const size_t mask = pairs_.size() - 1;
  for (const Merge& merge : merges) {
    const uint64_t key = PairKey(merge.left, merge.right);
    size_t at = MixPair(key) & mask;
    while (pairs_[at].pair != UINT64_MAX && pairs_[at].pair != key) at = (at + 1) & mask;
    pairs_[at] = {key, merge.rank, merge.merged};  // of a pair given twice the later one counts
  }
  for (int32_t id = 0; id < vocab_.id_end(); ++id) {
    const std::string_view text = vocab_.Text(id);
    if (text.empty() || text.size() != CharBytes(text[0]) || text.size() > 3) continue;
    bmp_[CharAt(text, 0)] = vocab_.Find(text).value_or(-1);  // of a token given twice the last id counts
  }
  for (int byte = 0; byte < 256; ++byte) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", static_cast<unsigned>(byte));
    bytes_[static_cast<size_t>(byte)] = vocab_.Find(name).value_or(-1);
  }
}

const Bpe::PairSlot* Bpe::FindPair(int32_t left, int32_t right) const {
  const uint64_t key = PairKey(left, right);
  const size_t mask = pairs_.size() - 1;
  for (size_t at = MixPair(key) & mask; pairs_[at].pair != UINT64_MAX; at = (at + 1) & mask) {
    if (pairs_[at].pair == key) return &pairs_[at];
  }
  return nullptr;
}

std::optional<int32_t> Bpe::Symbol(std::string_view character) const {
  const char32_t c = CharAt(character, 0);
  if (c >= 0x10000) return vocab_.Find(character);
  return bmp_[c] < 0 ? std::nullopt : std::optional(bmp_[c]);
}

bool Bpe::AddBytes(std::string_view text, Scratch& scratch) const {
  for (const char c : text) {
    if (bytes_[static_cast<uint8_t>(c)] < 0) return false;
  }
  for (const char c : text) scratch.ids.push_back(bytes_[static_cast<uint8_t>(c)]);
  return true;
}

// Fills scratch.ids with one symbol per character.
void Bpe::AddSymbols(std::string_view piece, Scratch& scratch) const {
  scratch.ids.clear();
  const bool decorated = !options_.continuing_subword_prefix.empty() || !options_.end_of_word_suffix.empty();
  bool unknown = false;  // an unknown token waits to be written, so that its neighbours can fuse with it
  for (size_t at = 0; at < piece.size();) {
    std::string_view text = piece.substr(at, CharBytes(piece[at]));
    const bool is_first = at == 0;
    at += text.size();
    std::optional<int32_t> id;
    if (decorated) {
      scratch.text = is_first ? "" : options_.continuing_subword_prefix;
      scratch.text += text;
      if (at == piece.size()) scratch.text += options_.end_of_word_suffix;
      text = scratch.text;
      id = vocab_.Find(text);
    } else {
      id = Symbol(text);
    }
    if (id) {
      if (unknown) scratch.ids.push_back(*options_.unk);
      unknown = false;
      scratch.ids.push_back(*id);
    } else if (!options_.byte_fallback || !AddBytes(text, scratch)) {
      if (!options_.missing_unk.empty()) {
        base::Throw(base::ErrorCode::kInvalidArgument, "the text holds '", Shown(text),
                    "', which the vocabulary lacks, and so does it lack the unknown token '",
                    Shown(options_.missing_unk), "'");
      }
      if (!options_.unk) continue;
      if (unknown && !options_.fuse_unk) scratch.ids.push_back(*options_.unk);
      unknown = true;
    }
  }
  if (unknown) scratch.ids.push_back(*options_.unk);
}

void Bpe::Tokenize(std::string_view piece, std::vector<int32_t>& out, Scratch& scratch) const {
  if (options_.ignore_merges) {
    if (const auto id = vocab_.Find(piece)) {
      out.push_back(*id);
      return;
    }
  }
  AddSymbols(piece, scratch);
  if (scratch.ids.size() > kShortSymbols) {
    MergeLong(out, scratch);
    return;
  }
  MergeShort(scratch);
  out.insert(out.end(), scratch.ids.begin(), scratch.ids.end());
}

void Bpe::MergeShort(Scratch& scratch) const {
  std::vector<int32_t>& ids = scratch.ids;
  std::vector<uint32_t>& ranks = scratch.ranks;  // of the pair that starts at each symbol
  const size_t count = ids.size();
  ranks.assign(count, kNoRank);
  for (size_t i = 0; i + 1 < count; ++i) ranks[i] = RankOf(ids[i], ids[i + 1]);
  while (ids.size() > 1) {
    const auto best = std::min_element(ranks.begin(), ranks.end() - 1);  // the first of the smallest
    if (*best == kNoRank) break;
    const auto i = static_cast<ptrdiff_t>(best - ranks.begin());
    const auto at = static_cast<size_t>(i);
    ids[at] = FindPair(ids[at], ids[at + 1])->merged;
    ids.erase(ids.begin() + i + 1);
    ranks.erase(ranks.begin() + i + 1);
    ranks[at] = at + 1 < ids.size() ? RankOf(ids[at], ids[at + 1]) : kNoRank;
    if (at > 0) ranks[at - 1] = RankOf(ids[at - 1], ids[at]);
  }
}

void Bpe::MergeLong(std::vector<int32_t>& out, Scratch& scratch) const {
  std::vector<int32_t>& ids = scratch.ids;
  std::vector<int32_t>& next = scratch.next;
  std::vector<int32_t>& previous = scratch.previous;
  std::vector<uint32_t>& ranks = scratch.ranks;
  std::vector<uint64_t>& heap = scratch.heap;  // rank << 32 | position: least first
  const size_t count = ids.size();
  next.resize(count);
  previous.resize(count);
  ranks.assign(count, kNoRank);
  heap.clear();
  for (size_t i = 0; i < count; ++i) {
    next[i] = i + 1 < count ? static_cast<int32_t>(i) + 1 : -1;
    previous[i] = static_cast<int32_t>(i) - 1;
    if (i + 1 < count) ranks[i] = RankOf(ids[i], ids[i + 1]);
    if (ranks[i] != kNoRank) heap.push_back(static_cast<uint64_t>(ranks[i]) << 32 | i);
  }
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  const auto update = [&](size_t at) {
    const int32_t right = next[at];
    ranks[at] = right < 0 ? kNoRank : RankOf(ids[at], ids[static_cast<size_t>(right)]);
    if (ranks[at] == kNoRank) return;
    heap.push_back(static_cast<uint64_t>(ranks[at]) << 32 | at);
    std::push_heap(heap.begin(), heap.end(), std::greater<>());
  };
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    const auto at = static_cast<size_t>(heap.back() & UINT32_MAX);
    const auto rank = static_cast<uint32_t>(heap.back() >> 32);
    heap.pop_back();
    if (ranks[at] != rank) continue;  // the pair has changed since it was pushed
    const auto right = static_cast<size_t>(next[at]);
    ids[at] = FindPair(ids[at], ids[right])->merged;
    ranks[right] = kNoRank;
    next[at] = next[right];
    if (next[at] >= 0) previous[static_cast<size_t>(next[at])] = static_cast<int32_t>(at);
    update(at);
    if (previous[at] >= 0) update(static_cast<size_t>(previous[at]));
  }
  for (int32_t i = 0; i >= 0; i = next[static_cast<size_t>(i)]) out.push_back(ids[static_cast<size_t>(i)]);
}

}  // namespace vllm::tokenizer
