// A model's chat template: messages, tools and documents in, the prompt's text out, as transformers'
// apply_chat_template does it.
#pragma once
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "text/template/jinja.h"

namespace vllm {

enum class ContentFormat { kString, kOpenai };             // a message's content is one text, or a list of parts
std::string_view ContentFormatName(ContentFormat format);  // "string", "openai"

// Variables such as bos_token and eos_token, with their text.
using SpecialTokens = std::vector<std::pair<std::string, std::string>>;
// The named special tokens of a tokenizer_config.json (or special_tokens_map.json); each is a string or an object with
// `content`.
SpecialTokens SpecialTokensOf(const base::Json& config);

struct NamedTemplate {
  std::string name;
  std::string source;
};

struct ChatRequest {
  const base::Json& messages;             // an array of objects
  const base::Json* tools = nullptr;      // an array; null: none
  const base::Json* documents = nullptr;  // an array of objects; null: none
  bool add_generation_prompt = true;
  bool continue_final_message = false;  // the prompt ends inside the last message
  const base::Json* kwargs = nullptr;   // an object: further variables; they replace special tokens
  RenderOptions options = {};
};

// Immutable and cheap to copy; usable by many threads at once.
class ChatTemplate {
 public:
  // One template. Errors: see JinjaTemplate::Parse.
  static base::Result<ChatTemplate> Create(std::string source, SpecialTokens tokens = {});
  // Templates by name: `tool_use` is chosen for requests with tools, `default` otherwise. At least one.
  static base::Result<ChatTemplate> Create(std::vector<NamedTemplate> templates, SpecialTokens tokens = {});
  // From tokenizer_config.json, whose chat_template is a text or a list of {name, template}; `jinja_file`, the text of
  // chat_template.jinja, comes before it when not empty. kNotFound when there is none.
  static base::Result<ChatTemplate> FromConfig(const base::Json& tokenizer_config, std::string_view jinja_file = {});

  // The prompt. Errors are kInvalidArgument, for the client: what the template raises (verbatim), what it cannot render
  // (with the line), a request that makes no sense.
  base::Result<std::string> Render(const ChatRequest& request) const;

  // The template that a request with or without tools uses; an error when neither of the two names exists.
  base::Result<const JinjaTemplate*> Choose(bool has_tools) const;
  // How that template takes contents.
  ContentFormat content_format(bool has_tools) const;
  // Variables that it reads and nobody but the caller sets.
  const std::set<std::string>& variables(bool has_tools) const;
  const std::string& source(bool has_tools) const;
  // Whether it speaks of the developer role at all.
  bool knows_developer_role(bool has_tools) const;
  const SpecialTokens& special_tokens() const { return tokens_; }

 private:
  struct Entry {
    NamedTemplate text;
    JinjaTemplate compiled;
    ContentFormat format;
  };
  ChatTemplate(std::vector<Entry> entries, SpecialTokens tokens)
      : entries_(std::move(entries)), tokens_(std::move(tokens)) {}
  base::Result<const Entry*> Find(bool has_tools) const;
  const Entry& FindOrFirst(bool has_tools) const;

  std::vector<Entry> entries_;
  SpecialTokens tokens_;
};

}  // namespace vllm
