// The C ABI over LlmEngine: every exception becomes a status, every callback a plain struct.
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>

#include "base/json.h"
#include "base/limits.h"
#include "base/options.h"
#include "base/version.h"
#include "engine/llm_engine.h"
#include "engine/sampling_json.h"
#include "text/template/chat_template.h"
#include "text/tokenizer/tokenizer.h"
#include "vllm.h"

struct vllm_engine {
  std::unique_ptr<vllm::LlmEngine> engine;
};

struct vllm_request {
  vllm::LlmEngine* engine = nullptr;
  uint64_t handle = 0;
  // Shared with the engine's callback, which may outlive a freed request by a moment.
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    bool finished = false, cancelled = false, failed = false;
  };
  std::shared_ptr<State> state = std::make_shared<State>();
};

namespace {

thread_local std::string last_error;

vllm_status StatusOf(base::ErrorCode code) {
  switch (code) {
    case base::ErrorCode::kInvalidArgument:
      return VLLM_INVALID_ARGUMENT;
    case base::ErrorCode::kNotFound:
      return VLLM_NOT_FOUND;
    case base::ErrorCode::kBadFile:
      return VLLM_BAD_FILE;
    case base::ErrorCode::kUnsupported:
      return VLLM_UNSUPPORTED;
    case base::ErrorCode::kOutOfMemory:
      return VLLM_OUT_OF_MEMORY;
    case base::ErrorCode::kOverloaded:
      return VLLM_OVERLOADED;
    case base::ErrorCode::kCancelled:
      return VLLM_CANCELLED;
    case base::ErrorCode::kInternal:
      return VLLM_INTERNAL;
  }
  return VLLM_INTERNAL;
}

vllm_status Fail(vllm_status status, const std::string& message) {
  last_error = message;
  return status;
}

// Runs `body`, which returns a base::Status, and keeps every exception inside.
template <class F>
vllm_status Guard(F&& body) noexcept {
  try {
    const base::Status status = body();
    return status.ok() ? VLLM_OK : Fail(StatusOf(status.error().code), status.error().message);
  } catch (const base::Exception& error) {
    return Fail(StatusOf(error.code()), error.what());
  } catch (const std::invalid_argument& error) {
    return Fail(VLLM_INVALID_ARGUMENT, error.what());
  } catch (const std::bad_alloc&) {
    return Fail(VLLM_OUT_OF_MEMORY, "out of memory");
  } catch (const std::exception& error) {
    return Fail(VLLM_INTERNAL, error.what());
  }
}

base::Error Invalid(const std::string& message) { return {base::ErrorCode::kInvalidArgument, message}; }

std::string ToString(vllm_text text) { return text.data ? std::string(text.data, text.length) : std::string(); }

vllm_finish_reason ReasonOf(const std::optional<vllm::FinishReason>& reason) {
  if (!reason) return VLLM_FINISH_NONE;
  switch (*reason) {
    case vllm::FinishReason::kStop:
      return VLLM_FINISH_STOP;
    case vllm::FinishReason::kLength:
      return VLLM_FINISH_LENGTH;
    case vllm::FinishReason::kAbort:
      return VLLM_FINISH_ABORT;
    case vllm::FinishReason::kError:
      return VLLM_FINISH_ERROR;
  }
  return VLLM_FINISH_ERROR;
}

base::Result<vllm::SamplingParams> SamplingOf(const vllm::LlmEngine& engine, vllm_text json, bool fills_context) {
  base::Json object = base::Json::object();
  if (json.length > 0) {
    auto parsed = base::ParseJson({json.data, json.length}, base::kMaxJsonDepth);
    if (!parsed.ok()) return Invalid("sampling_json: " + parsed.error().message);
    object = std::move(*parsed);
  }
  if (!object.is_object()) return Invalid("sampling_json: must be an object");
  base::JsonFields fields(object);
  vllm::SamplingParams params = vllm::ReadSamplingParams(fields, engine.defaults());
  params.max_tokens = fields.FindInt("max_tokens");
  if (!params.max_tokens && !fills_context) params.max_tokens = 16;
  if (fields.error()) return Invalid("sampling_json: " + fields.error()->message);
  return params;
}

// Hands one RequestOutput to the C callback, choice by choice.
void Deliver(const vllm::RequestOutput& output, vllm_output_fn on_output, void* user) {
  for (const vllm::ChoiceOutput& choice : output.choices) {
    const vllm_output piece = {.size = sizeof(vllm_output),
                               .index = choice.index,
                               .text = {choice.text.data(), choice.text.size()},
                               .token_ids = choice.token_ids.data(),
                               .num_token_ids = choice.token_ids.size(),
                               .finish_reason = ReasonOf(choice.finish),
                               .error = {nullptr, 0}};
    on_output(&piece, user);
  }
  if (output.error) {
    const std::string& message = output.error->message;
    const vllm_output piece = {.size = sizeof(vllm_output),
                               .index = 0,
                               .text = {nullptr, 0},
                               .token_ids = nullptr,
                               .num_token_ids = 0,
                               .finish_reason = VLLM_FINISH_ERROR,
                               .error = {message.data(), message.size()}};
    on_output(&piece, user);
  }
}

base::Status Start(vllm_engine* engine, vllm::GenerateRequest request, vllm_output_fn on_output, void* user,
                   vllm_request** out) {
  auto handle = std::make_unique<vllm_request>();
  handle->engine = engine->engine.get();
  request.on_output = [state = handle->state, on_output, user](vllm::RequestOutput output) {
    Deliver(output, on_output, user);
    if (!output.finished && !output.error) return;
    const std::lock_guard lock(state->mutex);
    state->finished = true;
    state->failed = output.error.has_value();
    state->changed.notify_all();
  };
  auto submitted = engine->engine->Submit(std::move(request));
  if (!submitted.ok()) return submitted.error();
  handle->handle = *submitted;
  *out = handle.release();
  return base::Ok();
}

base::Json MessagesOf(const vllm_chat_params& params) {
  base::Json messages = base::Json::array();
  for (size_t i = 0; i < params.num_messages; ++i) {
    base::Json message = base::Json::object();
    message["role"] = ToString(params.messages[i].role);
    message["content"] = ToString(params.messages[i].content);
    messages.push_back(std::move(message));
  }
  return messages;
}

}  // namespace

