// One API request on the engine: its prompts run as engine requests, and every output goes to one writer.
#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "server/openai/api_context.h"
#include "server/openai/api_error.h"
#include "server/openai/common_request.h"

namespace vllm {

struct Prompt {
  std::string text = {};
  std::vector<int32_t> ids = {};
  SamplingParams params = {};
};

// Turns outputs into an answer. Called by one thread at a time; Finish or Fail is last, and comes once.
class AnswerWriter {
 public:
  virtual ~AnswerWriter() = default;
  virtual void Output(size_t prompt, RequestOutput& output) = 0;
  virtual void Finish() = 0;
  virtual void Fail(const ApiError& error) = 0;
};

// Starts all prompts, or none: a mistake in one is told through writer->Fail. If the client goes, all end.
void Generate(const ApiContext& context, const CommonRequest& common, std::vector<Prompt> prompts,
              std::shared_ptr<Responder> responder, std::unique_ptr<AnswerWriter> writer);

// An event that differs from the one before in one text only: the JSON around it is made once.
class TextEvent {
 public:
  TextEvent() = default;
  // `json` has one member `key` that is "".
  TextEvent(const base::Json& json, std::string_view key);
  bool ready() const { return !head_.empty(); }
  // Appends the event with this text.
  void AppendTo(std::string& out, std::string_view text) const;

 private:
  std::string head_, tail_;
};

// The stream side that both endpoints share: head before the first event, events, the end marker.
class EventStream {
 public:
  EventStream(std::shared_ptr<Responder> responder, HttpHeaders headers)
      : responder_(std::move(responder)), headers_(std::move(headers)) {}
  void Event(const base::Json& data);
  void Event(const TextEvent& event, std::string_view text);
  // Sends an error: a plain response before the first event, an event after it. Ends the stream.
  void Fail(const ApiError& error);
  void Done();
  // The last chunk before the end, without choices: `chunk` holds the envelope.
  void UsageChunk(base::Json chunk, const base::Json& usage, const std::string& system_fingerprint);

 private:
  void Open();
  std::shared_ptr<Responder> responder_;
  HttpHeaders headers_;
  bool open_ = false;
  std::string buffer_ = {};  // of one event
};

struct Usage {
  int64_t prompt_tokens = 0, completion_tokens = 0;
  std::optional<int64_t> cached_tokens = {};
};
// {prompt_tokens, total_tokens, completion_tokens, prompt_tokens_details}
base::Json UsageJson(const Usage& usage, bool with_details);

// null, a token id or a stop string.
base::Json StopReasonJson(const StopReason& reason);
base::Json FinishReasonJson(const std::optional<FinishReason>& reason);
// Headers of every answer to this request (X-Request-Id when asked for).
HttpHeaders AnswerHeaders(const ApiContext& context, const CommonRequest& common);

}  // namespace vllm
