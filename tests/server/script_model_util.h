// Checkpoints whose greedy text is known: a Llama that emits exactly the pieces it is given, one token a piece.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "tests/load/model_files_util.h"

namespace vllm::testing {

inline constexpr std::string_view kPlainTemplate = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}";

// Writes config.json, model.safetensors, tokenizer.json and tokenizer_config.json. The vocabulary is the 256 bytes,
// then those pieces (all different; they may be half characters), then the end "<|end|>". After any token that is no
// piece the first piece follows; after the last piece, the end. Returns the folder.
std::string WriteScriptModel(const TempFolder& folder, const std::vector<std::string>& pieces,
                             std::string_view chat_template = kPlainTemplate);
// Ids of its vocabulary: bytes are their own, pieces follow, then the end.
inline constexpr int32_t kFirstPieceId = 256;

}  // namespace vllm::testing