extern "C" {

vllm_status vllm_engine_load(const vllm_engine_params* params, vllm_engine** engine) {
  return Guard([&]() -> base::Status {
    if (!params || !engine || params->size < sizeof(vllm_engine_params))
      return Invalid("vllm_engine_load: params or engine");
    base::Options options;
    options.Set("model", ToString(params->model));
    for (size_t i = 0; i < params->num_options; ++i)
      options.Set(base::OptionName(ToString(params->options[i].name)), ToString(params->options[i].value));
    vllm::LlmEngine::Progress progress;
    if (params->progress)
      progress = [&](double fraction) { return params->progress(fraction, params->progress_user) == 0; };
    auto loaded = std::make_unique<vllm_engine>();
    loaded->engine = vllm::LlmEngine::Load(vllm::EngineConfigFromOptions(options), progress);
    *engine = loaded.release();
    return base::Ok();
  });
}

void vllm_engine_free(vllm_engine* engine) {
  Guard([&]() -> base::Status {
    delete engine;
    return base::Ok();
  });
}

vllm_status vllm_generate(vllm_engine* engine, const vllm_generate_params* params, vllm_request** request) {
  return Guard([&]() -> base::Status {
    if (!engine || !params || !request || !params->on_output || params->size < sizeof(vllm_generate_params))
      return Invalid("vllm_generate: engine, params, on_output or request");
    auto sampling = SamplingOf(*engine->engine, params->sampling_json, /*fills_context=*/false);
    if (!sampling.ok()) return sampling.error();
    vllm::GenerateRequest generate;
    generate.params = std::move(*sampling);
    if (params->token_ids) {
      generate.prompt_token_ids.assign(params->token_ids, params->token_ids + params->num_token_ids);
    } else {
      generate.prompt_token_ids = engine->engine->tokenizer().Encode(ToString(params->prompt));
    }
    return Start(engine, std::move(generate), params->on_output, params->user, request);
  });
}

vllm_status vllm_chat(vllm_engine* engine, const vllm_chat_params* params, vllm_request** request) {
  return Guard([&]() -> base::Status {
    if (!engine || !params || !request || !params->on_output || params->size < sizeof(vllm_chat_params))
      return Invalid("vllm_chat: engine, params, on_output or request");
    const vllm::ChatTemplate* chat_template = engine->engine->chat_template();
    if (!chat_template)
      return base::MakeError(
          base::ErrorCode::kUnsupported,
          "the model has no chat template; give one with the option chat-template, or use vllm_generate");
    auto sampling = SamplingOf(*engine->engine, params->sampling_json, /*fills_context=*/true);
    if (!sampling.ok()) return sampling.error();
    const base::Json messages = MessagesOf(*params);
    auto prompt = chat_template->Render({.messages = messages});
    if (!prompt.ok()) return prompt.error();
    vllm::GenerateRequest generate;
    generate.params = std::move(*sampling);
    generate.prompt_token_ids = engine->engine->tokenizer().Encode(*prompt, {.add_special_tokens = false});
    return Start(engine, std::move(generate), params->on_output, params->user, request);
  });
}

vllm_status vllm_request_wait(vllm_request* request) {
  return Guard([&]() -> base::Status {
    if (!request) return Invalid("vllm_request_wait: request");
    vllm_request::State& state = *request->state;
    std::unique_lock lock(state.mutex);
    state.changed.wait(lock, [&] { return state.finished || state.cancelled; });
    if (state.cancelled) return base::MakeError(base::ErrorCode::kCancelled, "the request was cancelled");
    if (state.failed) return base::MakeError(base::ErrorCode::kInternal, "the request ended with an error");
    return base::Ok();
  });
}

void vllm_request_cancel(vllm_request* request) {
  Guard([&]() -> base::Status {
    if (!request) return base::Ok();
    request->engine->Abort(request->handle);
    const std::lock_guard lock(request->state->mutex);
    if (!request->state->finished) request->state->cancelled = true;
    request->state->changed.notify_all();
    return base::Ok();
  });
}

void vllm_request_free(vllm_request* request) {
  vllm_request_cancel(request);
  delete request;
}

vllm_status vllm_tokenize(vllm_engine* engine, vllm_text text, int add_special_tokens, int32_t* ids, size_t capacity,
                          size_t* count) {
  return Guard([&]() -> base::Status {
    if (!engine || !count || (capacity > 0 && !ids)) return Invalid("vllm_tokenize: engine, ids or count");
    const std::vector<int32_t> found =
        engine->engine->tokenizer().Encode(ToString(text), {.add_special_tokens = add_special_tokens != 0});
    std::copy_n(found.begin(), std::min(found.size(), capacity), ids);
    *count = found.size();
    return base::Ok();
  });
}

vllm_status vllm_detokenize(vllm_engine* engine, const int32_t* ids, size_t num_ids, char* text, size_t capacity,
                            size_t* length) {
  return Guard([&]() -> base::Status {
    if (!engine || !length || (num_ids > 0 && !ids) || (capacity > 0 && !text))
      return Invalid("vllm_detokenize: engine, ids, text or length");
    const std::string decoded = engine->engine->tokenizer().Decode({ids, num_ids});
    std::memcpy(text, decoded.data(), std::min(decoded.size(), capacity));
    *length = decoded.size();
    return base::Ok();
  });
}

const char* vllm_last_error(void) { return last_error.c_str(); }
const char* vllm_version(void) { return base::kVersion.data(); }
int vllm_abi_version(void) { return VLLM_ABI_VERSION; }

}  // extern "C"
