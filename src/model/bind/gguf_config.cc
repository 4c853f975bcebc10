// GGUF metadata in config.json's words, so that families read one vocabulary.
#include <algorithm>

#include "base/result.h"
#include "model/bind/bind.h"

namespace vllm {
namespace {

struct KeyRow {
  std::string_view gguf;  // after "<architecture>."
  std::string_view hf;
};

constexpr KeyRow kKeys[] = {
    {"vocab_size", "vocab_size"},
    {"context_length", "max_position_embeddings"},
    {"embedding_length", "hidden_size"},
    {"block_count", "num_hidden_layers"},
    {"feed_forward_length", "intermediate_size"},
    {"attention.head_count", "num_attention_heads"},
    {"attention.head_count_kv", "num_key_value_heads"},
    {"attention.key_length", "head_dim"},
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps"},
    {"attention.sliding_window", "sliding_window"},
    {"rope.freq_base", "rope_theta"},
    {"rope.freq_base_swa", "rope_local_base_freq"},
    {"attn_logit_softcapping", "attn_logit_softcapping"},
    {"final_logit_softcapping", "final_logit_softcapping"},
};
// Read here, or without effect on the numbers.
constexpr std::string_view kConsumedKeys[] = {"attention.value_length",
                                              "rope.dimension_count",
                                              "rope.scaling.type",
                                              "rope.scaling.factor",
                                              "rope.scaling.original_context_length",
                                              "rope.scaling.attn_factor",
                                              "rope.scaling.yarn_beta_fast",
                                              "rope.scaling.yarn_beta_slow",
                                              "rope.scaling.yarn_log_multiplier",
                                              "rope.scaling.finetuned",
                                              "attention.key_length_swa",
                                              "attention.value_length_swa",
                                              "rope.dimension_count_swa"};

ConfigValue Text(std::string_view text) { return {.kind = ConfigValue::Kind::kString, .text = std::string(text)}; }

void Put(ConfigValue& object, std::string_view key, ConfigValue value) {
  object.keys.emplace_back(key);
  object.items.push_back(std::move(value));
}

// rope_scaling from rope.scaling.*; absent when the file has none.
std::optional<ConfigValue> RopeScalingOf(const Config& meta, const std::string& prefix) {
  const std::string type = meta.get<std::string>(prefix + "rope.scaling.type", "none");
  if (type == "none") return std::nullopt;
  ConfigValue scaling{.kind = ConfigValue::Kind::kObject};
  Put(scaling, "rope_type", Text(type));
  const auto copy = [&](const char* gguf, const char* hf) {
    if (const ConfigValue* value = meta.raw(prefix + gguf)) Put(scaling, hf, *value);
  };
  copy("rope.scaling.factor", "factor");
  copy("rope.scaling.original_context_length", "original_max_position_embeddings");
  copy("rope.scaling.attn_factor", "attention_factor");
  copy("rope.scaling.yarn_beta_fast", "beta_fast");
  copy("rope.scaling.yarn_beta_slow", "beta_slow");
  return scaling;
}

}  // namespace

Config ConfigOfGguf(const Checkpoint& checkpoint, const Family& family) {
  const Config& meta = checkpoint.config;
  const std::string prefix = std::string(family.gguf_architecture) + ".";
  ConfigValue root{.kind = ConfigValue::Kind::kObject};
  Put(root, "model_type", Text(family.model_type));
  for (const KeyRow& row : kKeys)
    if (const ConfigValue* value = meta.raw(prefix + std::string(row.gguf))) Put(root, row.hf, *value);
  if (!meta.has(prefix + "vocab_size")) {
    const MetaValue* tokens = checkpoint.Meta("tokenizer.ggml.tokens");
    if (!tokens || !tokens->is_array)
      base::Throw(base::ErrorCode::kBadFile, checkpoint.path,
                  ": tokenizer.ggml.tokens is missing; convert the model again");
    Put(root, "vocab_size",
        {.kind = ConfigValue::Kind::kInt,
         .integer = static_cast<int64_t>(tokens->count),
         .number = static_cast<double>(tokens->count)});
  }
  if (const auto scaling = RopeScalingOf(meta, prefix)) Put(root, "rope_scaling", *scaling);
  std::vector<std::pair<std::string, ConfigValue>> rest;
  if (family.complete_gguf) rest = family.complete_gguf(Config(root, checkpoint.path));
  for (auto& [key, value] : rest) Put(root, key, std::move(value));
  if (std::find(root.keys.begin(), root.keys.end(), "tie_word_embeddings") == root.keys.end())
    Put(root, "tie_word_embeddings",
        {.kind = ConfigValue::Kind::kBool, .boolean = checkpoint.Find("output.weight") == nullptr});
  if (const int64_t rotated = meta.get<int64_t>(prefix + "rope.dimension_count", 0); rotated > 0) {
    const int64_t heads = meta.get_in(prefix + "attention.head_count", 1, 1, 1 << 14);
    const int64_t head_dim = meta.get_in(prefix + "attention.key_length",
                                         meta.need_in(prefix + "embedding_length", 1, 1 << 20) / heads, 1, 1 << 20);
    if (rotated != head_dim)
      Put(root, "partial_rotary_factor",
          {.kind = ConfigValue::Kind::kDouble, .number = static_cast<double>(rotated) / static_cast<double>(head_dim)});
  }
  for (const std::string& key : meta.keys()) {
    if (!key.starts_with(prefix)) continue;
    const std::string_view rest = std::string_view(key).substr(prefix.size());
    bool known = false;
    for (const KeyRow& row : kKeys) known |= row.gguf == rest;
    for (std::string_view consumed : kConsumedKeys) known |= consumed == rest;
    if (!known)
      base::Throw(base::ErrorCode::kUnsupported, checkpoint.path, ": metadata key '", key,
                  "' is not known; it may change the numbers, so the file is refused");
  }
  return Config(std::move(root), checkpoint.path);
}

}  // namespace vllm
