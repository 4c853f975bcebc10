// Walks the trie with every index checked, as the file may be hostile.
#include "text/tokenizer/charsmap.h"

#include <cstring>

#include "base/result.h"
#include "base/strings.h"

namespace vllm::tokenizer {

// Layout: trie bytes (uint32), trie units (uint32 each), replacement texts. All little-endian.
Charsmap::Charsmap(std::string_view blob) {
  uint32_t trie_bytes = 0;
  if (blob.size() >= sizeof trie_bytes) std::memcpy(&trie_bytes, blob.data(), sizeof trie_bytes);
  if (blob.size() < sizeof trie_bytes || trie_bytes == 0 || trie_bytes % 4 != 0 ||
      trie_bytes > blob.size() - sizeof trie_bytes) {
    base::Throw(base::ErrorCode::kBadFile, "precompiled_charsmap of ", blob.size(), " bytes claims a trie of ",
                trie_bytes);
  }
  units_.resize(trie_bytes / 4);
  std::memcpy(units_.data(), blob.data() + sizeof trie_bytes, trie_bytes);
  replacements_ = blob.substr(sizeof trie_bytes + trie_bytes);
  if (!base::IsValidUtf8(replacements_))
    base::Throw(base::ErrorCode::kBadFile, "precompiled_charsmap holds invalid UTF-8");
  replacements_ += '\0';
}

std::optional<Charsmap::Match> Charsmap::Find(std::string_view text, bool longest) const {
  const auto offset = [](uint32_t unit) { return (unit >> 10) << ((unit & 0x200) >> 6); };
  std::optional<Match> found;
  size_t node = offset(units_[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    node ^= byte;
    if (byte == 0 || node >= units_.size()) break;
    const uint32_t unit = units_[node];
    if ((unit & 0x800000FFu) != byte) break;
    node ^= offset(unit);
    if (node >= units_.size()) break;
    if ((unit >> 8 & 1) != 0) {
      const size_t value = units_[node] & 0x7FFFFFFFu;
      if (value >= replacements_.size()) break;
      // A replacement that begins inside a character would break the text's UTF-8.
      if ((static_cast<uint8_t>(replacements_[value]) & 0xC0) == 0x80) break;
      found = {i + 1, std::string_view(replacements_.data() + value)};
      if (!longest) break;
    }
  }
  return found;
}

}  // namespace vllm::tokenizer
