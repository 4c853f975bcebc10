// Choosing and rendering chat templates from requests.
#include "text/template/chat_template.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/text/template/template_cases_util.h"

namespace vllm {
namespace {

using base::Json;

constexpr std::string_view kPlain =
    "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content }}{{ eos_token }}{% endfor %}{% if "
    "add_generation_prompt %}>{% endif %}";

ChatTemplate Make(std::string_view source) {
  return ChatTemplate::Create(std::string(source), {{"bos_token", "<s>"}, {"eos_token", "</s>"}}).ValueOrThrow();
}

std::string Text(const base::Result<std::string>& result) {
  return result ? *result : "error: " + result.error().message;
}

const Json kHi = Json::parse(R"([{"role": "user", "content": "hi"}])");
const Json kOpen = Json::parse(R"([{"role": "user", "content": "hi"}, {"role": "assistant", "content": "I am"}])");

TEST(ChatTemplate, GivesSpecialTokensAndTheGenerationPrompt) {
  EXPECT_EQ(Text(Make(kPlain).Render({.messages = kHi})), "<s>[user]hi</s>>");
  EXPECT_EQ(Text(Make(kPlain).Render({.messages = kHi, .add_generation_prompt = false})), "<s>[user]hi</s>");
}

TEST(ChatTemplate, ToolsAndDocumentsAreNoneWhenAbsent) {
  EXPECT_EQ(Text(Make("{{ tools is none }}{{ documents is none }}").Render({.messages = kHi})), "TrueTrue");
  const Json tools = Json::parse(R"([{"type": "function", "function": {"name": "f"}}])");
  const Json documents = Json::parse(R"([{"title": "T", "text": "x"}])");
  EXPECT_EQ(Text(Make("{{ tools[0].function.name }}{{ documents[0].title }}")
                     .Render({.messages = kHi, .tools = &tools, .documents = &documents})),
            "fT");
}

TEST(ChatTemplate, KwargsBecomeVariablesAndReplaceSpecialTokens) {
  const Json kwargs = Json::parse(
      R"({"enable_thinking": false, "bos_token": "B", "messages": [], "add_generation_prompt": false, "documents": [{"a": 1}]})");
  EXPECT_EQ(Text(Make("{{ bos_token }}{{ enable_thinking }}{{ messages|length }}{{ add_generation_prompt }}{{ "
                      "documents[0].a }}")
                     .Render({.messages = kHi, .kwargs = &kwargs})),
            "BFalse1True1");
}

TEST(ChatTemplate, KwargsThatNameTheTemplateAreRefused) {
  const Json kwargs = Json::parse(R"({"tokenize": true})");
  EXPECT_EQ(Text(Make(kPlain).Render({.messages = kHi, .kwargs = &kwargs})),
            "error: Found unexpected chat template kwargs from request: {'tokenize'}");
}

TEST(ChatTemplate, ContinuesTheFinalMessage) {
  EXPECT_EQ(
      Text(Make(kPlain).Render({.messages = kOpen, .add_generation_prompt = false, .continue_final_message = true})),
      "<s>[user]hi</s>[assistant]I am");
  Json trailing = kOpen;
  trailing[1]["content"] = "I am  ";
  EXPECT_EQ(
      Text(Make(kPlain).Render({.messages = trailing, .add_generation_prompt = false, .continue_final_message = true})),
      "<s>[user]hi</s>[assistant]I am  ");
  EXPECT_EQ(Text(Make("{% for m in messages %}[{{ m.content|trim }}]{% endfor %}")
                     .Render({.messages = trailing, .add_generation_prompt = false, .continue_final_message = true})),
            "[hi][I am");
}

TEST(ChatTemplate, ContinuesTheLastTextPart) {
  const Json parts = Json::parse(
      R"([{"role": "assistant", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}, {"type": "image"}]}])");
  EXPECT_EQ(Text(Make("{% for m in messages %}{% for c in m.content %}{{ c.text }},{% endfor %}{% endfor %}")
                     .Render({.messages = parts, .add_generation_prompt = false, .continue_final_message = true})),
            "a,b");
}

TEST(ChatTemplate, ContinuingWhatTheTemplateDropsIsAnError) {
  const auto text = Make("{{ messages[0].content }}")
                        .Render({.messages = kOpen, .add_generation_prompt = false, .continue_final_message = true});
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, base::ErrorCode::kInvalidArgument);
  EXPECT_NE(text.error().message.find("does not appear in the chat"), std::string::npos);
}

TEST(ChatTemplate, ContinuingExcludesTheGenerationPrompt) {
  EXPECT_NE(Text(Make(kPlain).Render({.messages = kOpen, .continue_final_message = true})).find("not compatible"),
            std::string::npos);
}

TEST(ChatTemplate, EmptyAndMisshapenRequestsAreErrors) {
  const Json empty = Json::array(), numbers = Json::parse("[1]"), object = Json::object();
  EXPECT_EQ(Text(Make(kPlain).Render({.messages = empty})),
            "error: Cannot apply chat template to an empty conversation. Provide at least one message.");
  EXPECT_FALSE(Make(kPlain).Render({.messages = numbers}));
  EXPECT_FALSE(Make(kPlain).Render({.messages = object}));
  EXPECT_FALSE(Make(kPlain).Render({.messages = kHi, .tools = &object}));
  EXPECT_FALSE(Make(kPlain).Render({.messages = kHi, .documents = &numbers}));
  EXPECT_FALSE(Make(kPlain).Render({.messages = kHi, .kwargs = &numbers}));
}

TEST(ChatTemplate, ChoosesTheToolTemplateForRequestsWithTools) {
  const Json config =
      Json::parse(R"({"bos_token": {"content": "<b>"}, "eos_token": "<e>", "pad_token": null, "chat_template": [
      {"name": "default", "template": "D{{ bos_token }}"}, {"name": "tool_use", "template": "T{{ eos_token }}"}]})");
  const auto chat = ChatTemplate::FromConfig(config);
  ASSERT_TRUE(chat) << chat.error().message;
  const Json tools = Json::parse(R"([{}])");
  EXPECT_EQ(Text(chat->Render({.messages = kHi})), "D<b>");
  EXPECT_EQ(Text(chat->Render({.messages = kHi, .tools = &tools})), "T<e>");
}

