// Choosing a template, giving it its variables, and cutting the prompt where a final message is to be continued.
#include "text/template/chat_template.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "text/template/content_format.h"
#include "text/template/pystring.h"

namespace vllm {
namespace {

using base::ErrorCode;
using base::Json;
using base::MakeError;
using jinja::Dict;
using jinja::Value;

constexpr std::string_view kContinueTag = "CONTINUE_FINAL_MESSAGE_TAG ";

// Parameters of apply_chat_template itself: they never become variables.
bool IsParameter(std::string_view name) {
  constexpr std::string_view kNames[] = {"conversation",
                                         "messages",
                                         "tools",
                                         "documents",
                                         "add_generation_prompt",
                                         "continue_final_message",
                                         "padding",
                                         "truncation",
                                         "max_length",
                                         "return_tensors",
                                         "return_dict",
                                         "return_assistant_tokens_mask",
                                         "tokenizer_kwargs"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

base::Status CheckShape(const ChatRequest& request) {
  const auto objects = [](const Json& list) {
    return list.is_array() && std::all_of(list.begin(), list.end(), [](const Json& item) { return item.is_object(); });
  };
  if (!objects(request.messages))
    return MakeError(ErrorCode::kInvalidArgument, "messages: a list of objects is needed");
  if (request.messages.empty()) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "Cannot apply chat template to an empty conversation. Provide at least one message.");
  }
  if (request.tools != nullptr && !request.tools->is_null() && !objects(*request.tools)) {
    return MakeError(ErrorCode::kInvalidArgument, "tools: a list of objects is needed");
  }
  if (request.documents != nullptr && !request.documents->is_null() && !objects(*request.documents)) {
    return MakeError(ErrorCode::kInvalidArgument, "Documents should be a list of dicts with 'title' and 'text' keys!");
  }
  if (request.kwargs == nullptr || request.kwargs->is_null()) return base::Ok();
  if (!request.kwargs->is_object())
    return MakeError(ErrorCode::kInvalidArgument, "chat_template_kwargs: an object is needed");
  std::string unexpected;
  for (const std::string_view name : {"chat_template", "tokenize"}) {
    if (!request.kwargs->contains(name)) continue;
    if (!unexpected.empty()) unexpected += ", ";
    unexpected += base::StrCat("'", name, "'");
  }
  if (unexpected.empty()) return base::Ok();
  return MakeError(ErrorCode::kInvalidArgument, "Found unexpected chat template kwargs from request: {", unexpected,
                   "}");
}

// Marks the end of the last message's text; returns the text.
base::Result<std::string> MarkFinalMessage(Json& messages, const std::string& source) {
  Json& last = messages.back();
  if (!last.contains("content") || last["content"].is_null()) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "continue_final_message is set but the final message has no \"content\" to continue!");
  }
  if (source.find("content") == std::string::npos) {
    return MakeError(
        ErrorCode::kInvalidArgument,
        "continue_final_message is set to \"content\" but this is not an accepted field in the chat_template");
  }
  Json* text = nullptr;
  Json& content = last["content"];
  if (content.is_string()) text = &content;
  if (content.is_array()) {
    for (size_t i = content.size(); i-- > 0 && text == nullptr;) {
      if (content[i].is_object() && content[i].contains("text") && content[i]["text"].is_string())
        text = &content[i]["text"];
    }
  }
  if (text == nullptr) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "continue_final_message is set but we could not find any text to continue in the final message!");
  }
  const std::string before = text->get<std::string>();
  *text = before + std::string(kContinueTag);
  return before;
}

base::Result<std::string> CutAtMark(std::string prompt, const std::string& final_text) {
  const std::string_view stripped = jinja::StripSpace(final_text, jinja::Side::kBoth);
  const std::string_view mark = kContinueTag.substr(0, kContinueTag.size() - 1);
  const size_t at = prompt.rfind(mark);
  if (at == std::string::npos || prompt.find(stripped) == std::string::npos) {
    return MakeError(
        ErrorCode::kInvalidArgument,
        "continue_final_message is set but the final message does not appear in the chat after applying the chat "
        "template! This can happen if the chat template deletes portions of the final message. Please verify the chat "
        "template and final message in your chat to ensure they are compatible.");
  }
  const bool spacing_kept = std::string_view(prompt).substr(at).starts_with(kContinueTag);
  prompt.resize(at);
  if (!spacing_kept) prompt.resize(jinja::StripSpace(prompt, jinja::Side::kRight).size());
  return prompt;
}

}  // namespace

std::string_view ContentFormatName(ContentFormat format) {
  return format == ContentFormat::kString ? "string" : "openai";
}

