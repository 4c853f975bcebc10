// POST /v1/completions.
#include <nlohmann/json.hpp>

#include "base/limits.h"
#include "server/openai/common_request.h"
#include "server/openai/endpoints.h"
#include "server/openai/generation.h"
#include "server/openai/logprobs_json.h"

namespace vllm {
namespace {

constexpr RefusedField kRefused[] = {{"prompt_embeds", "null"}, {"mm_payload", "null"}};

struct CompletionRequest : CommonRequest {
  std::optional<int> logprobs = {};
  bool prompt_only = false;  // echo with max_tokens 0: the token that had to be generated is not shown
  std::vector<Prompt> prompts = {};
};

// What one choice has said so far.
struct Choice : ChoiceOutput {
  int64_t text_offset = 0;  // of the next token, for streams
  bool echoed = false, started = false;
  int64_t num_tokens = 0;  // for streams, as the next
  TextEvent event = {};
};

// What both forms of the answer need: the request, its prompts, and the JSON of logprobs.
class CompletionAnswer {
 public:
  CompletionAnswer(const ApiContext& context, CompletionRequest request)
      : context_(context), request_(std::move(request)), choices_(request_.prompts.size() * request_.params.n) {
    for (const Prompt& prompt : request_.prompts) usage_.prompt_tokens += static_cast<int64_t>(prompt.ids.size());
    prompt_logprobs_.resize(request_.prompts.size());
  }

 protected:
  Choice& ChoiceOf(size_t prompt, int index) { return choices_[prompt * request_.params.n + index]; }
  void NoteFirst(size_t prompt, RequestOutput& output) {
    if (!output.first) return;
    usage_.cached_tokens = output.cached_tokens;
    prompt_logprobs_[prompt] = std::move(output.prompt_logprobs);
  }
  base::Json Envelope() const {
    base::Json json = base::Json::object();
    json["id"] = request_.id;
    json["object"] = "text_completion";
    json["created"] = request_.created;
    json["model"] = request_.model;
    return json;
  }
  // Of the prompt's positions (when echoed) and then the generated ones.
  base::Json LogprobsJson(size_t prompt, bool with_prompt, std::span<const int32_t> generated,
                          std::span<const PositionLogprobs> logprobs, int64_t& offset) const {
    std::vector<int32_t> ids;
    std::vector<std::optional<PositionLogprobs>> positions;
    if (with_prompt) {
      ids = request_.prompts[prompt].ids;
      positions = prompt_logprobs_[prompt];
      positions.resize(ids.size());
    }
    if (!request_.prompt_only) {
      ids.insert(ids.end(), generated.begin(), generated.end());
      positions.insert(positions.end(), logprobs.begin(), logprobs.end());
    }
    return CompletionLogprobs(context_.engine->tokenizer(), ids, positions,
                              {.top = *request_.logprobs,
                               .as_token_ids = request_.return_tokens_as_token_ids,
                               .all_entries = !request_.params.logprob_token_ids.empty()},
                              offset);
  }

  const ApiContext& context_;
  const CompletionRequest request_;
  std::vector<Choice> choices_;
  std::vector<std::vector<std::optional<PositionLogprobs>>> prompt_logprobs_;  // by prompt
  Usage usage_;
};

class FullCompletion : public AnswerWriter, CompletionAnswer {
 public:
  FullCompletion(const ApiContext& context, CompletionRequest request, std::shared_ptr<Responder> responder)
      : CompletionAnswer(context, std::move(request)), responder_(std::move(responder)) {}

  void Output(size_t prompt, RequestOutput& output) override {
    NoteFirst(prompt, output);
    for (ChoiceOutput& news : output.choices) MergeChoice(ChoiceOf(prompt, news.index), std::move(news));
  }

