// Greedy longest match from the left.
#include "text/tokenizer/word_piece.h"

#include "text/tokenizer/unicode.h"

namespace vllm::tokenizer {

void WordPiece::Tokenize(std::string_view piece, std::vector<int32_t>& out, Scratch& scratch) const {
  const size_t before = out.size();
  bool bad = CountChars(piece) > options_.max_chars_per_word;
  for (size_t begin = 0; !bad && begin < piece.size();) {
    size_t end = piece.size();
    for (; end > begin; end = CharBefore(piece, end)) {
      scratch.text = begin > 0 ? options_.continuing_subword_prefix : "";
      scratch.text += piece.substr(begin, end - begin);
      if (const auto id = vocab_.Find(scratch.text)) {
        out.push_back(*id);
        break;
      }
    }
    bad = end <= begin;
    begin = end;
  }
  if (!bad) return;
  out.resize(before);
  out.push_back(options_.unk);
}

}  // namespace vllm::tokenizer
