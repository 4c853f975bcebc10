// The request front end of LlmEngine: checks requests, fills in what callers leave out, and splits n choices into
// sequences.
#pragma once
#include <functional>
#include <memory>

#include "engine/engine_core.h"
#include "engine/llm_engine.h"
#include "text/tokenizer/tokenizer.h"

namespace vllm {

// What loading a model has put together.
struct EngineParts {
  EngineConfig config = {};
  EngineInfo info = {};  // max_model_len, vocab_size and model_name are used here
  GenerationDefaults defaults = {};
  std::shared_ptr<const Tokenizer> tokenizer = {};
  std::shared_ptr<const ChatTemplate> chat_template = {};  // may be null
  // Builds the core with the sink that it is to report to.
  std::function<std::unique_ptr<EngineCore>(EngineCore::OutputSink)> make_core = {};
  // Runner, model, mapped files, …: what the core uses. Destroyed after the core.
  std::shared_ptr<void> resources = {};
};

// Throws what make_core throws.
std::unique_ptr<LlmEngine> MakeLlmEngine(EngineParts parts);

}  // namespace vllm