  void Finish() override {
    base::Json body = Envelope();
    base::Json choices = base::Json::array();
    for (size_t i = 0; i < choices_.size(); ++i) choices.push_back(ChoiceJson(i));
    body["choices"] = std::move(choices);
    body["service_tier"] = nullptr;
    body["system_fingerprint"] = context_.system_fingerprint;
    body["usage"] = UsageJson(usage_, context_.options.enable_prompt_tokens_details);
    body["kv_transfer_params"] = nullptr;
    body["metrics"] = nullptr;
    HttpResponse response = JsonResponse(body);
    response.headers = AnswerHeaders(context_, request_);
    responder_->Send(std::move(response));
  }
  void Fail(const ApiError& error) override { responder_->Send(ErrorResponse(error)); }

 private:
  base::Json ChoiceJson(size_t i) {
    const size_t prompt = i / request_.params.n;
    const Prompt& asked = request_.prompts[prompt];
    const Choice& choice = choices_[i];
    base::Json json = base::Json::object();
    json["index"] = i;
    const std::string echoed = request_.echo && !request_.return_token_ids ? asked.text : "";
    json["text"] = request_.prompt_only ? echoed : echoed + choice.text;
    int64_t offset = 0;
    json["logprobs"] = request_.logprobs
                           ? LogprobsJson(prompt, request_.echo, choice.token_ids, choice.logprobs, offset)
                           : base::Json();
    json["finish_reason"] = FinishReasonJson(choice.finish);
    json["stop_reason"] = StopReasonJson(choice.stop_reason);
    json["token_ids"] = request_.return_token_ids ? base::Json(choice.token_ids) : base::Json();
    const bool asked_for_prompt = request_.params.prompt_logprobs && !(request_.echo && request_.logprobs);
    json["prompt_logprobs"] = asked_for_prompt || (request_.params.prompt_logprobs && request_.echo)
                                  ? PromptLogprobs(context_.engine->tokenizer(), prompt_logprobs_[prompt])
                                  : base::Json();
    json["prompt_token_ids"] = request_.return_token_ids ? base::Json(asked.ids) : base::Json();
    if (!request_.prompt_only) usage_.completion_tokens += static_cast<int64_t>(choice.token_ids.size());
    return json;
  }

  std::shared_ptr<Responder> responder_;
};

class StreamedCompletion : public AnswerWriter, CompletionAnswer {
 public:
  StreamedCompletion(const ApiContext& context, CompletionRequest request, std::shared_ptr<Responder> responder)
      : CompletionAnswer(context, std::move(request)),
        stream_(std::move(responder), AnswerHeaders(context_, request_)) {}

  void Output(size_t prompt, RequestOutput& output) override {
    NoteFirst(prompt, output);
    for (const ChoiceOutput& news : output.choices) SendChoice(prompt, news);
  }
  void Finish() override {
    if (request_.include_usage) {
      stream_.UsageChunk(Envelope(), UsageJson(usage_, context_.options.enable_prompt_tokens_details),
                         context_.system_fingerprint);
    }
    stream_.Done();
  }
  void Fail(const ApiError& error) override { stream_.Fail(error); }

 private:
  void SendChoice(size_t prompt, const ChoiceOutput& news) {
    Choice& choice = ChoiceOf(prompt, news.index);
    if (news.text.empty() && news.token_ids.empty() && !choice.started && !news.finish) return;
    choice.started = true;
    const bool echoes = request_.echo && !choice.echoed, first = !choice.echoed;
    choice.echoed = true;
    if (!request_.prompt_only) {
      choice.num_tokens += static_cast<int64_t>(news.token_ids.size());
      usage_.completion_tokens += static_cast<int64_t>(news.token_ids.size());
    }
    const bool plain = !first && !news.finish && !request_.logprobs && !request_.return_token_ids &&
                       !request_.continuous_usage && !request_.prompt_only;
    if (!plain) return stream_.Event(Chunk(prompt, choice, news, echoes, first));
    if (!choice.event.ready())
      choice.event = TextEvent(Chunk(prompt, choice, {.index = news.index}, false, false), "text");
    stream_.Event(choice.event, news.text);
  }

