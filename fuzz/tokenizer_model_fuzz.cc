// Fuzz target: SentencePiece's tokenizer.model; what loads is then used.
// Covers: src/text/tokenizer/sentencepiece_model.cc src/text/tokenizer/charsmap.cc
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/result.h"
#include "base/strings.h"
#include "text/tokenizer/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto tokenizer = vllm::Tokenizer::FromSentencePiece({reinterpret_cast<const char*>(data), size});
    for (const std::string_view text : {"", "  Hello  it's 123", "e\u0301 ﬁ ½ 漢字 <s> 🦙", "<0x41>aab"}) {
      if (!base::IsValidUtf8(tokenizer->Decode(tokenizer->Encode(text)))) abort();
    }
  } catch (const base::Exception& refusal) {
    const std::string_view message = refusal.what();
    if (message.find('\n') != message.npos || !base::IsValidUtf8(message)) abort();
  }
  return 0;
}
