// Fuzz target: tokenizer.json, and after a NUL byte tokenizer_config.json; what loads is then used.
// Covers: src/text/tokenizer/tokenizer_json.cc src/text/tokenizer/tokenizer_config.cc src/text/tokenizer/oniguruma.cc
// src/text/tokenizer/charsmap.cc
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/strings.h"
#include "text/tokenizer/detokenize_stream.h"
#include "text/tokenizer/tokenizer.h"

namespace {

void Use(const vllm::Tokenizer& tokenizer) {
  constexpr std::string_view kTexts[] = {"", "Hello, it's 123 \n\n x", " a\u0301 ﬁ 漢字 <s></s> 🦙",
                                         "<0x41> aab abc [CLS]"};
  for (const std::string_view text : kTexts) {
    const std::vector<int32_t> ids = tokenizer.Encode(text);
    if (!base::IsValidUtf8(tokenizer.Decode(ids))) abort();
    vllm::DetokenizeStream stream(tokenizer, {.skip_special_tokens = false}, ids);
    for (int32_t id = -1; id < 20; ++id) {
      if (!base::IsValidUtf8(stream.Push(id))) abort();
      static_cast<void>(tokenizer.TokenBytes(id));
    }
    if (!base::IsValidUtf8(stream.Finish())) abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t cut = std::min(input.find('\0'), size);
  try {
    Use(*vllm::Tokenizer::FromTokenizerJson(input.substr(0, cut), cut < size ? input.substr(cut + 1) : ""));
  } catch (const base::Exception& refusal) {
    const std::string_view message = refusal.what();
    if (message.find('\n') != message.npos || !base::IsValidUtf8(message)) abort();
  }
  return 0;
}
