// What the tests of the C ABI share.
#include "tests/capi/capi_util.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/model/tiny_model_util.h"

namespace vllm::testing {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kNumCharacters = 95;  // printable ASCII

std::string TokenizerJson() {
  Json vocab = Json::object();
  for (char c = '!'; c <= '~'; ++c) vocab[std::string(1, c)] = c - '!';
  vocab["Ġ"] = kNumCharacters - 1;  // the space of byte-level vocabularies
  const Json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
  const Json end = {{"id", kNumCharacters}, {"content", "<|end|>"}, {"single_word", false}, {"lstrip", false},
                    {"rstrip", false},      {"normalized", false},  {"special", true}};
  const Json json = {{"version", "1.0"},
                     {"truncation", nullptr},
                     {"padding", nullptr},
                     {"added_tokens", Json::array({end})},
                     {"normalizer", nullptr},
                     {"pre_tokenizer", bytes},
                     {"post_processor", nullptr},
                     {"decoder", bytes},
                     {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", Json::array()}}}};
  return json.dump();
}

}  // namespace

std::string WriteAsciiModel(const std::string& name, int context) {
  const std::string folder = WriteTinyModel(name);
  std::ofstream(folder + "/tokenizer.json") << TokenizerJson();
  Json config = Json::parse(std::ifstream(folder + "/config.json"));
  config["max_position_embeddings"] = context;
  std::ofstream(folder + "/config.json") << config.dump();
  return folder;
}

std::string WriteBrokenModel() {
  const std::string folder = WriteAsciiModel("llama");
  const std::vector<float> broken(64, std::nanf(""));  // the last tensor is the last norm
  std::fstream file(folder + "/model.safetensors", std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-static_cast<int64_t>(broken.size() * sizeof(float)), std::ios::end);
  file.write(reinterpret_cast<const char*>(broken.data()), broken.size() * sizeof(float));
  return folder;
}

vllm_status Load(const std::string& model, const OptionList& options, vllm_engine** engine, vllm_progress_fn progress,
                 void* user) {
  std::vector<vllm_option> list = {{Text("threads"), Text("1")}};
  for (const auto& [name, value] : options) list.push_back({Text(name), Text(value)});
  const vllm_engine_params params = {.size = sizeof params,
                                     .model = Text(model),
                                     .options = list.data(),
                                     .num_options = list.size(),
                                     .progress = progress,
                                     .progress_user = user};
  return vllm_engine_load(&params, engine);
}

Engine::Engine(const std::string& model, const OptionList& options) {
  EXPECT_EQ(Load(model, options, &engine_), VLLM_OK) << vllm_last_error();
}

void Engine::Free() { vllm_engine_free(std::exchange(engine_, nullptr)); }

void Recorder::Take(const vllm_output* output, void* user) {
  auto& self = *static_cast<Recorder*>(user);
  int call = 0;
  {
    const std::lock_guard lock(self.mutex_);
    Choice& choice = self.choices_.at(output->index);
    if (output->text.length > 0) choice.text.append(output->text.data, output->text.length);
    choice.ids.insert(choice.ids.end(), output->token_ids, output->token_ids + output->num_token_ids);
    EXPECT_EQ(choice.finish, VLLM_FINISH_NONE) << "a piece after the last one";
    choice.finish = output->finish_reason;
    if (output->error.length > 0) self.error_.assign(output->error.data, output->error.length);
    call = ++self.calls_;
    self.changed_.notify_all();
  }
  if (self.on_piece) self.on_piece(call);
}

const Recorder::Choice& Recorder::At(int index) const { return choices_.at(index); }

std::string Recorder::text(int index) const {
  const std::lock_guard lock(mutex_);
  return At(index).text;
}

std::vector<int32_t> Recorder::ids(int index) const {
  const std::lock_guard lock(mutex_);
  return At(index).ids;
}

vllm_finish_reason Recorder::finish(int index) const {
  const std::lock_guard lock(mutex_);
  return At(index).finish;
}

std::string Recorder::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

int Recorder::calls() const {
  const std::lock_guard lock(mutex_);
  return calls_;
}

void Recorder::WaitForCalls(int count) const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return calls_ >= count; });
}

vllm_status Generate(vllm_engine* engine, std::string_view prompt, std::string_view sampling, Recorder* recorder,
                     vllm_request** request) {
  const vllm_generate_params params = {.size = sizeof params,
                                       .prompt = Text(prompt),
                                       .token_ids = nullptr,
                                       .num_token_ids = 0,
                                       .sampling_json = Text(sampling),
                                       .on_output = Recorder::Take,
                                       .user = recorder};
  return vllm_generate(engine, &params, request);
}

std::string Answer(vllm_engine* engine, std::string_view prompt) {
  Recorder recorder;
  vllm_request* request = nullptr;
  EXPECT_EQ(Generate(engine, prompt, R"({"temperature":0,"max_tokens":8,"ignore_eos":true,"logit_bias":{"95":-100}})",
                     &recorder, &request),
            VLLM_OK)
      << vllm_last_error();
  if (!request) return "";
  EXPECT_EQ(vllm_request_wait(request), VLLM_OK) << vllm_last_error();
  vllm_request_free(request);
  return recorder.text();
}

std::vector<int32_t> Tokenize(vllm_engine* engine, std::string_view text) {
  size_t count = 0;
  EXPECT_EQ(vllm_tokenize(engine, Text(text), 0, nullptr, 0, &count), VLLM_OK) << vllm_last_error();
  std::vector<int32_t> ids(count);
  EXPECT_EQ(vllm_tokenize(engine, Text(text), 0, ids.data(), ids.size(), &count), VLLM_OK);
  return ids;
}

}  // namespace vllm::testing
