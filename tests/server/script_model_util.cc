// Checkpoints whose greedy text is known.
#include "tests/server/script_model_util.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace vllm::testing {
namespace {

using Json = nlohmann::ordered_json;

// The letter that stands for a byte in byte-level vocabularies.
std::string Letter(unsigned char byte) {
  const auto plain = [](int b) { return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174; };
  int point = byte;
  if (!plain(byte)) {
    point = 256;
    for (int other = 0; other < byte; ++other) point += !plain(other);
  }
  if (point < 128) return {static_cast<char>(point)};
  return {static_cast<char>(0xC0 | (point >> 6)), static_cast<char>(0x80 | (point & 63))};
}

std::string Spelled(std::string_view bytes) {
  std::string text;
  for (unsigned char byte : bytes) text += Letter(byte);
  return text;
}

// A single byte is in the vocabulary already.
std::vector<int64_t> IdsOf(const std::vector<std::string>& pieces) {
  std::vector<int64_t> ids;
  int64_t next = kFirstPieceId;
  for (const std::string& piece : pieces)
    ids.push_back(piece.size() == 1 ? static_cast<unsigned char>(piece[0]) : next++);
  return ids;
}

std::string TokenizerJson(const std::vector<std::string>& pieces, int64_t end_id) {
  Json vocab = Json::object();
  for (int byte = 0; byte < 256; ++byte) vocab[Letter(static_cast<unsigned char>(byte))] = byte;
  const std::vector<int64_t> ids = IdsOf(pieces);
  for (size_t i = 0; i < pieces.size(); ++i) vocab[Spelled(pieces[i])] = ids[i];
  const Json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", false}};
  const Json end = {{"id", end_id},    {"content", "<|end|>"}, {"single_word", false}, {"lstrip", false},
                    {"rstrip", false}, {"normalized", false},  {"special", true}};
  return Json{{"version", "1.0"},
              {"truncation", nullptr},
              {"padding", nullptr},
              {"added_tokens", Json::array({end})},
              {"normalizer", nullptr},
              {"pre_tokenizer", bytes},
              {"post_processor", nullptr},
              {"decoder", bytes},
              {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", Json::array()}}}}
      .dump();
}

std::string ConfigJson(int64_t vocab, int64_t width) {
  return Json{{"architectures", {"LlamaForCausalLM"}},
              {"model_type", "llama"},
              {"hidden_size", width},
              {"intermediate_size", 32},
              {"num_hidden_layers", 1},
              {"num_attention_heads", width / 32},
              {"num_key_value_heads", width / 32},
              {"head_dim", 32},
              {"vocab_size", vocab},
              {"max_position_embeddings", 4096},
              {"rms_norm_eps", 1e-6},
              {"rope_theta", 10000.0},
              {"hidden_act", "silu"},
              {"tie_word_embeddings", false},
              {"attention_bias", false},
              {"mlp_bias", false},
              {"eos_token_id", vocab - 1},
              {"torch_dtype", "float32"}}
      .dump();
}

}  // namespace

std::string WriteScriptModel(const TempFolder& folder, const std::vector<std::string>& pieces,
                             std::string_view chat_template) {
  const std::vector<int64_t> ids = IdsOf(pieces);
  const int64_t end = std::max<int64_t>(kFirstPieceId - 1, *std::max_element(ids.begin(), ids.end())) + 1;
  const int64_t vocab = end + 1, width = (vocab + 31) / 32 * 32;
  std::vector<int64_t> successors(vocab, ids[0]);
  for (size_t i = 0; i < ids.size(); ++i) successors[ids[i]] = i + 1 < ids.size() ? ids[i + 1] : end;
  std::vector<float> embedding(vocab * width), head(vocab * width);
  for (int64_t id = 0; id < vocab; ++id) {
    embedding[id * width + id] = 1;  // the residual stream is the one-hot of the last token
    head[successors[id] * width + id] = 1;
  }
  std::vector<SafetensorsTensor> tensors;
  const auto add = [&](std::string name, std::vector<int64_t> shape, const std::vector<float>& values) {
    tensors.push_back({.name = std::move(name), .dtype = "F32", .shape = std::move(shape), .data = Floats(values)});
  };
  const std::vector<float> ones(width, 1), square(width * width), thin(32 * width);
  add("model.embed_tokens.weight", {vocab, width}, embedding);
  add("lm_head.weight", {vocab, width}, head);
  add("model.norm.weight", {width}, ones);
  const std::string layer = "model.layers.0.";
  for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"})
    add(layer + "self_attn." + name + ".weight", {width, width}, square);
  add(layer + "mlp.gate_proj.weight", {32, width}, thin);
  add(layer + "mlp.up_proj.weight", {32, width}, thin);
  add(layer + "mlp.down_proj.weight", {width, 32}, thin);
  add(layer + "input_layernorm.weight", {width}, ones);
  add(layer + "post_attention_layernorm.weight", {width}, ones);
  folder.Write("model.safetensors", SafetensorsBytes(tensors));
  folder.Write("config.json", ConfigJson(vocab, width));
  folder.Write("tokenizer.json", TokenizerJson(pieces, end));
  folder.Write("tokenizer_config.json", Json{{"tokenizer_class", "PreTrainedTokenizerFast"},
                                             {"eos_token", "<|end|>"},
                                             {"clean_up_tokenization_spaces", false},
                                             {"chat_template", chat_template}}
                                            .dump());
  return folder.path();
}

}  // namespace vllm::testing
