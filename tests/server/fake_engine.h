// An LlmEngine without a model: it records what is submitted, and the test plays the outputs.
#pragma once
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "engine/llm_engine.h"
#include "server/http/http_server.h"
#include "text/template/chat_template.h"
#include "text/tokenizer/tokenizer.h"

namespace vllm::testing {

class FakeEngine final : public LlmEngine {
 public:
  // `tokenizer_json` as in script_model_util; `chat_template` "" for none.
  explicit FakeEngine(const std::string& tokenizer_json, const std::string& chat_template = "")
      : tokenizer_(Tokenizer::FromTokenizerJson(tokenizer_json)) {
    info_.model_name = "m";
    info_.served_names = {"m", "alias"};
    info_.max_model_len = 64;
    info_.vocab_size = 257;
    if (!chat_template.empty()) {
      auto parsed = ChatTemplate::Create(chat_template);
      template_ = std::make_unique<ChatTemplate>(parsed.value());
    }
  }

  // Outputs go where the test sends them; checked as the real engine checks, up to `refuse_after` requests.
  base::Result<uint64_t> Submit(GenerateRequest request) override {
    const std::lock_guard lock(mutex_);
    if (submitted.size() >= refuse_after)
      return base::MakeError(base::ErrorCode::kOverloaded, "too many requests are queued");
    if (auto status = ValidateSamplingParams(request.params, info_.vocab_size, 20); !status.ok()) return status.error();
    submitted.push_back(std::move(request));
    return submitted.size();
  }
  void Abort(uint64_t handle) override {
    const std::lock_guard lock(mutex_);
    aborted.push_back(handle);
  }
  const EngineInfo& info() const override { return info_; }
  const EngineConfig& config() const override { return config_; }
  const GenerationDefaults& defaults() const override { return defaults_; }
  const Tokenizer& tokenizer() const override { return *tokenizer_; }
  const ChatTemplate* chat_template() const override { return template_.get(); }
  EngineStats stats() const override { return {}; }
  base::MetricsRegistry& metrics() override { return metrics_; }
  bool healthy() const override { return alive; }
  bool ResetPrefixCache() override { return true; }
  void Drain(int64_t) override {}

  GenerationDefaults defaults_ = {};
  EngineInfo info_ = {};
  std::deque<GenerateRequest> submitted;
  std::vector<uint64_t> aborted;
  size_t refuse_after = SIZE_MAX;
  bool alive = true;

 private:
  std::mutex mutex_;
  EngineConfig config_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<ChatTemplate> template_;
  base::MetricsRegistry metrics_;
};

// A byte-level vocabulary of the 256 bytes and "<|end|>", and nothing else.
inline std::string ByteTokenizerJson() {
  const auto letter = [](int byte) {
    const auto plain = [](int b) { return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174; };
    int point = byte;
    if (!plain(byte)) {
      point = 256;
      for (int other = 0; other < byte; ++other) point += !plain(other);
    }
    if (point == '"' || point == '\\') return std::string("\\") + static_cast<char>(point);
    if (point < 128) return std::string(1, static_cast<char>(point));
    return std::string{static_cast<char>(0xC0 | (point >> 6)), static_cast<char>(0x80 | (point & 63))};
  };
  std::string vocab;
  for (int byte = 0; byte < 256; ++byte) vocab += (byte ? ",\"" : "\"") + letter(byte) + "\":" + std::to_string(byte);
  const std::string bytes = R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":false})";
  return R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":[{"id":256,"content":"<|end|>",)"
         R"("single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}],"normalizer":null,)"
         R"("pre_tokenizer":)" +
         bytes + R"(,"post_processor":null,"decoder":)" + bytes + R"(,"model":{"type":"BPE","vocab":{)" + vocab +
         R"(},"merges":[]}})";
}

// A Responder that keeps the answer.
class KeptAnswer final : public Responder {
 public:
  void Send(HttpResponse response) override { status = response.status, body = response.body, ended = true; }
  void StartStream(HttpResponse head) override { status = head.status, streamed = true; }
  bool Write(std::string_view bytes) override { return body += bytes, true; }
  void End() override { ended = true; }
  void OnGone(std::function<void()> callback) override { gone = std::move(callback); }

  int status = 0;
  std::string body;
  bool streamed = false, ended = false;
  std::function<void()> gone;
};

}  // namespace vllm::testing
