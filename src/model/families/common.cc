// Readers of configuration fields that nearly every decoder shares, and the table of families.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/families.h"

namespace vllm {
namespace families {
namespace {

constexpr int64_t kMaxDim = 1 << 20, kMaxVocab = 1 << 24, kMaxPosition = 1 << 30, kMaxHeads = 1 << 14;
constexpr int64_t kMaxHeadDim = 1 << 12;

spec::RopeScaling ReadScaling(const Config& c) {
  spec::RopeScaling scaling;
  std::string type = c.get<std::string>("rope_type", "");
  if (type.empty()) type = c.get<std::string>("type", "default");  // the older key
  if (type == "default") return scaling;
  scaling.factor = c.need_in_real("factor", 1e-3, 1e6);
  if (type == "linear") {
    scaling.kind = spec::RopeScaling::Kind::kLinear;
  } else if (type == "llama3") {
    scaling.kind = spec::RopeScaling::Kind::kLlama3;
    scaling.low_freq_factor = c.need_in_real("low_freq_factor", 1e-6, 1e6);
    scaling.high_freq_factor = c.need_in_real("high_freq_factor", 1e-6, 1e6);
    scaling.original_max_position = static_cast<double>(c.need_in("original_max_position_embeddings", 1, kMaxPosition));
    if (scaling.low_freq_factor == scaling.high_freq_factor)
      c.Refuse("high_freq_factor", "must differ from low_freq_factor");
  } else if (type == "yarn") {
    scaling.kind = spec::RopeScaling::Kind::kYarn;
    scaling.original_max_position =
        static_cast<double>(c.get_in("original_max_position_embeddings", 0, 1, kMaxPosition));
    scaling.beta_fast = c.get_in_real("beta_fast", 32, 1e-6, 1e6);
    scaling.beta_slow = c.get_in_real("beta_slow", 1, 1e-6, 1e6);
    scaling.attention_factor = c.find<double>("attention_factor");
    scaling.mscale = c.get<double>("mscale", 0);
    scaling.mscale_all_dim = c.get<double>("mscale_all_dim", 0);
    scaling.truncate = c.get<bool>("truncate", true);
  } else {
    c.Refuse(c.has("rope_type") ? "rope_type" : "type", "is not served; served: default, linear, llama3, yarn");
  }
  return scaling;
}

}  // namespace

spec::Model CommonModel(const Config& c) {
  spec::Model model;
  model.type = c.need<std::string>("model_type");
  model.vocab = static_cast<int>(c.need_in("vocab_size", 1, kMaxVocab));
  model.dim = static_cast<int>(c.need_in("hidden_size", 1, kMaxDim));
  model.max_position = static_cast<int>(c.need_in("max_position_embeddings", 1, kMaxPosition));
  model.head.norm.eps = c.get_in_real("rms_norm_eps", 1e-6, 0, 1);
  model.head.tied = c.get<bool>("tie_word_embeddings", false);
  return model;
}

spec::Attention CommonAttention(const Config& c) {
  spec::Attention attn;
  attn.heads = static_cast<int>(c.need_in("num_attention_heads", 1, kMaxHeads));
  attn.kv_heads = static_cast<int>(c.get_in("num_key_value_heads", attn.heads, 1, kMaxHeads));
  if (attn.heads % attn.kv_heads != 0) c.Refuse("num_key_value_heads", "does not divide num_attention_heads");
  const int64_t dim = c.need_in("hidden_size", 1, kMaxDim);
  if (!c.has("head_dim") && dim % attn.heads != 0) c.Refuse("num_attention_heads", "does not divide hidden_size");
  attn.head_dim = static_cast<int>(c.get_in("head_dim", std::max<int64_t>(dim / attn.heads, 1), 1, kMaxHeadDim));
  if (attn.head_dim % 2 != 0) c.Refuse("head_dim", "is odd; rotary embedding needs pairs");
  attn.q_k_norm.eps = c.get_in_real("rms_norm_eps", 1e-6, 0, 1);
  return attn;
}

spec::Rope CommonRope(const Config& c, int head_dim, std::string_view section) {
  spec::Rope rope;
  rope.dim = static_cast<int>(head_dim * c.get_in_real("partial_rotary_factor", 1, 0, 1)) / 2 * 2;
  Config parameters = c.object("rope_parameters");
  if (!section.empty() && parameters.has(section)) parameters = parameters.object(section);
  if (parameters.empty()) parameters = c.object("rope_scaling");
  rope.base = parameters.get_in_real("rope_theta", c.get_in_real("rope_theta", 10000, 1, 1e12), 1, 1e12);
  rope.scaling = ReadScaling(parameters);
  return rope;
}

std::vector<bool> WindowedLayers(const Config& c, int layers, bool (*otherwise)(int layer)) {
  std::vector<bool> windowed;
  if (!c.has("layer_types")) {
    for (int i = 0; i < layers; ++i) windowed.push_back(otherwise(i));
    return windowed;
  }
  const auto types = c.need<std::vector<std::string>>("layer_types");
  if (static_cast<int>(types.size()) != layers) c.Refuse("layer_types", base::StrCat("must name ", layers, " layers"));
  for (const std::string& type : types) {
    if (type != "sliding_attention" && type != "full_attention")
      c.Refuse("layer_types", "may hold sliding_attention and full_attention only");
    windowed.push_back(type == "sliding_attention");
  }
  return windowed;
}

}  // namespace families

namespace {

using families::kGemmaGgufNames, families::kGemmaHfNames, families::kLlamaGgufNames;

// Keys that say nothing about the numbers of a forward pass.
constexpr std::string_view kIgnoredKeys[] = {"architectures",
                                             "torch_dtype",
                                             "dtype",
                                             "transformers_version",
                                             "_name_or_path",
                                             "use_cache",
                                             "initializer_range",
                                             "bos_token_id",
                                             "eos_token_id",
                                             "pad_token_id",
                                             "attention_dropout",
                                             "pretraining_tp",
                                             "output_hidden_states",
                                             "output_attentions",
                                             "return_dict",
                                             "id2label",
                                             "label2id",
                                             "problem_type",
                                             "chunk_size_feed_forward",
                                             "is_encoder_decoder",
                                             "cache_implementation",
                                             "is_llama_config",
                                             "rope_interleaved",
                                             "transformers.js_config",
                                             "_attn_implementation",
                                             "torchscript",
                                             "finetuning_task",
                                             "unsloth_version",
                                             "unsloth_fixed",
                                             "quantization_config",
                                             "max_window_layers",
                                             "hidden_dropout",
                                             "embedding_dropout",
                                             "use_bidirectional_attention",
                                             "_sliding_window_pattern"};

}  // namespace

std::span<const Family> Families() {
  static const std::array kFamilies = {
      Family{
          .model_type = "llama", .gguf_architecture = "llama", .build = families::Llama, .gguf_names = kLlamaGgufNames},
      Family{.model_type = "mistral", .gguf_architecture = "", .build = families::Llama},
      Family{.model_type = "qwen2", .gguf_architecture = "qwen2", .build = families::Llama},
      Family{.model_type = "qwen3", .gguf_architecture = "qwen3", .build = families::Llama},
      Family{.model_type = "gemma2",
             .gguf_architecture = "gemma2",
             .build = families::Gemma,
             .hf_names = kGemmaHfNames,
             .gguf_names = kGemmaGgufNames,
             .complete_gguf = families::CompleteGemma},
      Family{.model_type = "gemma3_text",
             .gguf_architecture = "gemma3",
             .build = families::Gemma,
             .hf_names = kGemmaHfNames,
             .gguf_names = kGemmaGgufNames,
             .complete_gguf = families::CompleteGemma},
  };
  return kFamilies;
}

const Family& FindFamily(std::string_view model_type, const std::string& source) {
  std::vector<std::string> served;
  for (const Family& family : Families()) {
    if (family.model_type == model_type) return family;
    served.emplace_back(family.model_type);
  }
  base::Throw(base::ErrorCode::kUnsupported, source, ": model_type '", model_type,
              "' is not served; served: ", base::Join(served, ", "));
}

const Family& FindGgufFamily(std::string_view architecture, const std::string& source) {
  std::vector<std::string> served;
  for (const Family& family : Families()) {
    if (!family.gguf_architecture.empty() && family.gguf_architecture == architecture) return family;
    if (!family.gguf_architecture.empty()) served.emplace_back(family.gguf_architecture);
  }
  base::Throw(base::ErrorCode::kUnsupported, source, ": general.architecture '", architecture,
              "' is not served; served: ", base::Join(served, ", "));
}

spec::Model BuildModel(const Family& family, const Config& config) {
  spec::Model model = family.build(config);
  config.CheckAllKnown(kIgnoredKeys);
  return model;
}

}  // namespace vllm
