// What /v1/completions and /v1/chat/completions have in common.
#include "server/openai/common_request.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <random>

#include "base/limits.h"
#include "engine/sampling_json.h"
#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/unicode.h"

namespace vllm {
namespace {

constexpr RefusedField kRefusedEverywhere[] = {
    {"use_beam_search", "false"},
    {"length_penalty", "1.0"},
    {"watermarking", "null"},
    {"truncate_prompt_tokens", "null"},
    {"truncation_side", "null"},
    {"response_format", R"({"type":"text"})"},
    {"structured_outputs", "null"},
    {"session_id", "null"},
    {"return_weight_versions", "false"},
    {"routed_experts_prompt_start", "0"},
    {"return_token_offsets", "false"},
    {"kv_transfer_params", "null"},
    {"ec_transfer_params", "null"},
    {"vllm_xargs", "null"},
    {"repetition_detection", "null"},
    {"thinking_token_budget", "-1"},
    {"stream_interval", "1"},
    {"prompt_logprob_token_ids", "null"},
};

std::optional<ApiError> Refuse(base::JsonFields& fields, std::span<const RefusedField> refused) {
  for (const RefusedField& field : refused) {
    const base::Json* value = fields.Find(field.name);
    if (value && *value != base::Json::parse(field.default_json))
      return BadRequest(base::StrCat("`", field.name, "` is not supported by this server."), std::string(field.name));
  }
  return std::nullopt;
}

std::optional<ApiError> ReadStream(const ApiContext& context, base::JsonFields& fields, CommonRequest& common) {
  common.stream = fields.Bool("stream", false);
  const base::Json* options = fields.Find("stream_options");
  if (options && !common.stream)
    return BadRequest("Stream options can only be defined when `stream=True`.", "stream_options");
  if (options && !options->is_object()) {
    fields.Fail(
        "stream_options",
        "1 validation error:\n  {'loc': ('body', 'stream_options'), 'msg': 'Input should be a valid dictionary'}");
    return std::nullopt;
  }
  if (options) {
    base::JsonFields inner(*options);
    common.include_usage = inner.Bool("include_usage", true);
    common.continuous_usage = inner.Bool("continuous_usage_stats", false);
    if (inner.error()) fields.Fail("stream_options." + inner.error()->field, inner.error()->message);
  }
  if (context.options.enable_force_include_usage) common.include_usage = common.continuous_usage = true;
  common.continuous_usage = common.continuous_usage && common.include_usage;
  return std::nullopt;
}

// vLLM's rule for salts: they end up in keys of shared caches.
bool IsGoodSalt(const std::string& salt) {
  return !salt.empty() && salt.size() <= 128 && salt.find_first_of(std::string("@/\\\0", 4)) == std::string::npos;
}

}  // namespace

std::string RandomId() {
  thread_local std::mt19937_64 random{std::random_device{}() * 0x9E3779B97F4A7C15u ^ std::random_device{}()};
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(random()),
                static_cast<unsigned long long>(random()));
  return text;
}

ApiResult<base::Json> ParseBody(const HttpRequest& request) {
  const std::string type = base::ToLower(request.Header("content-type"));
  const std::string_view media = std::string_view(type).substr(0, type.find(';'));
  if (media != "application/json")
    return ApiError{.type = "Bad Request", .message = "Unsupported Media Type: Only 'application/json' is allowed"};
  auto parsed = base::ParseJson(request.body, base::kMaxJsonDepth);
  if (!parsed.ok())
    return ApiError{
        .type = "Bad Request", .message = "1 validation error:\n  " + parsed.error().message, .param = "body"};
  if (!parsed->is_object())
    return ApiError{
        .type = "Bad Request", .message = "1 validation error:\n  Input should be a valid dictionary", .param = "body"};
  return std::move(*parsed);
}

ApiResult<std::string> CheckModel(const ApiContext& context, base::JsonFields& fields) {
  const std::vector<std::string>& names = context.engine->info().served_names;
  const std::string model = fields.FindString("model").value_or("");
  if (model.empty()) return names[0];
  if (std::find(names.begin(), names.end(), model) != names.end()) return model;
  return NotFoundError(
      base::StrCat("The model `", model, "` does not exist. Valid aliases: ", base::Join(names, ", "), "."), "model");
}

