// One function per decoder, each from a list of strings to a list of strings.
#include "text/tokenizer/decoder.h"

#include <initializer_list>
#include <utility>

#include "base/strings.h"
#include "text/tokenizer/unicode.h"

namespace vllm::tokenizer {
namespace {

using Tokens = std::vector<std::string>;

void ReplaceText(std::string& text, std::string_view from, std::string_view to) {
  if (from.empty()) return;
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

void CleanUp(std::string& text, std::initializer_list<std::pair<std::string_view, std::string_view>> rules) {
  for (const auto& [from, to] : rules) ReplaceText(text, from, to);
}

// The value of <0xXX>, or -1. Sign characters are accepted in the first place, as the reference's number parser does.
int ByteToken(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  const auto digit = [](char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
  };
  const int low = digit(token[4]);
  if (low < 0) return -1;
  if (token[3] == '+') return low;
  return digit(token[3]) < 0 ? -1 : digit(token[3]) * 16 + low;
}

void Apply(const ByteLevelDecoder&, Tokens& tokens) {
  std::string bytes;
  for (const std::string& token : tokens) {
    if (!AppendSpelledBytes(bytes, token)) bytes += token;  // an added token stands for itself
  }
  tokens = {base::IsValidUtf8(bytes) ? std::move(bytes) : base::ReplaceInvalidUtf8(bytes)};
}

void Apply(const ByteFallbackDecoder&, Tokens& tokens) {
  Tokens out;
  std::string bytes;
  const auto flush = [&] {
    if (bytes.empty()) return;
    if (base::IsValidUtf8(bytes)) {
      out.push_back(bytes);
    } else {
      out.insert(out.end(), bytes.size(), std::string(kReplacement));
    }
    bytes.clear();
  };
  for (std::string& token : tokens) {
    const int byte = ByteToken(token);
    if (byte >= 0) {
      bytes += static_cast<char>(byte);
    } else {
      flush();
      out.push_back(std::move(token));
    }
  }
  flush();
  tokens = std::move(out);
}

void Apply(const FuseDecoder&, Tokens& tokens) { tokens = {base::Join(tokens, "")}; }

void Apply(const ReplaceDecoder& d, Tokens& tokens) {
  for (std::string& token : tokens) token = ReplaceAll(d.replace, std::move(token));
}

void Apply(const StripDecoder& d, Tokens& tokens) {
  for (std::string& token : tokens) {
    std::string_view text = token;
    for (size_t i = 0; i < d.start && text.starts_with(d.content); ++i) text.remove_prefix(d.content.size());
    for (size_t i = 0; i < d.stop && text.ends_with(d.content); ++i) text.remove_suffix(d.content.size());
    token = std::string(text);
  }
}

void Apply(const MetaspaceDecoder& d, Tokens& tokens) {
  for (size_t i = 0; i < tokens.size(); ++i) ReplaceText(tokens[i], d.replacement, i == 0 && d.drop_first ? "" : " ");
}

void Apply(const WordPieceDecoder& d, Tokens& tokens) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    std::string& token = tokens[i];
    if (i != 0) token = token.starts_with(d.prefix) ? token.substr(d.prefix.size()) : " " + token;
    if (d.cleanup) {
      CleanUp(token, {{" .", "."},
                      {" ?", "?"},
                      {" !", "!"},
                      {" ,", ","},
                      {" ' ", "'"},
                      {" n't", "n't"},
                      {" 'm", "'m"},
                      {" do not", " don't"},
                      {" 's", "'s"},
                      {" 've", "'ve"},
                      {" 're", "'re"}});
    }
  }
}

void Apply(const BpeDecoder& d, Tokens& tokens) {
  for (size_t i = 0; i < tokens.size(); ++i) ReplaceText(tokens[i], d.suffix, i + 1 == tokens.size() ? "" : " ");
}

void Apply(const CtcDecoder& d, Tokens& tokens) {
  Tokens out;
  const std::string* previous = nullptr;
  for (const std::string& token : tokens) {
    if (previous != nullptr && *previous == token) continue;
    previous = &token;
    std::string text = token;
    ReplaceText(text, d.pad_token, "");
    if (d.cleanup) {
      Tokens one = {std::move(text)};
      Apply(WordPieceDecoder{"", true}, one);
      text = std::move(one[0]);
      ReplaceText(text, d.word_delimiter_token, " ");
    }
    if (!text.empty()) out.push_back(std::move(text));
  }
  tokens = std::move(out);
}

}  // namespace

std::string DecodeTokens(std::span<const Decoder> decoders, std::vector<std::string> tokens) {
  if (decoders.empty()) return base::Join(tokens, " ");
  for (const Decoder& decoder : decoders) {
    std::visit([&](const auto& d) { Apply(d, tokens); }, decoder);
  }
  return base::Join(tokens, "");
}

std::string BytesOfToken(std::span<const Decoder> decoders, std::string token) {
  for (const Decoder& decoder : decoders) {
    if (std::holds_alternative<ByteLevelDecoder>(decoder)) {
      std::string bytes;
      if (AppendSpelledBytes(bytes, token)) token = std::move(bytes);
    } else if (std::holds_alternative<ByteFallbackDecoder>(decoder)) {
      if (const int byte = ByteToken(token); byte >= 0) return std::string(1, static_cast<char>(byte));
    } else if (const auto* replace = std::get_if<ReplaceDecoder>(&decoder)) {
      token = ReplaceAll(replace->replace, std::move(token));
    } else if (const auto* metaspace = std::get_if<MetaspaceDecoder>(&decoder)) {
      ReplaceText(token, metaspace->replacement, " ");
    } else if (const auto* bpe = std::get_if<BpeDecoder>(&decoder)) {
      ReplaceText(token, bpe->suffix, " ");
    } else if (const auto* word_piece = std::get_if<WordPieceDecoder>(&decoder)) {
      token = token.starts_with(word_piece->prefix) ? token.substr(word_piece->prefix.size()) : token;
    }
  }
  return token;
}

std::string CleanUpSpaces(std::string text) {
  CleanUp(text, {{" .", "."},
                 {" ?", "?"},
                 {" !", "!"},
                 {" ,", ","},
                 {" ' ", "'"},
                 {" n't", "n't"},
                 {" 'm", "'m"},
                 {" 's", "'s"},
                 {" 've", "'ve"},
                 {" 're", "'re"}});
  return text;
}

}  // namespace vllm::tokenizer