SpecialTokens SpecialTokensOf(const Json& config) {
  SpecialTokens tokens;
  if (!config.is_object()) return tokens;
  for (const char* name :
       {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"}) {
    const auto it = config.find(name);
    if (it == config.end()) continue;
    if (it->is_string()) tokens.emplace_back(name, it->get<std::string>());
    if (it->is_object() && it->contains("content") && (*it)["content"].is_string()) {
      tokens.emplace_back(name, (*it)["content"].get<std::string>());
    }
  }
  return tokens;
}

base::Result<ChatTemplate> ChatTemplate::Create(std::string source, SpecialTokens tokens) {
  return Create({{.name = "default", .source = std::move(source)}}, std::move(tokens));
}

base::Result<ChatTemplate> ChatTemplate::Create(std::vector<NamedTemplate> templates, SpecialTokens tokens) {
  if (templates.empty()) return MakeError(ErrorCode::kNotFound, "the model has no chat template");
  std::vector<Entry> entries;
  for (NamedTemplate& text : templates) {
    auto compiled = JinjaTemplate::Parse(text.source);
    if (!compiled) {
      if (templates.size() == 1) return compiled.error();
      return MakeError(compiled.error().code, compiled.error().message, " (in the template '", text.name, "')");
    }
    const ContentFormat format = jinja::DetectContentFormat(compiled->tree());
    entries.push_back({.text = std::move(text), .compiled = *std::move(compiled), .format = format});
  }
  return ChatTemplate(std::move(entries), std::move(tokens));
}

base::Result<ChatTemplate> ChatTemplate::FromConfig(const Json& config, std::string_view jinja_file) {
  SpecialTokens tokens = SpecialTokensOf(config);
  if (!jinja_file.empty()) return Create(std::string(jinja_file), std::move(tokens));
  const auto it = config.is_object() ? config.find("chat_template") : config.end();
  if (it == config.end() || it->is_null())
    return MakeError(ErrorCode::kNotFound, "tokenizer_config.json has no chat_template");
  if (it->is_string()) return Create(it->get<std::string>(), std::move(tokens));
  std::vector<NamedTemplate> templates;
  const auto fits = [](const Json& item) {
    return item.is_object() && item.contains("name") && item["name"].is_string() && item.contains("template") &&
           item["template"].is_string();
  };
  if (it->is_array()) {
    for (const Json& item : *it) {
      if (!fits(item))
        return MakeError(ErrorCode::kBadFile,
                         "tokenizer_config.json: chat_template: a list of {name, template} is needed");
      templates.push_back({.name = item["name"].get<std::string>(), .source = item["template"].get<std::string>()});
    }
    return Create(std::move(templates), std::move(tokens));
  }
  return MakeError(ErrorCode::kBadFile, "tokenizer_config.json: chat_template is neither a text nor a list");
}

base::Result<const ChatTemplate::Entry*> ChatTemplate::Find(bool has_tools) const {
  const auto named = [&](std::string_view name) {
    const auto it =
        std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.text.name == name; });
    return it == entries_.end() ? nullptr : &*it;
  };
  const Entry* entry = has_tools ? named("tool_use") : nullptr;
  if (entry == nullptr) entry = named("default");
  if (entry != nullptr) return entry;
  std::vector<std::string> names;
  for (const Entry& other : entries_) names.push_back(other.text.name);
  std::sort(names.begin(), names.end());
  return MakeError(
      ErrorCode::kInvalidArgument,
      "This model has multiple chat templates with no default specified! Available: ", base::Join(names, ", "), ".");
}

const ChatTemplate::Entry& ChatTemplate::FindOrFirst(bool has_tools) const {
  const auto entry = Find(has_tools);
  return entry ? **entry : entries_.front();
}

base::Result<const JinjaTemplate*> ChatTemplate::Choose(bool has_tools) const {
  const auto entry = Find(has_tools);
  if (!entry) return entry.error();
  return &(*entry)->compiled;
}

ContentFormat ChatTemplate::content_format(bool has_tools) const { return FindOrFirst(has_tools).format; }
const std::string& ChatTemplate::source(bool has_tools) const { return FindOrFirst(has_tools).text.source; }
const std::set<std::string>& ChatTemplate::variables(bool has_tools) const {
  return FindOrFirst(has_tools).compiled.tree().undeclared;
}

bool ChatTemplate::knows_developer_role(bool has_tools) const {
  const std::string& text = source(has_tools);
  return text.find("\"developer\"") != std::string::npos || text.find("'developer'") != std::string::npos;
}

base::Result<std::string> ChatTemplate::Render(const ChatRequest& request) const {
  if (const auto shape = CheckShape(request); !shape) return shape.error();
  if (request.continue_final_message && request.add_generation_prompt) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "continue_final_message and add_generation_prompt are not compatible. Use continue_final_message "
                     "when you want the "
                     "model to continue the final message, and add_generation_prompt when you want to add a header "
                     "that will prompt it to "
                     "start a new assistant message instead.");
  }
  const bool has_tools = request.tools != nullptr && !request.tools->is_null();
  const auto entry = Find(has_tools);
  if (!entry) return entry.error();

  Dict variables;
  for (const auto& [name, text] : tokens_) variables.Set(name, Value::String(text));
  Value documents = request.documents == nullptr ? Value() : jinja::FromJson(*request.documents);
  if (request.kwargs != nullptr && request.kwargs->is_object()) {
    for (const auto& [name, value] : request.kwargs->items()) {
      if (name == "documents" && documents.is_none()) documents = jinja::FromJson(value);
      if (!IsParameter(name)) variables.Set(base::ReplaceInvalidUtf8(name), jinja::FromJson(value));
    }
  }
  std::string final_text;
  if (request.continue_final_message) {
    Json messages = request.messages;
    auto marked = MarkFinalMessage(messages, (*entry)->text.source);
    if (!marked) return marked.error();
    final_text = *std::move(marked);
    variables.Set("messages", jinja::FromJson(messages));
  } else {
    variables.Set("messages", jinja::FromJson(request.messages));
  }
  variables.Set("tools", has_tools ? jinja::FromJson(*request.tools) : Value());
  variables.Set("documents", std::move(documents));
  variables.Set("add_generation_prompt", Value::Bool(request.add_generation_prompt));
  auto prompt = (*entry)->compiled.Render(Value::FromDict(std::move(variables)), request.options);
  if (!prompt || !request.continue_final_message) return prompt;
  return CutAtMark(*std::move(prompt), final_text);
}

}  // namespace vllm
