// What the tests of the C ABI share: tiny models that speak ASCII, engines that free themselves, a recorder of pieces.
#pragma once
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vllm.h"

namespace vllm::testing {

inline vllm_text Text(std::string_view text) { return {text.data(), text.size()}; }

// A tiny model whose tokens are the printable ASCII characters and the special <|end|>; `context` tokens long. The
// folder's path.
std::string WriteAsciiModel(const std::string& name, int context = 256);
// The same with a last norm of NaN, so that no logit is a number.
std::string WriteBrokenModel();

using OptionList = std::vector<std::pair<std::string, std::string>>;
vllm_status Load(const std::string& model, const OptionList& options, vllm_engine** engine,
                 vllm_progress_fn progress = nullptr, void* user = nullptr);

// A loaded engine, freed at the end of its scope. Fails the test when it does not load.
class Engine {
 public:
  explicit Engine(const std::string& model, const OptionList& options = {});
  ~Engine() { Free(); }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  void Free();
  vllm_engine* get() const { return engine_; }

 private:
  vllm_engine* engine_ = nullptr;
};

// What a request's callback saw. Thread-safe.
class Recorder {
 public:
  static void Take(const vllm_output* output, void* user);

  // Runs within the callback, after the piece was recorded. Set it before the request starts.
  std::function<void(int call)> on_piece = {};

  std::string text(int index = 0) const;
  std::vector<int32_t> ids(int index = 0) const;
  vllm_finish_reason finish(int index = 0) const;
  std::string error() const;
  int calls() const;
  void WaitForCalls(int count) const;

 private:
  struct Choice {
    std::string text = {};
    std::vector<int32_t> ids = {};
    vllm_finish_reason finish = VLLM_FINISH_NONE;
  };
  const Choice& At(int index) const;

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::vector<Choice> choices_ = std::vector<Choice>(8);
  std::string error_;
  int calls_ = 0;
};

vllm_status Generate(vllm_engine* engine, std::string_view prompt, std::string_view sampling, Recorder* recorder,
                     vllm_request** request);
// A whole greedy answer of 8 tokens; fails the test when the request does.
std::string Answer(vllm_engine* engine, std::string_view prompt);
std::vector<int32_t> Tokenize(vllm_engine* engine, std::string_view text);

}  // namespace vllm::testing