ApiResult<CommonRequest> ReadCommon(const ApiContext& context, const HttpRequest& http, base::JsonFields& fields,
                                    std::string_view id_prefix, std::span<const RefusedField> refused) {
  CommonRequest common;
  auto model = CheckModel(context, fields);
  if (auto* error = std::get_if<ApiError>(&model)) return *error;
  common.model = std::get<std::string>(model);
  for (const auto& list : {std::span<const RefusedField>(kRefusedEverywhere), refused})
    if (auto error = Refuse(fields, list)) return *error;
  if (auto error = ReadStream(context, fields, common)) return *error;
  std::string id = fields.FindString("request_id").value_or("");
  if (const std::string_view header = http.Header("x-request-id"); !header.empty()) id = header;
  if (id.size() > base::kMaxRequestIdBytes) return BadRequest("`request_id` is too long.", "request_id");
  common.id = std::string(id_prefix) + (id.empty() ? RandomId() : base::ReplaceInvalidUtf8(id));
  common.created =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  common.echo = fields.Bool("echo", false);
  common.return_token_ids = fields.Bool("return_token_ids", false);
  common.return_tokens_as_token_ids =
      fields.Bool("return_tokens_as_token_ids", context.options.return_tokens_as_token_ids);
  common.priority = static_cast<int>(std::clamp<int64_t>(fields.Int("priority", 0), -1000000, 1000000));
  common.timeout_s = fields.FindDouble("timeout");
  if (const auto salt = fields.FindString("cache_salt")) {
    if (!IsGoodSalt(*salt))
      return BadRequest(
          "Parameter 'cache_salt' must be a non-empty string of at most 128 characters without '@', '/' and '\\' if "
          "provided.",
          "cache_salt");
    common.cache_salt = *salt;
  }
  common.params = ReadSamplingParams(fields, context.engine->defaults());
  if (const auto scored = fields.FindInt("prompt_logprobs")) {
    if (common.stream && (*scored > 0 || *scored == -1))
      return BadRequest("`prompt_logprobs` are not available when `stream=True`.", "prompt_logprobs");
    if (*scored < 0 && *scored != -1)
      return BadRequest("`prompt_logprobs` must be a positive value or -1.", "prompt_logprobs");
    common.params.prompt_logprobs = static_cast<int>(std::min<int64_t>(*scored, 1 << 30));
  }
  if (fields.error()) return ValidationError(*fields.error());
  return common;
}

std::optional<ApiError> CheckTextLength(const ApiContext& context, std::string_view text) {
  const auto limit = static_cast<size_t>(context.engine->info().max_model_len);
  const size_t most = limit * context.engine->tokenizer().max_token_chars();
  if (text.size() <= most) return std::nullopt;  // a character has a byte at least
  const size_t characters = tokenizer::CountChars(text);
  if (characters <= most) return std::nullopt;
  return BadRequest(
      base::StrCat("This model's maximum context length is ", limit, " tokens. However, your prompt contains ",
                   characters, " characters (more than ", most, " characters, which is the upper bound for ", limit,
                   " input tokens). Please reduce the length of the input prompt. (parameter=input_text, "
                   "value=",
                   characters, ")"),
      "input_text");
}

std::optional<ApiError> CheckPromptLength(const ApiContext& context, int64_t prompt_tokens) {
  const int64_t limit = context.engine->info().max_model_len;
  if (prompt_tokens <= limit) return std::nullopt;
  return BadRequest(
      base::StrCat("This model's maximum context length is ", limit, " tokens. However, your prompt contains ",
                   prompt_tokens,
                   " input tokens, which exceeds this limit even without any output tokens. Please reduce the "
                   "length of the input prompt. (parameter=input_tokens, value=",
                   prompt_tokens, ")"),
      "input_tokens");
}

std::optional<ApiError> ResolveMaxTokens(const ApiContext& context, std::string_view field,
                                         std::optional<int64_t> requested, int64_t prompt_tokens,
                                         SamplingParams& params) {
  const int64_t limit = context.engine->info().max_model_len;
  if (requested && *requested > limit)
    return BadRequest(base::StrCat(field, "=", *requested, " cannot be greater than max_model_len=", limit,
                                   ". Please request fewer output tokens."),
                      std::string(field));
  if (requested && *requested < 0)
    return BadRequest(base::StrCat(field, " must be at least 1, got ", *requested, "."), std::string(field));
  int64_t tokens = std::max<int64_t>(limit - prompt_tokens, 0);
  if (requested) tokens = std::min(tokens, *requested);
  if (const auto& most = context.engine->defaults().max_new_tokens) tokens = std::min(tokens, *most);
  // A prompt that fills the context leaves nothing: the engine refuses it in its own words.
  params.max_tokens = tokens > 0 || (requested && *requested == 0) ? tokens : 1;
  return std::nullopt;
}

}  // namespace vllm
