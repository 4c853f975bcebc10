// The tokenizer and chat template of a model, wherever its files keep them.
#pragma once
#include <memory>
#include <string>

#include "engine/config.h"
#include "engine/llm_engine.h"
#include "load/checkpoint.h"
#include "text/template/chat_template.h"
#include "text/tokenizer/tokenizer.h"

namespace vllm {

// `override` is --tokenizer: a folder, a GGUF file, or empty for the checkpoint's own. Throws base::Exception.
std::unique_ptr<Tokenizer> LoadTokenizer(const Checkpoint& checkpoint, const std::string& override);
// `override` is --chat-template: a file, or the template itself; empty for the tokenizer's own. Null when there is
// none. Throws base::Exception for a template that does not parse.
std::unique_ptr<ChatTemplate> LoadChatTemplate(const Tokenizer& tokenizer, const std::string& override);
// `setting` is --generation-config: "auto" (the model's own), "vllm" (none), or a folder. Throws base::Exception.
GenerationDefaults LoadGenerationDefaults(const Checkpoint& checkpoint, const Tokenizer& tokenizer,
                                          const std::string& setting);

}  // namespace vllm
