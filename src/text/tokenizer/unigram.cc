// Viterbi from left to right, then back along the best path.
#include "text/tokenizer/unigram.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <string>
#include <utility>

#include "base/result.h"
#include "text/tokenizer/unicode.h"

namespace vllm::tokenizer {
namespace {

// An unknown character costs this much more than the least likely token, as in SentencePiece.
constexpr double kUnkPenalty = 10.0;

}  // namespace

Unigram::Unigram(Vocab vocab, std::vector<double> scores, const std::vector<bool>& usable, UnigramOptions options)
    : vocab_(std::move(vocab)), scores_(std::move(scores)), options_(options), bytes_(256, -1) {
  std::vector<std::pair<std::string_view, int32_t>> entries;
  double lowest = std::numeric_limits<double>::infinity();
  for (int32_t id = 0; id < vocab_.id_end(); ++id) {
    const auto index = static_cast<size_t>(id);
    if (!usable.empty() && !usable[index]) continue;
    lowest = std::min(lowest, scores_[index]);
    entries.emplace_back(vocab_.Text(id), id);
  }
  unk_score_ = lowest - kUnkPenalty;
  trie_ = ByteTrie(entries);
  for (int byte = 0; byte < 256; ++byte) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", static_cast<unsigned>(byte));
    bytes_[static_cast<size_t>(byte)] = vocab_.Find(name).value_or(-1);
  }
}

void Unigram::Tokenize(std::string_view piece, std::vector<int32_t>& out, Scratch& scratch) const {
  std::vector<Scratch::Node>& nodes = scratch.nodes;  // the best way to reach each byte
  nodes.assign(piece.size() + 1, {});
  const auto offer = [&](size_t begin, size_t end, double score, int32_t id) {
    Scratch::Node& node = nodes[end];
    if (node.begin >= 0 && score <= node.score) return;
    node = {id, static_cast<int32_t>(begin), score};
  };
  for (size_t begin = 0; begin < piece.size();) {
    const size_t char_end = begin + CharBytes(piece[begin]);
    bool has_single = false;
    int32_t state = 0;
    for (size_t at = begin; at < piece.size(); ++at) {
      state = trie_.Step(state, static_cast<uint8_t>(piece[at]));
      if (state == ByteTrie::kNone) break;
      const int32_t id = trie_.Value(state);
      if (id == ByteTrie::kNone) continue;
      offer(begin, at + 1, nodes[begin].score + scores_[static_cast<size_t>(id)], id);
      has_single |= at + 1 == char_end;
    }
    if (!has_single) {
      if (!options_.unk) {
        base::Throw(base::ErrorCode::kInvalidArgument, "the text holds '", Shown(piece.substr(begin, char_end - begin)),
                    "', which the vocabulary lacks, and it has no unknown token");
      }
      offer(begin, char_end, nodes[begin].score + unk_score_, *options_.unk);
    }
    begin = char_end;
  }
  scratch.steps.clear();
  for (size_t end = piece.size(); end > 0;) {
    const Scratch::Node& node = nodes[end];
    const auto begin = static_cast<size_t>(node.begin);
    if (node.id == options_.unk && !scratch.steps.empty() && scratch.steps.back().id == node.id) {
      scratch.steps.back().begin = begin;  // a run of unknown characters is one token
    } else {
      scratch.steps.push_back({begin, end, node.id});
    }
    end = begin;
  }
  for (auto step = scratch.steps.rbegin(); step != scratch.steps.rend(); ++step) {
    if (step->id == options_.unk) {
      AppendUnknown(piece.substr(step->begin, step->end - step->begin), out);
    } else {
      out.push_back(step->id);
    }
  }
}

void Unigram::AppendUnknown(std::string_view text, std::vector<int32_t>& out) const {
  if (const auto id = vocab_.Find(text)) {
    out.push_back(*id);
    return;
  }
  const bool bytes = options_.byte_fallback && std::all_of(text.begin(), text.end(), [&](char c) {
                       return bytes_[static_cast<uint8_t>(c)] >= 0;
                     });
  if (!bytes) {
    out.push_back(*options_.unk);
    return;
  }
  for (const char c : text) out.push_back(bytes_[static_cast<uint8_t>(c)]);
}

}  // namespace vllm::tokenizer
