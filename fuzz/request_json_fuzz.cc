// Fuzz target: request JSON of every endpoint, over an engine that answers without a model.
// Covers: src/base/json.cc src/base/json_fields.cc src/engine/sampling_json.cc src/server/openai/common_request.cc
// src/server/openai/completions.cc src/server/openai/chat_completions.cc src/server/openai/chat_messages.cc
// src/server/openai/tokenize.cc src/server/openai/logprobs_json.cc
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/check.h"
#include "server/openai/api_error.h"
#include "server/openai/endpoints.h"
#include "tests/server/fake_engine.h"

namespace {

using vllm::testing::FakeEngine;
using vllm::testing::KeptAnswer;

constexpr const char* kTemplate =
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% if m.tool_calls %}{{ m.tool_calls|tojson }}{% endif %}"
    "{% endfor %}{% if tools %}{{ tools|tojson }}{% endif %}{% if add_generation_prompt %}<a>{% endif %}";

// What a model could answer: a first part with a token, and the end, for each choice.
void Play(const vllm::GenerateRequest& request) {
  vllm::PositionLogprobs position;
  if (request.params.logprobs) position = {{97, -1.5f, 2}, {98, -0.5f, 1}};
  for (const bool last : {false, true}) {
    vllm::RequestOutput output{.first = !last, .cached_tokens = 1, .finished = last};
    if (!last && request.params.prompt_logprobs) {
      output.prompt_logprobs.resize(request.prompt_token_ids.size());
      for (size_t i = 1; i < output.prompt_logprobs.size(); ++i)
        output.prompt_logprobs[i] = {{request.prompt_token_ids[i], -1e30f, 9}};
    }
    for (int index = 0; index < request.params.n && index < 8; ++index) {
      vllm::ChoiceOutput& choice = output.choices.emplace_back();
      choice.index = index;
      choice.text = last ? "" : "a\xF0\x9F\xA6\x99";
      if (!last) choice.token_ids = {97};
      if (!last && !position.empty()) choice.logprobs = {position};
      if (last) choice.finish = vllm::FinishReason::kStop, choice.stop_reason = std::string("s");
    }
    request.on_output(std::move(output));
  }
}

void CheckAnswer(const KeptAnswer& answer) {
  CHECK(answer.ended, "no end");
  CHECK(answer.status == 200 || answer.status == 400 || answer.status == 404 || answer.status == 503, answer.status);
  if (!answer.streamed) {
    CHECK(nlohmann::json::accept(answer.body), answer.body);
    return;
  }
  CHECK(std::string_view(answer.body).ends_with("data: [DONE]\n\n"), answer.body);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  static FakeEngine engine(vllm::testing::ByteTokenizerJson(), kTemplate);
  vllm::ApiContext context;
  context.engine = &engine;
  const uint8_t choice = data[0];
  context.options.trust_request_chat_template = choice & 4;
  context.options.enable_prompt_tokens_details = choice & 4;
  if (choice & 8) context.options.default_chat_template_kwargs = R"({"flag":1})";
  vllm::HttpRequest request{.method = "POST",
                            .headers = {{"content-type", choice & 16 ? "text/plain" : "application/json"}},
                            .body = std::string(reinterpret_cast<const char*>(data) + 1, size - 1)};
  const auto answer = std::make_shared<KeptAnswer>();
  constexpr decltype(&vllm::HandleCompletions) kHandlers[] = {vllm::HandleCompletions, vllm::HandleChatCompletions,
                                                              vllm::HandleTokenize, vllm::HandleDetokenize};
  try {
    kHandlers[choice & 3](context, std::move(request), answer);
  } catch (const base::Exception& exception) {  // as the server does
    answer->Send(vllm::ErrorResponse(vllm::FromEngineError(exception.error())));
  }
  if (!answer->ended)
    for (const vllm::GenerateRequest& submitted : engine.submitted) Play(submitted);
  engine.submitted.clear();
  engine.aborted.clear();
  answer->gone = nullptr;  // it holds the request, which holds the answer
  CheckAnswer(*answer);
  return 0;
}
