// POST /tokenize and /detokenize.
#include <nlohmann/json.hpp>

#include "server/openai/chat_messages.h"
#include "server/openai/common_request.h"
#include "server/openai/endpoints.h"
#include "text/tokenizer/tokenizer.h"

namespace vllm {
namespace {

ApiResult<base::Json> Tokenize(const ApiContext& context, const base::Json& body) {
  base::JsonFields fields(body);
  auto model = CheckModel(context, fields);
  if (auto* error = std::get_if<ApiError>(&model)) return *error;
  const bool with_strings = fields.Bool("return_token_strs", false);
  std::vector<int32_t> ids;
  if (fields.Has("messages")) {
    auto rendered = RenderChat(context, fields, /*must_fit=*/false);
    if (auto* error = std::get_if<ApiError>(&rendered)) return *error;
    ids = std::move(std::get<RenderedChat>(rendered).ids);
  } else {
    const auto prompt = fields.FindString("prompt");
    if (!prompt && !fields.error())
      fields.Fail("prompt", "1 validation error:\n  {'loc': ('body', 'prompt'), 'msg': 'Field required'}");
    if (prompt)
      ids =
          context.engine->tokenizer().Encode(*prompt, {.add_special_tokens = fields.Bool("add_special_tokens", true)});
  }
  if (fields.error()) return ValidationError(*fields.error());
  base::Json json = base::Json::object();
  json["count"] = ids.size();
  json["max_model_len"] = context.engine->info().max_model_len;
  json["tokens"] = ids;
  json["token_strs"] = nullptr;
  if (with_strings) {
    json["token_strs"] = base::Json::array();
    for (const int32_t id : ids) json["token_strs"].push_back(std::string(context.engine->tokenizer().TokenText(id)));
  }
  return json;
}

ApiResult<base::Json> Detokenize(const ApiContext& context, const base::Json& body) {
  base::JsonFields fields(body);
  auto model = CheckModel(context, fields);
  if (auto* error = std::get_if<ApiError>(&model)) return *error;
  const auto ids = fields.FindIds("tokens");
  if (!ids && !fields.error())
    fields.Fail("tokens", "1 validation error:\n  {'loc': ('body', 'tokens'), 'msg': 'Field required'}");
  if (fields.error()) return ValidationError(*fields.error());
  for (const int32_t id : *ids)
    if (id < 0 || id >= context.engine->info().vocab_size)
      return BadRequest(base::StrCat("Token id ", id, " is out of vocabulary"), "tokens");
  base::Json json = base::Json::object();
  json["prompt"] = context.engine->tokenizer().Decode(*ids, {.skip_special_tokens = false});
  return json;
}

void Answer(ApiResult<base::Json> (*run)(const ApiContext&, const base::Json&), const ApiContext& context,
            const HttpRequest& request, const std::shared_ptr<Responder>& responder) {
  auto body = ParseBody(request);
  if (auto* error = std::get_if<ApiError>(&body)) return responder->Send(ErrorResponse(*error));
  auto answer = run(context, std::get<base::Json>(body));
  if (auto* error = std::get_if<ApiError>(&answer)) return responder->Send(ErrorResponse(*error));
  responder->Send(JsonResponse(std::get<base::Json>(answer)));
}

}  // namespace

void HandleTokenize(const ApiContext& context, HttpRequest request, std::shared_ptr<Responder> responder) {
  Answer(Tokenize, context, request, responder);
}

void HandleDetokenize(const ApiContext& context, HttpRequest request, std::shared_ptr<Responder> responder) {
  Answer(Detokenize, context, request, responder);
}

}  // namespace vllm
