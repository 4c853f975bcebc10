// One API request on the engine.
#include "server/openai/generation.h"

#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/strings.h"

namespace vllm {
namespace {

class Generation : public std::enable_shared_from_this<Generation> {
 public:
  Generation(LlmEngine* engine, std::unique_ptr<AnswerWriter> writer) : engine_(engine), writer_(std::move(writer)) {}

  void Start(const CommonRequest& common, std::vector<Prompt> prompts, const std::shared_ptr<Responder>& responder) {
    std::vector<uint64_t> to_abort;
    {
      const std::lock_guard lock(mutex_);  // outputs wait until every prompt has been accepted
      remaining_ = prompts.size();
      for (size_t i = 0; i < prompts.size(); ++i) {
        auto submitted = engine_->Submit({.request_id = common.id,
                                          .prompt_token_ids = std::move(prompts[i].ids),
                                          .params = std::move(prompts[i].params),
                                          .cache_salt = common.cache_salt,
                                          .priority = common.priority,
                                          .timeout_s = common.timeout_s,
                                          .on_output = [self = shared_from_this(), i](RequestOutput output) {
                                            self->OnOutput(i, std::move(output));
                                          }});
        if (submitted.ok()) {
          handles_.push_back(*submitted);
          continue;
        }
        done_ = true;
        writer_->Fail(FromSubmitError(submitted.error(), engine_->stats()));
        to_abort.swap(handles_);
        break;
      }
    }
    for (const uint64_t handle : to_abort) engine_->Abort(handle);
    responder->OnGone([self = shared_from_this()] { self->Cancel(); });
  }

 private:
  void OnOutput(size_t prompt, RequestOutput output) {
    std::vector<uint64_t> to_abort;
    {
      const std::lock_guard lock(mutex_);
      if (done_) return;
      if (output.error) {
        done_ = true;
        writer_->Fail(FromEngineError(*output.error));
        to_abort.swap(handles_);
      } else {
        const bool finished = output.finished;
        writer_->Output(prompt, output);
        if (finished && --remaining_ == 0) {
          done_ = true;
          writer_->Finish();
        }
      }
    }
    for (const uint64_t handle : to_abort) engine_->Abort(handle);
  }

  void Cancel() {
    std::vector<uint64_t> to_abort;
    {
      const std::lock_guard lock(mutex_);
      if (done_) return;
      done_ = true;
      to_abort.swap(handles_);
    }
    for (const uint64_t handle : to_abort) engine_->Abort(handle);
  }

  LlmEngine* const engine_;
  std::mutex mutex_;
  std::unique_ptr<AnswerWriter> writer_;
  std::vector<uint64_t> handles_;
  size_t remaining_ = 0;
  bool done_ = false;
};

}  // namespace

void Generate(const ApiContext& context, const CommonRequest& common, std::vector<Prompt> prompts,
              std::shared_ptr<Responder> responder, std::unique_ptr<AnswerWriter> writer) {
  std::make_shared<Generation>(context.engine, std::move(writer))->Start(common, std::move(prompts), responder);
}

void EventStream::Open() {
  if (open_) return;
  open_ = true;
  responder_->StartStream({.content_type = "text/event-stream; charset=utf-8", .headers = headers_});
}

TextEvent::TextEvent(const base::Json& json, std::string_view key) {
  const std::string whole = base::DumpJson(json), place = base::StrCat("\"", key, "\":\"\"");
  const size_t at = whole.find(place);  // quotes inside of texts are escaped: it can be nothing else
  CHECK(at != std::string::npos, "an event has no empty ", key);
  const size_t text = at + place.size() - 2;
  head_ = base::StrCat("data: ", std::string_view(whole).substr(0, text));
  tail_ = base::StrCat(std::string_view(whole).substr(text + 2), "\n\n");
}

void TextEvent::AppendTo(std::string& out, std::string_view text) const {
  out += head_;
  base::AppendJsonString(out, text);
  out += tail_;
}

void EventStream::Event(const base::Json& data) {
  Open();
  responder_->Write(base::StrCat("data: ", base::DumpJson(data), "\n\n"));
}

void EventStream::Event(const TextEvent& event, std::string_view text) {
  Open();
  buffer_.clear();
  event.AppendTo(buffer_, text);
  responder_->Write(buffer_);
}

void EventStream::Fail(const ApiError& error) {
  if (!open_) return responder_->Send(ErrorResponse(error));
  Event(ErrorBody(error));
  Done();
}

void EventStream::Done() {
  Open();
  responder_->Write("data: [DONE]\n\n");
  responder_->End();
}

void EventStream::UsageChunk(base::Json chunk, const base::Json& usage, const std::string& system_fingerprint) {
  chunk["choices"] = base::Json::array();
  chunk["usage"] = usage;
  if (chunk["usage"]["prompt_tokens_details"].is_null()) chunk["usage"].erase("prompt_tokens_details");
  chunk["system_fingerprint"] = system_fingerprint;
  Event(chunk);
}

base::Json UsageJson(const Usage& usage, bool with_details) {
  base::Json json = base::Json::object();
  json["prompt_tokens"] = usage.prompt_tokens;
  json["total_tokens"] = usage.prompt_tokens + usage.completion_tokens;
  json["completion_tokens"] = usage.completion_tokens;
  json["prompt_tokens_details"] = nullptr;
  if (with_details && usage.cached_tokens) json["prompt_tokens_details"] = {{"cached_tokens", *usage.cached_tokens}};
  return json;
}

base::Json StopReasonJson(const StopReason& reason) {
  if (const auto* id = std::get_if<int32_t>(&reason)) return *id;
  if (const auto* text = std::get_if<std::string>(&reason)) return *text;
  return nullptr;
}

base::Json FinishReasonJson(const std::optional<FinishReason>& reason) {
  if (!reason) return nullptr;
  return std::string(FinishReasonName(*reason));
}

HttpHeaders AnswerHeaders(const ApiContext& context, const CommonRequest& common) {
  if (!context.options.enable_request_id_headers) return {};
  return {{"X-Request-Id", common.id.substr(common.id.find('-') + 1)}};
}

}  // namespace vllm
