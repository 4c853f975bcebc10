// POST /v1/chat/completions.
#include <nlohmann/json.hpp>

#include "base/limits.h"
#include "server/openai/chat_messages.h"
#include "server/openai/common_request.h"
#include "server/openai/endpoints.h"
#include "server/openai/generation.h"
#include "server/openai/logprobs_json.h"

namespace vllm {
namespace {

constexpr RefusedField kRefused[] = {{"media_io_kwargs", "null"}, {"mm_processor_kwargs", "null"}};

struct ChatCompletionRequest : CommonRequest {
  bool logprobs = false;
  int top_logprobs = 0;
  bool return_prompt_text = false;
  RenderedChat prompt = {};
};

class ChatAnswer {
 public:
  ChatAnswer(const ApiContext& context, ChatCompletionRequest request)
      : context_(context), request_(std::move(request)) {
    usage_.prompt_tokens = static_cast<int64_t>(request_.prompt.ids.size());
  }

 protected:
  base::Json Envelope(const char* object) const {
    base::Json json = base::Json::object();
    json["id"] = request_.id;
    json["object"] = object;
    json["created"] = request_.created;
    json["model"] = request_.model;
    return json;
  }
  base::Json LogprobsJson(std::span<const PositionLogprobs> positions) const {
    if (!request_.logprobs) return nullptr;
    return ChatLogprobs(context_.engine->tokenizer(), positions,
                        {.top = request_.top_logprobs,
                         .as_token_ids = request_.return_tokens_as_token_ids,
                         .all_entries = !request_.params.logprob_token_ids.empty()});
  }

  const ApiContext& context_;
  const ChatCompletionRequest request_;
  Usage usage_;
};

class FullChat : public AnswerWriter, ChatAnswer {
 public:
  FullChat(const ApiContext& context, ChatCompletionRequest request, std::shared_ptr<Responder> responder)
      : ChatAnswer(context, std::move(request)), choices_(request_.params.n), responder_(std::move(responder)) {}

  void Output(size_t, RequestOutput& output) override {
    if (output.first) {
      usage_.cached_tokens = output.cached_tokens;
      prompt_logprobs_ = std::move(output.prompt_logprobs);
    }
    for (ChoiceOutput& news : output.choices) MergeChoice(choices_[news.index], std::move(news));
  }

  void Finish() override {
    base::Json choices = base::Json::array();
    for (size_t i = 0; i < choices_.size(); ++i) {
      const ChoiceOutput& choice = choices_[i];
      usage_.completion_tokens += static_cast<int64_t>(choice.token_ids.size());
      base::Json message = base::Json::object();
      message["role"] = context_.options.response_role;
      message["content"] = (request_.echo ? request_.prompt.last_assistant_text : "") + choice.text;
      for (const char* absent : {"refusal", "annotations", "audio", "function_call", "reasoning"})
        message[absent] = nullptr;
      base::Json json = base::Json::object();
      json["index"] = i;
      json["message"] = std::move(message);
      json["logprobs"] = LogprobsJson(choice.logprobs);
      json["finish_reason"] = FinishReasonJson(choice.finish);
      json["stop_reason"] = StopReasonJson(choice.stop_reason);
      json["token_ids"] = request_.return_token_ids ? base::Json(choice.token_ids) : base::Json();
      choices.push_back(std::move(json));
    }
    base::Json body = Envelope("chat.completion");
    body["choices"] = std::move(choices);
    body["service_tier"] = nullptr;
    body["system_fingerprint"] = context_.system_fingerprint;
    body["usage"] = UsageJson(usage_, context_.options.enable_prompt_tokens_details);
    body["prompt_logprobs"] =
        request_.params.prompt_logprobs ? PromptLogprobs(context_.engine->tokenizer(), prompt_logprobs_) : base::Json();
    body["prompt_token_ids"] = request_.return_token_ids ? base::Json(request_.prompt.ids) : base::Json();
    body["prompt_text"] = request_.return_prompt_text ? base::Json(request_.prompt.text) : base::Json();
    body["kv_transfer_params"] = nullptr;
    body["metrics"] = nullptr;
    HttpResponse response = JsonResponse(body);
    response.headers = AnswerHeaders(context_, request_);
    responder_->Send(std::move(response));
  }
  void Fail(const ApiError& error) override { responder_->Send(ErrorResponse(error)); }

