// Messages, parts, tools and template settings of a chat request, and the prompt that comes of them.
#include "server/openai/chat_messages.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/limits.h"
#include "tests/server/fake_engine.h"

namespace vllm {
namespace {

using testing::ByteTokenizerJson;
using testing::FakeEngine;

constexpr const char* kTemplate =
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% if m.tool_calls %}{% for c in m.tool_calls %}"
    "{{ c.function.name }}({% for k, v in c.function.arguments.items() %}{{ k }}={{ v }};{% endfor %})"
    "{% endfor %}{% endif %}{% endfor %}"
    "{% if tools %}T{{ tools|length }}{% endif %}{% if flag %}F{{ flag }}{% endif %}"
    "{% if add_generation_prompt %}<a>{% endif %}";

class ChatMessages : public ::testing::Test {
 protected:
  ChatMessages() { context_.engine = &engine_; }
  // The prompt, or "STATUS message".
  std::string Render(const std::string& json) {
    const base::Json body = base::Json::parse(json);
    base::JsonFields fields(body);
    auto rendered = RenderChat(context_, fields);
    if (auto* error = std::get_if<ApiError>(&rendered)) return std::to_string(error->status) + " " + error->message;
    return std::get<RenderedChat>(rendered).text;
  }
  std::string RenderContent(const std::string& content) {
    return Render(R"({"messages":[{"role":"user","content":)" + content + "}]}");
  }

  FakeEngine engine_{ByteTokenizerJson(), kTemplate};
  ApiContext context_;
};

TEST_F(ChatMessages, TextGoesIntoTheTemplate) {
  EXPECT_EQ(Render(R"({"messages":[{"role":"system","content":"s"},{"role":"user","content":"u"}]})"),
            "<system>s<user>u<a>");
}

TEST_F(ChatMessages, NullEmptyAndMissingContentsAreEmpty) {
  EXPECT_EQ(RenderContent("null"), "<user><a>");
  EXPECT_EQ(RenderContent("\"\""), "<user><a>");
  EXPECT_EQ(RenderContent("[]"), "<user><a>");
  EXPECT_EQ(Render(R"({"messages":[{"role":"assistant"}],"add_generation_prompt":false})"), "<assistant>");
}

TEST_F(ChatMessages, PartsAreJoinedByNewlines) {
  EXPECT_EQ(RenderContent(R"([{"type":"text","text":"a"},{"type":"text","text":"b"}])"), "<user>a\nb<a>");
  EXPECT_EQ(RenderContent(R"(["a",{"text":"b"},{"type":"input_text","text":"c"}])"), "<user>a\nb\nc<a>");
}

TEST_F(ChatMessages, MediaPartsAreRefused) {
  for (const char* part :
       {R"([{"type":"image_url","image_url":{"url":"http://127.0.0.1:1/x"}}])",
        R"([{"type":"input_audio","input_audio":{}}])", R"([{"type":"video_url","video_url":{"url":"x"}}])",
        R"([{"type":"other"}])", R"([{"type":"text"}])", R"([{"type":"text","text":5}])", R"([5])", "5", "{}"})
    EXPECT_TRUE(RenderContent(part).starts_with("400 ")) << part << RenderContent(part);
}

TEST_F(ChatMessages, AToolRoundTripIsTaken) {
  for (const char* content : {"\"content\":null,", "\"content\":\"\",", "\"content\":[],", ""})
    EXPECT_EQ(Render(std::string(R"({"messages":[{"role":"assistant",)") + content +
                     R"("tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]},)"
                     R"({"role":"tool","tool_call_id":"1","content":"r"}]})"),
              "<assistant>f(x=1;)<tool>r<a>");
}

TEST_F(ChatMessages, EmptyAndNullToolCallsAreNone) {
  for (const char* calls : {"[]", "null"})
    EXPECT_EQ(Render(std::string(R"({"messages":[{"role":"assistant","content":"c","tool_calls":)") + calls + "}]}"),
              "<assistant>c<a>");
}

TEST_F(ChatMessages, ArgumentsThatAreNoJsonAreRefused) {
  for (const std::string& arguments : {std::string("{"), std::string(100000, '['), std::string("x")})
    EXPECT_TRUE(Render(R"({"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":")" +
                       arguments + R"("}}]}]})")
                    .starts_with("400 "));
}

TEST_F(ChatMessages, TheDeveloperRoleAndNamesAreTaken) {
  EXPECT_EQ(Render(R"({"messages":[{"role":"developer","content":"d","name":"n"}]})"), "<developer>d<a>");
}

TEST_F(ChatMessages, MessagesMustBeAListOfObjectsWithRoles) {
  for (const char* body : {"{}", R"({"messages":null})", R"({"messages":[]})", R"({"messages":{}})",
                           R"({"messages":"x"})", R"({"messages":[5]})", R"({"messages":[{}]})",
                           R"({"messages":[{"role":5}]})", R"({"messages":[{"role":null,"content":"x"}]})"})
    EXPECT_TRUE(Render(body).starts_with("400 ")) << body;
}

TEST_F(ChatMessages, TooManyMessagesAreRefused) {
  std::string body = R"({"messages":[{"role":"user"})";
  for (size_t i = 0; i < base::kMaxChatMessages; ++i) body += R"(,{"role":"user"})";
  EXPECT_TRUE(Render(body + "]}").starts_with("400 "));
}