TEST(ChatTemplate, TheTemplateFileComesFirst) {
  const auto chat = ChatTemplate::FromConfig(Json::parse(R"({"chat_template": "config"})"), "file");
  ASSERT_TRUE(chat);
  EXPECT_EQ(Text(chat->Render({.messages = kHi})), "file");
}

TEST(ChatTemplate, NamesWithoutADefaultAreAnErrorOfTheRequest) {
  const auto chat = ChatTemplate::Create(
      std::vector<NamedTemplate>{{.name = "rag", .source = "x"}, {.name = "tool_use", .source = "t"}});
  ASSERT_TRUE(chat);
  EXPECT_EQ(Text(chat->Render({.messages = kHi})),
            "error: This model has multiple chat templates with no default specified! Available: rag, tool_use.");
}

TEST(ChatTemplate, BrokenConfigurationsAreErrors) {
  EXPECT_EQ(ChatTemplate::FromConfig(Json::object()).error().code, base::ErrorCode::kNotFound);
  EXPECT_EQ(ChatTemplate::FromConfig(Json::parse(R"({"chat_template": 5})")).error().code, base::ErrorCode::kBadFile);
  EXPECT_EQ(ChatTemplate::FromConfig(Json::parse(R"({"chat_template": [{"name": "x"}]})")).error().code,
            base::ErrorCode::kBadFile);
  EXPECT_EQ(ChatTemplate::FromConfig(Json::parse(R"({"chat_template": "{% if %}"})")).error().code,
            base::ErrorCode::kInvalidArgument);
}

TEST(ChatTemplate, TellsWhichVariablesItReads) {
  const auto chat = Make(
      "{% for m in messages %}{{ m.x }}{{ own }}{% set own = 1 %}{% endfor %}{% macro f(a) %}{{ a }}{{ b }}{% endmacro "
      "%}{{ range(1) }}");
  EXPECT_EQ(chat.variables(false), (std::set<std::string>{"b", "messages", "own"}));
}

TEST(ChatTemplate, KnowsWhetherItSpeaksOfDevelopers) {
  EXPECT_TRUE(Make("{% if messages[0].role == 'developer' %}{% endif %}").knows_developer_role(false));
  EXPECT_FALSE(Make("{{ developer }}").knows_developer_role(false));
}

}  // namespace
}  // namespace vllm
