// A chat request's messages as a template may see them, and the prompt that comes of them.
#include "server/openai/chat_messages.h"

#include <nlohmann/json.hpp>

#include "base/limits.h"
#include "server/openai/common_request.h"
#include "text/template/chat_template.h"
#include "text/tokenizer/tokenizer.h"

namespace vllm {
namespace {

using base::Json;

ApiError Mistake(std::string message, std::string param = "messages") {
  return {.type = "Bad Request", .message = "1 validation error:\n  " + std::move(message), .param = "body." + param};
}

// One part of a list content as text; an error for media, which this model cannot see.
ApiResult<std::string> PartText(const Json& part) {
  if (part.is_string()) return part.get<std::string>();
  if (!part.is_object()) return Mistake("a content part must be an object or a string");
  const auto field = [&](const char* name) -> const Json* {
    const auto found = part.find(name);
    return found == part.end() || found->is_null() ? nullptr : &*found;
  };
  const Json* type = field("type");
  const std::string kind = type && type->is_string() ? type->get<std::string>() : field("text") ? "text" : "";
  for (const char* name : {"text", "refusal", "thinking"})
    if (kind == name || (kind == "input_text" && std::string_view(name) == "text") ||
        (kind == "output_text" && std::string_view(name) == "text")) {
      const Json* text = field(name);
      if (!text || !text->is_string())
        return Mistake(base::StrCat("a content part of type '", kind, "' needs a string `", name, "`"));
      return text->get<std::string>();
    }
  for (const char* media : {"image", "audio", "video"})
    if (kind.find(media) != std::string::npos)
      return BadRequest(base::StrCat("At most 0 ", media, "(s) may be provided in one prompt."), media);
  return BadRequest("Unknown part type: " + kind, "messages");
}

// null becomes "", a list of parts one text joined by newlines, or stays a list where the template walks over parts.
ApiResult<Json> Content(const Json* content, bool as_parts) {
  if (!content || content->is_null()) return as_parts ? Json::array() : Json("");
  std::vector<std::string> texts;
  if (content->is_string())
    texts.push_back(content->get<std::string>());
  else if (content->is_array()) {
    for (const Json& part : *content) {
      auto text = PartText(part);
      if (auto* error = std::get_if<ApiError>(&text)) return *error;
      texts.push_back(std::get<std::string>(std::move(text)));
    }
  } else {
    return Mistake("message content must be a string or a list of parts");
  }
  if (!as_parts) return Json(base::Join(texts, "\n"));
  Json parts = Json::array();
  for (std::string& text : texts) {
    Json part = Json::object();
    part["type"] = "text";
    part["text"] = std::move(text);
    parts.push_back(std::move(part));
  }
  return parts;
}

// Arguments come as JSON text; templates expect the object.
ApiResult<Json> ToolCalls(const Json& calls) {
  if (!calls.is_array()) return Mistake("`tool_calls` must be a list", "messages.tool_calls");
  Json out = Json::array();
  for (const Json& call : calls) {
    if (!call.is_object()) return Mistake("a tool call must be an object", "messages.tool_calls");
    Json copy = call;
    const auto function = copy.find("function");
    if (function == copy.end() || !function->is_object() || !function->contains("name"))
      return Mistake("a tool call needs a `function` with a `name`", "messages.tool_calls");
    const auto arguments = function->find("arguments");
    if (arguments == function->end() || arguments->is_null()) {
      (*function)["arguments"] = Json::object();
    } else if (arguments->is_string()) {
      const std::string text = arguments->get<std::string>();
      if (text.empty()) {
        *arguments = Json::object();
      } else {
        auto parsed = base::ParseJson(text, base::kMaxJsonDepth);
        if (!parsed.ok()) return BadRequest("`arguments` of a tool call: " + parsed.error().message, "messages");
        *arguments = std::move(*parsed);
      }
    }
    out.push_back(std::move(copy));
  }
  return out;
}

ApiResult<Json> Message(const Json& message, bool as_parts) {
  if (!message.is_object()) return Mistake("a message must be an object");
  const auto role = message.find("role");
  if (role == message.end() || !role->is_string()) return Mistake("a message needs a string `role`", "messages.role");
  const auto found = message.find("content");
  auto content = Content(found == message.end() ? nullptr : &*found, as_parts);
  if (auto* error = std::get_if<ApiError>(&content)) return *error;
  Json out = Json::object();
  out["role"] = *role;
  out["content"] = std::get<Json>(std::move(content));
  if (const auto calls = message.find("tool_calls"); calls != message.end() && !calls->is_null() && !calls->empty()) {
    auto converted = ToolCalls(*calls);
    if (auto* error = std::get_if<ApiError>(&converted)) return *error;
    out["tool_calls"] = std::get<Json>(std::move(converted));
  }
  for (const char* name : {"name", "tool_call_id"})
    if (const auto text = message.find(name); text != message.end() && text->is_string()) out[name] = *text;
  for (const char* name : {"reasoning", "reasoning_content"})
    if (const auto text = message.find(name); text != message.end() && text->is_string()) {
      out["reasoning"] = *text;
      out["reasoning_content"] = *text;  // templates know it by either name
    }
  return out;
}

std::optional<ApiError> CheckTools(base::JsonFields& fields, Json& tools) {
  const Json* given = fields.Find("tools");
  const Json* choice = fields.Find("tool_choice");
  const bool none = choice && choice->is_string() && choice->get<std::string>() == "none";
  if (!given) {
    if (choice && !none) return BadRequest("When using `tool_choice`, `tools` must be set.", "tool_choice");
    return std::nullopt;
  }
  if (!given->is_array()) return Mistake("`tools` must be a list", "tools");
  if (given->empty())
    return BadRequest(
        "`tools` must not be an empty array. Either provide at least one tool or omit the field entirely.", "tools");
  for (const Json& tool : *given)
    if (!tool.is_object() || !tool.contains("function") || !tool["function"].is_object() ||
        !tool["function"].contains("name"))
      return Mistake("a tool needs a `function` with a `name`", "tools");
  if (!none) {
    if (!choice || (choice->is_string() && choice->get<std::string>() == "auto"))
      return BadRequest("\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set");
    if (choice->is_string() && choice->get<std::string>() == "required")
      return BadRequest("tool_choice=\"required\" requires --tool-call-parser to be set");
    if (choice->is_object() && choice->contains("function") && (*choice)["function"].is_object() &&
        (*choice)["function"].contains("name"))
      return BadRequest(base::StrCat("tool_choice=function \"", base::DumpJson((*choice)["function"]["name"]),
                                     "\" requires --tool-call-parser to be set"));
    return BadRequest(
        "Invalid value for `tool_choice`: it must be \"none\", \"auto\", \"required\" or a named function.",
        "tool_choice");
  }
  tools = *given;
  return std::nullopt;
}

// What the template gets beside messages and tools.
ApiResult<Json> TemplateKwargs(const ApiContext& context, base::JsonFields& fields) {
  Json kwargs = Json::object();
  if (const Json* given = fields.Find("chat_template_kwargs")) {
    if (!given->is_object()) return Mistake("`chat_template_kwargs` must be an object", "chat_template_kwargs");
    kwargs = *given;
  }
  if (!context.options.default_chat_template_kwargs.empty())
    if (const auto defaults = base::ParseJson(context.options.default_chat_template_kwargs, base::kMaxJsonDepth);
        defaults.ok() && defaults->is_object())
      for (const auto& [key, value] : defaults->items())
        if (!kwargs.contains(key)) kwargs[key] = value;
  if (const auto effort = fields.FindString("reasoning_effort")) {
    constexpr std::string_view kEfforts[] = {"none", "minimal", "low", "medium", "high", "xhigh", "max"};
    if (std::find(std::begin(kEfforts), std::end(kEfforts), *effort) == std::end(kEfforts))
      return Mistake("`reasoning_effort` must be one of none, minimal, low, medium, high, xhigh, max",
                     "reasoning_effort");
    kwargs["reasoning_effort"] = *effort;
    if (!kwargs.contains("enable_thinking")) kwargs["enable_thinking"] = *effort != "none";
  }
  return kwargs;
}

}  // namespace

ApiResult<RenderedChat> RenderChat(const ApiContext& context, base::JsonFields& fields, bool must_fit) {
  const Json* messages = fields.Find("messages");
  if (!messages || !messages->is_array()) return Mistake("`messages` must be a list");
  if (messages->empty()) return Mistake("List should have at least 1 item after validation, not 0");
  if (messages->size() > base::kMaxChatMessages)
    return Mistake(base::StrCat("more than ", base::kMaxChatMessages, " messages"));
  const ChatTemplate* chat_template = context.engine->chat_template();
  std::optional<ChatTemplate> own;
  if (const auto source = fields.FindString("chat_template")) {
    if (!context.options.trust_request_chat_template)
      return BadRequest(
          "Chat template is passed with request, but --trust-request-chat-template is not set. Refused request with "
          "untrusted chat template.",
          "chat_template");
    const auto& tokens = context.engine->tokenizer().special_tokens();
    auto parsed = ChatTemplate::Create(*source, SpecialTokens(tokens.begin(), tokens.end()));
    if (!parsed.ok()) return BadRequest(parsed.error().message, "chat_template");
    own = std::move(*parsed);
    chat_template = &*own;
  }
  if (!chat_template)
    return BadRequest(
        "As of transformers v4.44, default chat template is no longer allowed, so you must provide a chat template if "
        "the tokenizer does not define one. Start the server with --chat-template FILE.");
  Json tools;
  if (auto error = CheckTools(fields, tools)) return *error;
  const std::string& format = context.options.chat_template_content_format;
  const bool as_parts = format == ContentFormatName(ContentFormat::kOpenai) ||
                        (format == "auto" && chat_template->content_format(!tools.is_null()) == ContentFormat::kOpenai);
  Json converted_messages = Json::array();
  for (const Json& message : *messages) {
    auto converted = Message(message, as_parts);
    if (auto* error = std::get_if<ApiError>(&converted)) return *error;
    converted_messages.push_back(std::get<Json>(std::move(converted)));
  }
  auto kwargs = TemplateKwargs(context, fields);
  if (auto* error = std::get_if<ApiError>(&kwargs)) return *error;
  const ChatRequest request{
      .messages = converted_messages,
      .tools = tools.is_null() || context.options.exclude_tools_when_tool_choice_none ? nullptr : &tools,
      .documents = fields.Find("documents"),
      .add_generation_prompt = fields.Bool("add_generation_prompt", true),
      .continue_final_message = fields.Bool("continue_final_message", false),
      .kwargs = &std::get<Json>(kwargs)};
  if (request.add_generation_prompt && request.continue_final_message)
    return BadRequest("Cannot set both `continue_final_message` and `add_generation_prompt` to True.");
  const bool add_special_tokens = fields.Bool("add_special_tokens", false);
  if (fields.error()) return ValidationError(*fields.error());

  auto text = chat_template->Render(request);
  if (!text.ok()) return BadRequest(text.error().message);
  if (must_fit)
    if (auto error = CheckTextLength(context, *text)) return *error;
  RenderedChat rendered{.text = std::move(*text)};
  rendered.ids = context.engine->tokenizer().Encode(rendered.text, {.add_special_tokens = add_special_tokens});
  const Json& last = converted_messages.back();
  if (last["role"] == context.options.response_role && last["content"].is_string())
    rendered.last_assistant_text = last["content"];
  return rendered;
}

}  // namespace vllm