constexpr const char* kTools = R"("tools":[{"type":"function","function":{"name":"f","parameters":{"b":1,"a":2}}}])";
const std::string kUser = R"({"messages":[{"role":"user","content":"u"}],)";

TEST_F(ChatMessages, ToolsAreRenderedWithToolChoiceNone) {
  EXPECT_EQ(Render(kUser + kTools + R"(,"tool_choice":"none"})"), "<user>uT1<a>");
  context_.options.exclude_tools_when_tool_choice_none = true;
  EXPECT_EQ(Render(kUser + kTools + R"(,"tool_choice":"none"})"), "<user>u<a>");
}

TEST(ChatMessagesWithTools, KeepTheKeysOfParametersInTheOrderSent) {
  FakeEngine engine{ByteTokenizerJson(), "{% for t in tools %}{{ t|tojson }}{% endfor %}{{ messages[0].content }}"};
  ApiContext context;
  context.engine = &engine;
  const std::string tool =
      R"({"type": "function", "function": {"name": "f", "description": "<b>é'", "parameters": {"type": "object", )"
      R"("properties": {"zone": {"type": "string"}, "area": {"type": "number"}}, "required": ["zone"]}}})";
  const base::Json body =
      base::Json::parse(R"({"messages":[{"role":"user","content":"u"}],"tool_choice":"none","tools":[)" + tool + "]}");
  base::JsonFields fields(body);
  auto rendered = RenderChat(context, fields);
  ASSERT_TRUE(std::holds_alternative<RenderedChat>(rendered)) << std::get<ApiError>(rendered).message;
  EXPECT_EQ(std::get<RenderedChat>(rendered).text, tool + "u");
}

TEST_F(ChatMessages, OtherToolChoicesNeedAParserAndAreRefusedInVllmsWords) {
  EXPECT_EQ(Render(kUser + kTools + "}"),
            "400 \"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set");
  for (const char* choice : {"\"auto\"", "\"required\"", R"({"type":"function","function":{"name":"f"}})", "5", "{}"})
    EXPECT_TRUE(Render(kUser + kTools + R"(,"tool_choice":)" + choice + "}").starts_with("400 ")) << choice;
}

TEST_F(ChatMessages, ToolsOfAWrongShapeAreRefused) {
  for (const char* tools : {"[]", "{}", "[5]", "[{}]", R"([{"function":5}])", R"([{"function":{}}])"})
    EXPECT_TRUE(Render(kUser + R"("tool_choice":"none","tools":)" + tools + "}").starts_with("400 ")) << tools;
  EXPECT_TRUE(Render(kUser + R"("tool_choice":"auto"})").starts_with("400 "));
}

TEST_F(ChatMessages, TemplateSettingsOfTheRequestComeBeforeTheServers) {
  context_.options.default_chat_template_kwargs = R"({"flag":"server"})";
  EXPECT_EQ(Render(kUser + R"("chat_template_kwargs":{}})"), "<user>uFserver<a>");
  EXPECT_EQ(Render(kUser + R"("chat_template_kwargs":{"flag":"mine"}})"), "<user>uFmine<a>");
  EXPECT_TRUE(Render(kUser + R"("chat_template_kwargs":[]})").starts_with("400 "));
}

TEST_F(ChatMessages, ATemplateOfTheRequestNeedsTheOperatorsTrust) {
  const std::string body = kUser + R"("chat_template":"own {{ messages[0].content }}"})";
  EXPECT_TRUE(Render(body).starts_with("400 "));
  context_.options.trust_request_chat_template = true;
  EXPECT_EQ(Render(body), "own u");
  EXPECT_TRUE(Render(kUser + R"("chat_template":"{% if %}"})").starts_with("400 "));
}

TEST_F(ChatMessages, ReasoningEffortIsOneOfAList) {
  EXPECT_EQ(Render(kUser + R"("reasoning_effort":"low"})"), "<user>u<a>");
  EXPECT_TRUE(Render(kUser + R"("reasoning_effort":"huge"})").starts_with("400 "));
}

TEST_F(ChatMessages, ContinueAndGenerateTogetherAreRefused) {
  EXPECT_TRUE(Render(kUser + R"("continue_final_message":true,"add_generation_prompt":true})").starts_with("400 "));
}

TEST(ChatMessagesWithoutTemplate, AreRefusedWithTheRemedy) {
  FakeEngine engine{ByteTokenizerJson()};
  ApiContext context;
  context.engine = &engine;
  const base::Json body = base::Json::parse(R"({"messages":[{"role":"user","content":"u"}]})");
  base::JsonFields fields(body);
  auto rendered = RenderChat(context, fields);
  ASSERT_TRUE(std::holds_alternative<ApiError>(rendered));
  EXPECT_NE(std::get<ApiError>(rendered).message.find("--chat-template"), std::string::npos);
}

TEST(ChatMessagesOfPartTemplates, StayParts) {
  FakeEngine engine{
      ByteTokenizerJson(),
      "{% for m in messages %}{% for c in m.content %}[{{ c.type }}:{{ c.text }}]{% endfor %}{% endfor %}"};
  ApiContext context;
  context.engine = &engine;
  const base::Json body = base::Json::parse(
      R"({"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},{"role":"user","content":"c"}]})");
  base::JsonFields fields(body);
  auto rendered = RenderChat(context, fields);
  ASSERT_TRUE(std::holds_alternative<RenderedChat>(rendered));
  EXPECT_EQ(std::get<RenderedChat>(rendered).text, "[text:a][text:b][text:c]");
}

}  // namespace
}  // namespace vllm