 private:
  std::vector<ChoiceOutput> choices_;
  std::vector<std::optional<PositionLogprobs>> prompt_logprobs_;
  std::shared_ptr<Responder> responder_;
};

class StreamedChat : public AnswerWriter, ChatAnswer {
 public:
  StreamedChat(const ApiContext& context, ChatCompletionRequest request, std::shared_ptr<Responder> responder)
      : ChatAnswer(context, std::move(request)),
        tokens_(request_.params.n),
        events_(request_.params.n),
        stream_(std::move(responder), AnswerHeaders(context_, request_)) {}

  void Output(size_t, RequestOutput& output) override {
    if (output.first) {
      usage_.cached_tokens = output.cached_tokens;
      SendOpening();
    }
    for (const ChoiceOutput& news : output.choices) SendNews(news);
  }
  void Finish() override {
    if (request_.include_usage) {
      for (const int64_t tokens : tokens_) usage_.completion_tokens += tokens;
      stream_.UsageChunk(Envelope("chat.completion.chunk"),
                         UsageJson(usage_, context_.options.enable_prompt_tokens_details), context_.system_fingerprint);
    }
    stream_.Done();
  }
  void Fail(const ApiError& error) override { stream_.Fail(error); }

 private:
  // The first chunk of each choice carries the role, and only it.
  void SendOpening() {
    for (size_t i = 0; i < tokens_.size(); ++i) {
      base::Json delta = base::Json::object();
      delta["role"] = context_.options.response_role;
      delta["content"] = "";
      base::Json chunk = Chunk(i, std::move(delta), nullptr, nullptr);
      chunk["prompt_token_ids"] = request_.return_token_ids ? base::Json(request_.prompt.ids) : base::Json();
      if (request_.return_prompt_text) chunk["prompt_text"] = request_.prompt.text;
      stream_.Event(chunk);
    }
    if (!request_.echo || request_.prompt.last_assistant_text.empty()) return;
    for (size_t i = 0; i < tokens_.size(); ++i) {
      base::Json delta = base::Json::object();
      delta["content"] = request_.prompt.last_assistant_text;
      stream_.Event(Chunk(i, std::move(delta), nullptr, nullptr));
    }
  }

  void SendNews(const ChoiceOutput& news) {
    const size_t i = static_cast<size_t>(news.index);
    tokens_[i] += static_cast<int64_t>(news.token_ids.size());
    if (news.text.empty() && !news.finish && !request_.logprobs && !request_.return_token_ids) return;
    const bool plain = !news.finish && !request_.logprobs && !request_.return_token_ids && !request_.continuous_usage;
    if (!plain) return stream_.Event(NewsChunk(news));
    if (!events_[i].ready()) events_[i] = TextEvent(NewsChunk({.index = news.index}), "content");
    stream_.Event(events_[i], news.text);
  }

  base::Json NewsChunk(const ChoiceOutput& news) const {
    const size_t i = static_cast<size_t>(news.index);
    base::Json delta = base::Json::object();
    delta["content"] = news.text;
    base::Json chunk = Chunk(i, std::move(delta), LogprobsJson(news.logprobs), FinishReasonJson(news.finish));
    base::Json& choice = chunk["choices"][0];
    if (news.finish) choice["stop_reason"] = StopReasonJson(news.stop_reason);
    choice["token_ids"] = request_.return_token_ids ? base::Json(news.token_ids) : base::Json();
    if (news.finish && !request_.include_usage) chunk["system_fingerprint"] = context_.system_fingerprint;
    return chunk;
  }

