// Tiny checkpoints whose weights come from a hash, the same as in tools/golden/models.py.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace vllm::testing {

// Names of the configurations under tests/data/model.
const std::vector<std::string>& TinyModels();
inline constexpr int kTinyVocab = 96;
// The prompt that the golden log-probabilities belong to.
std::vector<int32_t> TinyTokens();
// Writes config.json, model.safetensors (float32) and tokenizer.json of a configuration into a fresh folder; returns
// its path.
std::string WriteTinyModel(const std::string& name);
// Golden log-probabilities [tokens, vocab].
std::vector<float> TinyLogprobs(const std::string& name);

}  // namespace vllm::testing
