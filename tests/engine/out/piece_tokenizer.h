// A byte-level tokenizer made of given pieces, one token each, for tests that choose what tokens say.
#pragma once
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "text/tokenizer/tokenizer.h"

namespace vllm {

// Ids: 0..255 the single bytes, 256 "<eos>" and 257 "<end>" (special), then the pieces. Pieces of one byte or given
// twice get the id of their first appearance.
class PieceTokenizer {
 public:
  static constexpr int32_t kEos = 256, kEnd = 257;

  explicit PieceTokenizer(const std::vector<std::string>& pieces) {
    nlohmann::ordered_json vocab;
    for (int byte = 0; byte < 256; ++byte) AddPiece(vocab, std::string(1, static_cast<char>(byte)), byte);
    vocab["<eos>"] = kEos;
    vocab["<end>"] = kEnd;
    int32_t next = kEnd + 1;
    for (const std::string& piece : pieces) {
      if (!ids_.contains(piece)) AddPiece(vocab, piece, next++);
    }
    const auto added = [](int id, const char* content) {
      return nlohmann::ordered_json{{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
                                    {"rstrip", false}, {"normalized", false}, {"special", true}};
    };
    const nlohmann::ordered_json byte_level = {
        {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
    const nlohmann::ordered_json root = {{"version", "1.0"},
                                         {"added_tokens", {added(kEos, "<eos>"), added(kEnd, "<end>")}},
                                         {"normalizer", nullptr},
                                         {"pre_tokenizer", byte_level},
                                         {"post_processor", nullptr},
                                         {"decoder", byte_level},
                                         {"model",
                                          {{"type", "BPE"},
                                           {"dropout", nullptr},
                                           {"unk_token", nullptr},
                                           {"fuse_unk", false},
                                           {"byte_fallback", false},
                                           {"ignore_merges", true},
                                           {"vocab", vocab},
                                           {"merges", nlohmann::ordered_json::array()}}}};
    tokenizer_ = Tokenizer::FromTokenizerJson(root.dump(), R"({"eos_token":"<eos>"})");
  }

  const Tokenizer& operator*() const { return *tokenizer_; }
  std::shared_ptr<const Tokenizer> share() const { return tokenizer_; }
  int32_t Id(const std::string& piece) const { return ids_.at(piece); }
  std::vector<int32_t> Ids(const std::vector<std::string>& pieces) const {
    std::vector<int32_t> ids;
    for (const std::string& piece : pieces) ids.push_back(Id(piece));
    return ids;
  }

 private:
  // GPT-2's printable stand-in for a byte.
  static std::string StandIn(unsigned byte) {
    const auto printable = [](unsigned b) { return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174; };
    unsigned code = byte;
    if (!printable(byte)) {
      code = 256;
      for (unsigned b = 0; b < byte; ++b) code += !printable(b);
    }
    if (code < 0x80) return std::string(1, static_cast<char>(code));
    return {static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 63))};
  }
  void AddPiece(nlohmann::ordered_json& vocab, const std::string& piece, int32_t id) {
    std::string text;
    for (const char c : piece) text += StandIn(static_cast<unsigned char>(c));
    vocab[text] = id;
    ids_[piece] = id;
  }

  std::map<std::string, int32_t> ids_;
  std::shared_ptr<const Tokenizer> tokenizer_;
};

}  // namespace vllm