  base::Json Chunk(size_t prompt, Choice& choice, const ChoiceOutput& news, bool echoes, bool first) {
    const Prompt& asked = request_.prompts[prompt];
    base::Json json = base::Json::object();
    json["index"] = prompt * request_.params.n + news.index;
    std::string text = echoes && !request_.return_token_ids ? asked.text : "";
    if (!request_.prompt_only) text += news.text;
    json["text"] = text;
    json["logprobs"] = request_.logprobs
                           ? LogprobsJson(prompt, echoes, news.token_ids, news.logprobs, choice.text_offset)
                           : base::Json();
    json["finish_reason"] = FinishReasonJson(news.finish);
    json["stop_reason"] = StopReasonJson(news.stop_reason);
    json["prompt_token_ids"] = first && request_.return_token_ids ? base::Json(asked.ids) : base::Json();
    json["token_ids"] = request_.return_token_ids ? base::Json(news.token_ids) : base::Json();
    base::Json chunk = Envelope();
    chunk["choices"] = base::Json::array({std::move(json)});
    if (news.finish && !request_.include_usage) chunk["system_fingerprint"] = context_.system_fingerprint;
    if (request_.continuous_usage)
      chunk["usage"] = UsageJson(
          {.prompt_tokens = static_cast<int64_t>(asked.ids.size()), .completion_tokens = choice.num_tokens}, false);
    return chunk;
  }

