// The prompts of vllm bench serve: vLLM's data sets that need no network.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/options.h"
#include "text/template/chat_template.h"
#include "text/tokenizer/tokenizer.h"

namespace vllm {

struct SampleRequest {
  std::string prompt = {};
  int64_t prompt_len = 0, output_len = 0;  // tokens
};

// What a data set may need beside its options.
struct DatasetContext {
  const Tokenizer* tokenizer = nullptr;         // null with --skip-tokenizer-init
  const ChatTemplate* chat_template = nullptr;  // of the custom data set; may be null
  uint64_t seed = 0;
};

// vLLM's options and meanings (vllm/benchmarks/datasets): random, prefix_repetition, sharegpt, custom. Equal seeds give
// equal prompts, but not those of vLLM, whose generators are numpy's. Throws base::Exception naming the option or the
// file.
std::vector<SampleRequest> MakeDataset(const base::Options& options, const DatasetContext& context);

// A text of `length` tokens made of these ids, as near as decoding and encoding again allow: what it becomes is
// shortened, or lengthened by random tokens, up to ten times.
struct FittedPrompt {
  std::string text = {};
  std::vector<int32_t> ids = {};
};
FittedPrompt FitPrompt(const Tokenizer& tokenizer, std::vector<int32_t> ids, size_t length, uint64_t seed);

}  // namespace vllm
