// Tiny checkpoints whose weights come from a hash, the same as in tools/golden/models.py.
#include "tests/model/tiny_model_util.h"

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace vllm::testing {
namespace {

using Json = nlohmann::ordered_json;
const std::string kData = VLLM_SOURCE_DIR "/tests/data/model/";

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

void WriteFile(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

float ScaleOf(const std::string& name, size_t rank) {
  if (name.find("norm") != std::string::npos || rank == 1) return 0.25f;
  return name.find("embed") != std::string::npos || name.find("lm_head") != std::string::npos ? 0.4f : 0.1875f;
}

std::vector<float> HashedWeight(const std::string& name, int64_t count, size_t rank, bool one_plus) {
  uint64_t seed = 0xCBF29CE484222325u;
  for (unsigned char byte : name) seed = (seed ^ byte) * 0x100000001B3u;
  const float scale = ScaleOf(name, rank);
  const float offset = name.find("norm") != std::string::npos && !one_plus ? 1.0f : 0.0f;
  std::vector<float> values(count);
  for (int64_t i = 0; i < count; ++i) {
    uint64_t z = seed + (static_cast<uint64_t>(i) + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    values[i] = (static_cast<float>(z >> 40) / 8388608.0f - 1.0f) * scale + offset;
  }
  return values;
}

// A byte-level BPE of single pieces "t0" … without merges: enough for token-id prompts and readable answers.
std::string TokenizerJson() {
  Json vocab = Json::object();
  for (int id = 0; id < kTinyVocab; ++id) vocab["t" + std::to_string(id)] = id;
  Json json = {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", Json::array()},
      {"normalizer", nullptr},
      {"pre_tokenizer",
       {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}}},
      {"post_processor", nullptr},
      {"decoder", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}}},
      {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", Json::array()}}}};
  return json.dump();
}

}  // namespace

const std::vector<std::string>& TinyModels() {
  static const std::vector<std::string> names = {"llama",      "llama_wide", "llama_linear", "llama_llama3",
                                                 "llama_yarn", "mistral",    "qwen2",        "qwen2_window",
                                                 "qwen3",      "qwen3_yarn", "gemma2",       "gemma3"};
  return names;
}

std::vector<int32_t> TinyTokens() {
  std::vector<int32_t> tokens;
  for (int i = 0; i < 40; ++i) tokens.push_back((7 * i * i + 3 * i + 5) % kTinyVocab);
  return tokens;
}

std::string WriteTinyModel(const std::string& name) {
  static int count = 0;
  const auto folder = std::filesystem::temp_directory_path() /
                      ("vllm_tiny_" + std::to_string(::getpid()) + "_" + std::to_string(count++) + "_" + name);
  std::filesystem::create_directories(folder);
  Json config = Json::parse(ReadFile(kData + name + ".json"));
  const Json tensors = config["tensors"];
  config.erase("tensors");
  const bool one_plus = config["model_type"].get<std::string>().starts_with("gemma");
  Json header = Json::object();
  std::string data;
  for (const auto& [tensor, shape] : tensors.items()) {
    int64_t count = 1;
    for (const auto& extent : shape) count *= extent.get<int64_t>();
    const std::vector<float> values = HashedWeight(tensor, count, shape.size(), one_plus);
    header[tensor] = {{"dtype", "F32"}, {"shape", shape}, {"data_offsets", {data.size(), data.size() + count * 4}}};
    data.append(reinterpret_cast<const char*>(values.data()), count * 4);
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t length = text.size();
  std::string file(reinterpret_cast<const char*>(&length), 8);
  WriteFile(folder / "model.safetensors", file + text + data);
  WriteFile(folder / "config.json", config.dump());
  WriteFile(folder / "tokenizer.json", TokenizerJson());
  return folder.string();
}

std::vector<float> TinyLogprobs(const std::string& name) {
  const std::string bytes = ReadFile(kData + name + ".logprobs");
  std::vector<float> values(bytes.size() / 4);
  std::memcpy(values.data(), bytes.data(), values.size() * 4);
  return values;
}

}  // namespace vllm::testing
