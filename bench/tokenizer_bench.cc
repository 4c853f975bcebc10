// Megabytes a second of tokenization: 1 MB of one letter, of base64, of Chinese, by each GGUF of the folder
// VLLM_TEST_MODELS.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/load_text.h"
#include "load/checkpoint.h"
#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/unicode.h"

namespace {

constexpr size_t kBytes = 1000000;

uint64_t Next(uint64_t& state) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return state >> 33;
}

std::string Base64() {
  constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (uint64_t state = 1; out.size() < kBytes;) out += kAlphabet[Next(state) % kAlphabet.size()];
  return out;
}

std::string Chinese() {
  std::string out;
  for (uint64_t state = 2; out.size() < kBytes;) {
    vllm::tokenizer::AppendChar(out, static_cast<char32_t>(0x4E00 + Next(state) % 0x51A5));
  }
  return out;
}

void Encode(benchmark::State& state, const vllm::Tokenizer& tokenizer, const std::string& text) {
  size_t tokens = 0;
  for (auto _ : state) tokens = tokenizer.Encode(text, {.add_special_tokens = false}).size();
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(text.size()));
  state.counters["tokens"] = static_cast<double>(tokens);
}

const bool kRegistered = [] {
  const char* folder = std::getenv("VLLM_TEST_MODELS");
  if (folder == nullptr) return false;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".gguf") continue;
    const vllm::Checkpoint checkpoint = vllm::LoadCheckpoint(entry.path().string());
    const std::shared_ptr<const vllm::Tokenizer> tokenizer = vllm::LoadTokenizer(checkpoint, "");
    const std::pair<const char*, std::string> texts[] = {
        {"letter", std::string(kBytes, 'a')}, {"base64", Base64()}, {"chinese", Chinese()}};
    for (const auto& [name, text] : texts) {
      benchmark::RegisterBenchmark((entry.path().stem().string() + "/" + name).c_str(), [tokenizer, text](
                                                                                            benchmark::State& state) {
        Encode(state, *tokenizer, text);
      })->Unit(benchmark::kMillisecond);
    }
  }
  return true;
}();

}  // namespace