  EventStream stream_;
};

std::optional<ApiError> AddIds(const base::Json& ids, CompletionRequest& request) {
  Prompt prompt;
  for (const base::Json& id : ids) {
    if (!id.is_number_integer() || (id.is_number_unsigned() && id.get<uint64_t>() > INT32_MAX) ||
        id.get<int64_t>() > INT32_MAX || id.get<int64_t>() < 0)
      return BadRequest(base::StrCat("Token id ", base::DumpJson(id).substr(0, 40), " is out of vocabulary"), "prompt");
    prompt.ids.push_back(id.get<int32_t>());
  }
  request.prompts.push_back(std::move(prompt));
  return std::nullopt;
}

// `prompt` is a text, a list of texts, a list of ids, or a list of such lists.
std::optional<ApiError> ReadPrompts(const ApiContext& context, base::JsonFields& fields, CompletionRequest& request) {
  const ApiError empty = BadRequest("Either prompt or prompt_embeds must be provided and non-empty.", "prompt");
  const base::Json* prompt = fields.Find("prompt");
  const bool add_special_tokens = fields.Bool("add_special_tokens", true);
  if (!prompt || (prompt->is_array() && prompt->empty())) return empty;
  const auto add_text = [&](const std::string& text) {
    auto error = CheckTextLength(context, text);
    if (!error)
      request.prompts.push_back(
          {.text = text, .ids = context.engine->tokenizer().Encode(text, {.add_special_tokens = add_special_tokens})});
    return error;
  };
  if (prompt->is_string()) {
    if (auto error = add_text(prompt->get<std::string>())) return error;
  } else if (prompt->is_array() && (*prompt)[0].is_number()) {
    if (auto error = AddIds(*prompt, request)) return error;
  } else if (prompt->is_array()) {
    if (prompt->size() > base::kMaxPromptsPerRequest)
      return BadRequest(base::StrCat("Too many prompts: ", prompt->size(), " of at most ", base::kMaxPromptsPerRequest),
                        "prompt");
    for (const base::Json& item : *prompt) {
      if (item.is_string()) {
        if (auto error = add_text(item.get<std::string>())) return error;
      } else if (item.is_array()) {
        if (auto error = AddIds(item, request)) return error;
      } else
        return BadRequest("`prompt` must be a string, a list of strings, a list of token ids or a list of such lists.",
                          "prompt");
    }
  } else {
    return BadRequest("`prompt` must be a string, a list of strings, a list of token ids or a list of such lists.",
                      "prompt");
  }
  for (Prompt& each : request.prompts) {
    if (each.ids.empty()) return empty;
    if (auto error = CheckPromptLength(context, static_cast<int64_t>(each.ids.size()))) return error;
    if (each.text.empty() && request.echo)
      each.text = context.engine->tokenizer().Decode(each.ids, {.skip_special_tokens = false});
  }
  return std::nullopt;
}

// What each prompt's copy of the settings takes, about.
size_t RepeatedBytes(const SamplingParams& params) {
  size_t bytes = params.logit_bias.size() * sizeof params.logit_bias[0] +
                 (params.stop_token_ids.size() + params.logprob_token_ids.size()) * sizeof(int32_t);
  if (params.allowed_token_ids) bytes += params.allowed_token_ids->size() * sizeof(int32_t);
  for (const auto* texts : {&params.stop, &params.bad_words})
    for (const std::string& text : *texts) bytes += sizeof text + text.size();
  return bytes;
}

ApiResult<CompletionRequest> ReadRequest(const ApiContext& context, const HttpRequest& http, const base::Json& body) {
  base::JsonFields fields(body);
  auto common = ReadCommon(context, http, fields, "cmpl-", kRefused);
  if (auto* error = std::get_if<ApiError>(&common)) return *error;
  CompletionRequest request{std::move(std::get<CommonRequest>(common))};
  std::optional<int64_t> max_tokens = fields.FindInt("max_tokens");
  if (!max_tokens) max_tokens = std::min<int64_t>(16, context.engine->info().max_model_len);
  if (const auto logprobs = fields.FindInt("logprobs")) {
    if (*logprobs < 0 && *logprobs != -1) return BadRequest("`logprobs` must be a positive value or -1.", "logprobs");
    request.logprobs = static_cast<int>(std::min<int64_t>(*logprobs, 1 << 30));
    request.params.logprobs = request.logprobs;
  }
  if (!request.params.logprob_token_ids.empty() && !request.logprobs)
    return BadRequest("when using `logprob_token_ids`, `logprobs` must be set.", "logprob_token_ids");
  if (request.echo && request.logprobs && !request.params.prompt_logprobs)
    request.params.prompt_logprobs = request.logprobs;
  if (auto error = ReadPrompts(context, fields, request)) return *error;
  if (fields.error()) return ValidationError(*fields.error());
  request.prompt_only = request.echo && *max_tokens == 0;
  if (*max_tokens == 0 && !request.echo) return BadRequest("max_tokens must be at least 1, got 0.", "max_tokens");
  if (RepeatedBytes(request.params) > base::kMaxRepeatedParamsBytes / request.prompts.size())
    return BadRequest(base::StrCat("Stop strings, bad words and token id lists are too long for ",
                                   request.prompts.size(), " prompts; send them in several requests."));
  for (Prompt& prompt : request.prompts) {
    prompt.params = request.params;
    if (auto error =
            ResolveMaxTokens(context, "max_tokens", max_tokens, static_cast<int64_t>(prompt.ids.size()), prompt.params))
      return *error;
    if (request.prompt_only) prompt.params.max_tokens = 1;
  }
  return request;
}

}  // namespace

void HandleCompletions(const ApiContext& context, HttpRequest http, std::shared_ptr<Responder> responder) {
  auto body = ParseBody(http);
  if (auto* error = std::get_if<ApiError>(&body)) return responder->Send(ErrorResponse(*error));
  auto read = ReadRequest(context, http, std::get<base::Json>(body));
  if (auto* error = std::get_if<ApiError>(&read)) return responder->Send(ErrorResponse(*error));
  auto request = std::get<CompletionRequest>(std::move(read));
  const size_t n = static_cast<size_t>(std::max(request.params.n, 0));
  if (n < 1 || n * request.prompts.size() > base::kMaxSequencesPerRequest)
    return responder->Send(
        ErrorResponse(BadRequest(base::StrCat("n must be between 1 and ", base::kMaxSequencesPerRequest,
                                              " over all prompts, got ", request.params.n, "."),
                                 "n")));
  const CommonRequest common = request;
  std::vector<Prompt> prompts = request.prompts;
  std::unique_ptr<AnswerWriter> writer;
  if (common.stream)
    writer = std::make_unique<StreamedCompletion>(context, std::move(request), responder);
  else
    writer = std::make_unique<FullCompletion>(context, std::move(request), responder);
  Generate(context, common, std::move(prompts), responder, std::move(writer));
}

}  // namespace vllm