  base::Json Chunk(size_t index, base::Json delta, base::Json logprobs, base::Json finish) const {
    base::Json choice = base::Json::object();
    choice["index"] = index;
    choice["delta"] = std::move(delta);
    choice["logprobs"] = std::move(logprobs);
    choice["finish_reason"] = std::move(finish);
    base::Json chunk = Envelope("chat.completion.chunk");
    chunk["choices"] = base::Json::array({std::move(choice)});
    if (request_.continuous_usage) {
      chunk["usage"] = UsageJson({.prompt_tokens = usage_.prompt_tokens, .completion_tokens = tokens_[index]}, false);
      chunk["usage"].erase("prompt_tokens_details");
    }
    return chunk;
  }

  std::vector<int64_t> tokens_;    // generated, by choice
  std::vector<TextEvent> events_;  // of plain news, by choice
  EventStream stream_;
};

ApiResult<ChatCompletionRequest> ReadRequest(const ApiContext& context, const HttpRequest& http,
                                             const base::Json& body) {
  base::JsonFields fields(body);
  auto common = ReadCommon(context, http, fields, "chatcmpl-", kRefused);
  if (auto* error = std::get_if<ApiError>(&common)) return *error;
  ChatCompletionRequest request{std::move(std::get<CommonRequest>(common))};
  request.logprobs = fields.Bool("logprobs", false);
  const int64_t top = fields.Int("top_logprobs", 0);
  if (top < 0 && top != -1) return BadRequest("`top_logprobs` must be a positive value or -1.", "top_logprobs");
  if (top != 0 && !request.logprobs)
    return BadRequest("when using `top_logprobs`, `logprobs` must be set to true.", "top_logprobs");
  request.top_logprobs = static_cast<int>(std::min<int64_t>(top, 1 << 30));
  if (request.logprobs) request.params.logprobs = request.top_logprobs;
  if (!request.params.logprob_token_ids.empty() && !request.logprobs)
    return BadRequest("when using `logprob_token_ids`, `logprobs` must be set to true.", "logprob_token_ids");
  request.return_prompt_text = fields.Bool("return_prompt_text", false);
  auto limit = fields.FindInt("max_completion_tokens");
  const char* limit_field = limit ? "max_completion_tokens" : "max_tokens";
  if (!limit) limit = fields.FindInt("max_tokens");
  if (limit && *limit == 0) return BadRequest(base::StrCat(limit_field, " must be at least 1, got 0."), limit_field);
  if (request.params.n < 1 || static_cast<size_t>(request.params.n) > base::kMaxSequencesPerRequest)
    return BadRequest(
        base::StrCat("n must be between 1 and ", base::kMaxSequencesPerRequest, ", got ", request.params.n, "."), "n");
  auto rendered = RenderChat(context, fields);
  if (auto* error = std::get_if<ApiError>(&rendered)) return *error;
  request.prompt = std::get<RenderedChat>(std::move(rendered));
  if (fields.error()) return ValidationError(*fields.error());
  const auto prompt_tokens = static_cast<int64_t>(request.prompt.ids.size());
  if (auto error = CheckPromptLength(context, prompt_tokens)) return *error;
  if (auto error = ResolveMaxTokens(context, limit_field, limit, prompt_tokens, request.params)) return *error;
  return request;
}

}  // namespace

void HandleChatCompletions(const ApiContext& context, HttpRequest http, std::shared_ptr<Responder> responder) {
  auto body = ParseBody(http);
  if (auto* error = std::get_if<ApiError>(&body)) return responder->Send(ErrorResponse(*error));
  auto read = ReadRequest(context, http, std::get<base::Json>(body));
  if (auto* error = std::get_if<ApiError>(&read)) return responder->Send(ErrorResponse(*error));
  auto request = std::get<ChatCompletionRequest>(std::move(read));
  const CommonRequest common = request;
  std::vector<Prompt> prompts = {{.text = request.prompt.text, .ids = request.prompt.ids, .params = request.params}};
  std::unique_ptr<AnswerWriter> writer;
  if (common.stream)
    writer = std::make_unique<StreamedChat>(context, std::move(request), responder);
  else
    writer = std::make_unique<FullChat>(context, std::move(request), responder);
  Generate(context, common, std::move(prompts), responder, std::move(writer));
}

}  // namespace vllm
