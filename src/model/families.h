// Every model family: one function from a configuration to a spec, one row per model type, and the names of its
// tensors.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "load/config.h"
#include "model/bind/parts.h"
#include "model/spec.h"

namespace vllm {

struct Family {
  std::string_view model_type;         // of config.json
  std::string_view gguf_architecture;  // general.architecture; "" when the type never comes as GGUF
  spec::Model (*build)(const Config&);
  // What differs from the dialects' default names (bind/parts.h).
  std::span<const PartName> hf_names = {};
  std::span<const PartName> gguf_names = {};
  // What GGUF files of this architecture leave unsaid, in config.json's words; `config` holds what they say. May be
  // null.
  std::vector<std::pair<std::string, ConfigValue>> (*complete_gguf)(const Config& config) = nullptr;
};

std::span<const Family> Families();
// Throws base::Exception kUnsupported naming the type and the nearest served one.
const Family& FindFamily(std::string_view model_type, const std::string& source);
const Family& FindGgufFamily(std::string_view architecture, const std::string& source);
// Builds the spec and refuses configuration keys that nobody has classified.
spec::Model BuildModel(const Family& family, const Config& config);

namespace families {

spec::Model Llama(const Config& config);  // llama, mistral, qwen2, qwen3
spec::Model Gemma(const Config& config);  // gemma2, gemma3_text

// Fields that nearly every decoder shares.
spec::Model CommonModel(const Config& config);
spec::Attention CommonAttention(const Config& config);
// rope_parameters (or, older, rope_theta and rope_scaling). `section` picks one of several ("full_attention"), or is
// empty.
spec::Rope CommonRope(const Config& config, int head_dim, std::string_view section);
// layer_types as a list of "is this layer windowed"; `otherwise(i)` where the configuration does not say.
std::vector<bool> WindowedLayers(const Config& config, int layers, bool (*otherwise)(int layer));

// What all published models of the two architectures share and their GGUF files do not say.
std::vector<std::pair<std::string, ConfigValue>> CompleteGemma(const Config& config);

extern const std::span<const PartName> kGemmaHfNames, kGemmaGgufNames, kLlamaGgufNames;

}  // namespace families
}  // namespace vllm
