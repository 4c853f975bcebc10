// Splits are computed on spans of one text; only byte-level and metaspace rewrite it.
#include "text/tokenizer/pre_tokenizer.h"

#include <algorithm>
#include <string_view>

#include "text/tokenizer/unicode.h"

namespace vllm::tokenizer {
namespace {

using Span = Pieces::Span;

struct Match {
  uint32_t begin = 0, end = 0;
  bool matched = false;
};

// Calls emit(match) for the whole of `text` as alternating unmatched and matched parts; unmatched ones are not empty.
template <class Emit>
void FindAll(const Regex& regex, std::string_view text, bool invert, Emit emit) {
  size_t from = 0;
  const auto part = [&](size_t begin, size_t end, bool matched) {
    emit(Match{static_cast<uint32_t>(begin), static_cast<uint32_t>(end), matched});
  };
  for (Regex::Scan scan(regex, text); scan.Next(); from = scan.end()) {
    if (scan.begin() > from) part(from, scan.begin(), invert);
    part(scan.begin(), scan.end(), !invert);
  }
  if (from < text.size()) part(from, text.size(), invert);
}

// The same, where every character that `is` holds for is a match of its own.
template <class Predicate, class Emit>
void FindChars(std::string_view text, Predicate is, Emit emit) {
  uint32_t from = 0;
  const auto size = static_cast<uint32_t>(text.size());
  for (uint32_t at = 0; at < size;) {
    const uint32_t end = at + static_cast<uint32_t>(CharBytes(text[at]));
    if (is(CharAt(text, at))) {
      if (at > from) emit(Match{from, at, false});
      emit(Match{at, end, true});
      from = end;
    }
    at = end;
  }
  if (from < size) emit(Match{from, size, false});
}

std::vector<Match> MergeContiguous(std::vector<Match> matches) {
  std::vector<Match> out;
  bool previous = false;
  for (const Match& match : matches) {
    if (match.matched == previous && !out.empty()) {
      out.back().end = match.end;
    } else {
      out.push_back(match);
    }
    previous = match.matched;
  }
  return out;
}

std::vector<Match> MergeWithPrevious(std::vector<Match> matches) {
  std::vector<Match> out;
  bool previous = false;
  for (const Match& match : matches) {
    if (match.matched && !previous && !out.empty()) {
      out.back().end = match.end;
    } else {
      out.push_back(match);
    }
    previous = match.matched;
  }
  return out;
}

std::vector<Match> MergeWithNext(std::vector<Match> matches) {
  std::vector<Match> out;
  bool previous = false;
  for (auto match = matches.rbegin(); match != matches.rend(); ++match) {
    if (match->matched && !previous && !out.empty()) {
      out.back().begin = match->begin;
    } else {
      out.push_back(*match);
    }
    previous = match->matched;
  }
  std::reverse(out.begin(), out.end());
  return out;
}

void Append(std::vector<Span>& spans, const Span& span, const Match& match) {
  if (match.end == match.begin) return;
  spans.push_back({span.begin + match.begin, span.begin + match.end, span.first && match.begin == 0});
}

std::string_view TextOf(const Pieces& pieces, const Span& span) {
  return std::string_view(pieces.text).substr(span.begin, span.end - span.begin);
}

// Splits every span by find(text, emit), which emits the matches in it.
template <class Find>
void SplitBy(Pieces& pieces, SplitBehavior behavior, Find find) {
  std::vector<Span> spans;
  spans.reserve(pieces.spans.size());
  const bool direct = behavior == SplitBehavior::kIsolated || behavior == SplitBehavior::kRemoved;
  for (const Span& span : pieces.spans) {
    if (direct) {
      find(TextOf(pieces, span), [&](const Match& match) {
        if (behavior == SplitBehavior::kIsolated || !match.matched) Append(spans, span, match);
      });
      continue;
    }
    std::vector<Match> matches;
    find(TextOf(pieces, span), [&](const Match& match) { matches.push_back(match); });
    if (behavior == SplitBehavior::kContiguous) matches = MergeContiguous(std::move(matches));
    if (behavior == SplitBehavior::kMergedWithPrevious) matches = MergeWithPrevious(std::move(matches));
    if (behavior == SplitBehavior::kMergedWithNext) matches = MergeWithNext(std::move(matches));
    for (const Match& match : matches) Append(spans, span, match);
  }
  pieces.spans = std::move(spans);
}

// Rewrites every span by rewrite(out, span); spans that become empty go.
template <class Rewrite>
void RewriteBy(Pieces& pieces, Rewrite rewrite) {
  Pieces out;
  out.text.reserve(pieces.text.size() + pieces.text.size() / 2);
  out.spans.reserve(pieces.spans.size());
  for (const Span& span : pieces.spans) {
    const auto begin = static_cast<uint32_t>(out.text.size());
    rewrite(out.text, span);
    if (out.text.size() > begin) out.spans.push_back({begin, static_cast<uint32_t>(out.text.size()), span.first});
  }
  pieces = std::move(out);
}

void Apply(const ByteLevelSplit& p, Pieces& pieces) {
  if (p.add_prefix_space) {
    RewriteBy(pieces, [&](std::string& out, const Span& span) {
      if (pieces.text[span.begin] != ' ') out += ' ';
      out += TextOf(pieces, span);
    });
  }
  if (p.use_regex) {
    SplitBy(pieces, SplitBehavior::kIsolated,
            [&](std::string_view text, auto emit) { FindAll(p.pattern, text, false, emit); });
  }
  RewriteBy(pieces, [&](std::string& out, const Span& span) {
    for (const char c : TextOf(pieces, span)) out += ByteSpelling(static_cast<uint8_t>(c));
  });
}

void Apply(const PatternSplit& p, Pieces& pieces) {
  SplitBy(pieces, p.behavior, [&](std::string_view text, auto emit) { FindAll(p.pattern, text, p.invert, emit); });
}

void Apply(const CharClassSplit& p, Pieces& pieces) {
  const auto is = [&](char32_t c) {
    switch (p.char_class) {
      case CharClass::kNumeric:
        return IsNumeric(c);
      case CharClass::kPunctuation:
        return IsPunctuation(c);
      default:
        return IsWhitespace(c);
    }
  };
  SplitBy(pieces, p.behavior, [&](std::string_view text, auto emit) { FindChars(text, is, emit); });
}

void Apply(const DelimiterSplit& p, Pieces& pieces) {
  const auto is = [delimiter = CharAt(p.delimiter, 0)](char32_t c) { return c == delimiter; };
  SplitBy(pieces, SplitBehavior::kRemoved, [&](std::string_view text, auto emit) { FindChars(text, is, emit); });
}

void Apply(const MetaspaceSplit& p, Pieces& pieces) {
  RewriteBy(pieces, [&](std::string& out, const Span& span) {
    const std::string_view text = TextOf(pieces, span);
    const bool wanted = p.scheme == PrependScheme::kAlways || (p.scheme == PrependScheme::kFirst && span.first);
    if (wanted && !text.starts_with(p.replacement) && text[0] != ' ') out += p.replacement;
    for (const char c : text) {
      if (c == ' ') {
        out += p.replacement;
      } else {
        out += c;
      }
    }
  });
  if (!p.split) return;
  const auto is = [replacement = CharAt(p.replacement, 0)](char32_t c) { return c == replacement; };
  SplitBy(pieces, SplitBehavior::kMergedWithNext, [&](std::string_view text, auto emit) { FindChars(text, is, emit); });
}

void Apply(const FixedLengthSplit& p, Pieces& pieces) {
  SplitBy(pieces, SplitBehavior::kIsolated, [&](std::string_view text, auto emit) {
    for (size_t begin = 0; begin < text.size();) {
      size_t end = begin;
      for (size_t n = 0; n < p.chars && end < text.size(); ++n) end += CharBytes(text[end]);
      emit(Match{static_cast<uint32_t>(begin), static_cast<uint32_t>(end), false});
      begin = end;
    }
  });
}

void Apply(const WordSplit&, Pieces& pieces) {
  SplitBy(pieces, SplitBehavior::kIsolated, [&](std::string_view text, auto emit) {
    const auto kind = [&](size_t at) {
      const char32_t c = CharAt(text, at);
      return IsWord(c) ? 2 : IsWhitespace(c) ? 0 : 1;
    };
    for (size_t begin = 0; begin < text.size();) {
      const int run = kind(begin);
      size_t end = begin;
      while (end < text.size() && kind(end) == run) end += CharBytes(text[end]);
      if (run != 0) emit(Match{static_cast<uint32_t>(begin), static_cast<uint32_t>(end), false});
      begin = end;
    }
  });
}

}  // namespace

Regex Gpt2Regex() {
  return Regex::FromOniguruma(R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)");
}

Pieces PreTokenize(std::span<const PreTokenizer> pre_tokenizers, std::string text, bool first) {
  Pieces pieces;
  pieces.text = std::move(text);
  if (!pieces.text.empty()) pieces.spans.push_back({0, static_cast<uint32_t>(pieces.text.size()), first});
  for (const PreTokenizer& pre_tokenizer : pre_tokenizers) {
    std::visit([&](const auto& p) { Apply(p, pieces); }, pre_tokenizer);
  }
  return pieces;
}

}  // namespace vllm::tokenizer
