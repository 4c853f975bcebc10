// Splits are computed on spans of one text; only byte-level and metaspace rewrite it.
#include "text/tokenizer/pre_tokenizer.h"

#include <algorithm>
#include <string_view>

#include "text/tokenizer/unicode.h"

namespace vllm::tokenizer {
namespace {

using Span = Pieces::Span;

struct Match {
  size_t begin = 0, end = 0;
  bool matched = false;
};

// The whole of `text` as alternating unmatched and matched parts; unmatched ones are not empty.
std::vector<Match> FindAll(const Regex& regex, std::string_view text, bool invert) {
  std::vector<Match> out;
  size_t from = 0;
  for (Regex::Scan scan(regex, text); scan.Next(); from = scan.end()) {
    if (scan.begin() > from) out.push_back({from, scan.begin(), invert});
    out.push_back({scan.begin(), scan.end(), !invert});
  }
  if (from < text.size()) out.push_back({from, text.size(), invert});
  return out;
}

// Every character that `is` holds for is a match of its own.
template <class Predicate>
std::vector<Match> FindChars(std::string_view text, Predicate is) {
  std::vector<Match> out;
  size_t from = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = at + CharBytes(text[at]);
    if (is(CharAt(text, at))) {
      if (at > from) out.push_back({from, at, false});
      out.push_back({at, end, true});
      from = end;
    }
    at = end;
  }
  if (from < text.size()) out.push_back({from, text.size(), false});
  return out;
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

// Appends to `spans` what a split behaviour makes of the matches inside `span`.
void AppendSplit(std::vector<Span>& spans, const Span& span, std::vector<Match> matches, SplitBehavior behavior) {
  switch (behavior) {
    case SplitBehavior::kContiguous:
      matches = MergeContiguous(std::move(matches));
      break;
    case SplitBehavior::kMergedWithPrevious:
      matches = MergeWithPrevious(std::move(matches));
      break;
    case SplitBehavior::kMergedWithNext:
      matches = MergeWithNext(std::move(matches));
      break;
    default:
      break;
  }
  for (const Match& match : matches) {
    if (match.end == match.begin || (behavior == SplitBehavior::kRemoved && match.matched)) continue;
    spans.push_back({span.begin + match.begin, span.begin + match.end, span.first && match.begin == 0});
  }
}

std::string_view TextOf(const Pieces& pieces, const Span& span) {
  return std::string_view(pieces.text).substr(span.begin, span.end - span.begin);
}

// Splits every span by find(text) -> matches.
template <class Find>
void SplitBy(Pieces& pieces, SplitBehavior behavior, Find find) {
  std::vector<Span> spans;
  spans.reserve(pieces.spans.size());
  for (const Span& span : pieces.spans) AppendSplit(spans, span, find(TextOf(pieces, span)), behavior);
  pieces.spans = std::move(spans);
}

// Rewrites every span by rewrite(out, span); spans that become empty go.
template <class Rewrite>
void RewriteBy(Pieces& pieces, Rewrite rewrite) {
  Pieces out;
  out.text.reserve(pieces.text.size() + pieces.text.size() / 2);
  out.spans.reserve(pieces.spans.size());
  for (const Span& span : pieces.spans) {
    const size_t begin = out.text.size();
    rewrite(out.text, span);
    if (out.text.size() > begin) out.spans.push_back({begin, out.text.size(), span.first});
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
    SplitBy(pieces, SplitBehavior::kIsolated, [&](std::string_view text) { return FindAll(p.pattern, text, false); });
  }
  RewriteBy(pieces, [&](std::string& out, const Span& span) {
    for (const char c : TextOf(pieces, span)) out += ByteSpelling(static_cast<uint8_t>(c));
  });
}

void Apply(const PatternSplit& p, Pieces& pieces) {
  SplitBy(pieces, p.behavior, [&](std::string_view text) { return FindAll(p.pattern, text, p.invert); });
}

void Apply(const CharClassSplit& p, Pieces& pieces) {
  SplitBy(pieces, p.behavior, [&](std::string_view text) {
    return FindChars(text, [&](char32_t c) {
      switch (p.char_class) {
        case CharClass::kNumeric:
          return IsNumeric(c);
        case CharClass::kPunctuation:
          return IsPunctuation(c);
        default:
          return IsWhitespace(c);
      }
    });
  });
}

void Apply(const DelimiterSplit& p, Pieces& pieces) {
  const char32_t delimiter = CharAt(p.delimiter, 0);
  SplitBy(pieces, SplitBehavior::kRemoved,
          [&](std::string_view text) { return FindChars(text, [&](char32_t c) { return c == delimiter; }); });
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
  const char32_t replacement = CharAt(p.replacement, 0);
  SplitBy(pieces, SplitBehavior::kMergedWithNext,
          [&](std::string_view text) { return FindChars(text, [&](char32_t c) { return c == replacement; }); });
}

void Apply(const FixedLengthSplit& p, Pieces& pieces) {
  SplitBy(pieces, SplitBehavior::kIsolated, [&](std::string_view text) {
    std::vector<Match> out;
    for (size_t begin = 0; begin < text.size();) {
      size_t end = begin;
      for (size_t n = 0; n < p.chars && end < text.size(); ++n) end += CharBytes(text[end]);
      out.push_back({begin, end, false});
      begin = end;
    }
    return out;
  });
}

void Apply(const WordSplit&, Pieces& pieces) {
  SplitBy(pieces, SplitBehavior::kIsolated, [&](std::string_view text) {
    std::vector<Match> out;
    const auto kind = [&](size_t at) {
      const char32_t c = CharAt(text, at);
      return IsWord(c) ? 2 : IsWhitespace(c) ? 0 : 1;
    };
    for (size_t begin = 0; begin < text.size();) {
      const int run = kind(begin);
      size_t end = begin;
      while (end < text.size() && kind(end) == run) end += CharBytes(text[end]);
      if (run != 0) out.push_back({begin, end, false});
      begin = end;
    }
    return out;
  });
}

}  // namespace

Regex Gpt2Regex() {
  return Regex::FromOniguruma(R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)");
}

Pieces PreTokenize(std::span<const PreTokenizer> pre_tokenizers, std::string text, bool first) {
  Pieces pieces;
  pieces.text = std::move(text);
  if (!pieces.text.empty()) pieces.spans.push_back({0, pieces.text.size(), first});
  for (const PreTokenizer& pre_tokenizer : pre_tokenizers) {
    std::visit([&](const auto& p) { Apply(p, pieces); }, pre_tokenizer);
  }
  return pieces;
}

}  // namespace vllm::tokenizer
