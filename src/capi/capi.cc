// The C ABI over LlmEngine: every exception becomes a status, every callback a plain struct.
#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/json.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/options.h"
#include "base/version.h"
#include "engine/llm_engine.h"
#include "engine/sampling_json.h"
#include "text/template/chat_template.h"
#include "text/tokenizer/tokenizer.h"
#include "vllm.h"

namespace {

// The way from requests to their engine; requests may outlive it.
class EngineLink {
 public:
  explicit EngineLink(vllm::LlmEngine* engine) : engine_(engine) {}

  // Ends a request in the engine, if that is still there. Returns when no callback of it runs.
  void Abort(uint64_t handle) {
    {
      const std::lock_guard lock(mutex_);
      if (!engine_) return;
      ++callers_;
    }
    engine_->Abort(handle);
    const std::lock_guard lock(mutex_);
    if (--callers_ == 0) idle_.notify_all();
  }
  // Once it returns, nobody uses the engine.
  void Cut() {
    std::unique_lock lock(mutex_);
    engine_ = nullptr;
    idle_.wait(lock, [this] { return callers_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable idle_;
  vllm::LlmEngine* engine_;
  int callers_ = 0;
};

// Shared by a handle and the engine's callback; each may outlive the other.
struct RequestState {
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<uint64_t> handle;                             // guarded; known once the engine has the request
  bool finished = false, cancelled = false, calling = false;  // guarded; calling: the callback runs
  std::optional<base::Error> error;                           // guarded

  // A request that ends without its last output was cancelled, by whatever made the engine drop it.
  void Cancel() {
    const std::lock_guard lock(mutex);
    if (!finished) cancelled = true;
    changed.notify_all();
  }
  bool IsCancelled() {
    const std::lock_guard lock(mutex);
    return cancelled;
  }
};

}  // namespace

struct vllm_engine {
  std::unique_ptr<vllm::LlmEngine> engine;
  std::shared_ptr<EngineLink> link;
};

struct vllm_request {
  std::shared_ptr<EngineLink> link;
  std::shared_ptr<RequestState> state;
};

namespace {

thread_local std::string last_error;
thread_local int callback_depth = 0;  // callbacks of requests that this thread is in

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
    case base::ErrorCode::kDeadlineExceeded:
      return VLLM_DEADLINE_EXCEEDED;
    case base::ErrorCode::kInternal:
      return VLLM_INTERNAL;
  }
  return VLLM_INTERNAL;
}

vllm_status Fail(vllm_status status, std::string_view message) noexcept {
  try {
    last_error = message;
    std::replace(last_error.begin(), last_error.end(), '\n', ' ');
  } catch (...) {
    last_error.clear();  // the status alone has to do
  }
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
  } catch (...) {
    return Fail(VLLM_INTERNAL, "an exception of a foreign type");
  }
}

template <class... Parts>
base::Error Invalid(const Parts&... parts) {
  return base::MakeError(base::ErrorCode::kInvalidArgument, parts...);
}

// Fields that a newer header has and this library does not must be zero, or they would be dropped silently.
template <class Params>
base::Status CheckParams(const char* function, const Params* params) {
  constexpr size_t kMaxParamsBytes = 4096;  // far above any future struct: no walk through memory on a wild size
  if (!params) return Invalid(function, ": params is NULL");
  const size_t size = params->size;
  if (size < sizeof(Params) || size > kMaxParamsBytes)
    return Invalid(function, ": params->size is ", size, "; set it to sizeof *params (here ", sizeof(Params), ")");
  const char* bytes = reinterpret_cast<const char*>(params);
  if (std::any_of(bytes + sizeof(Params), bytes + size, [](char byte) { return byte != 0; }))
    return Invalid(function, ": params has fields that this version, ", base::kVersion, ", does not know");
  return base::Ok();
}

base::Result<std::string> ReadText(std::string_view name, vllm_text text) {
  if (!text.data && text.length > 0) return Invalid(name, ": data is NULL with a length of ", text.length);
  return text.length > 0 ? std::string(text.data, text.length) : std::string();
}

base::Result<base::Options> ReadOptions(const vllm_engine_params& params) {
  if (!params.options && params.num_options > 0)
    return Invalid("options is NULL with num_options ", params.num_options);
  base::Options options;
  auto model = ReadText("model", params.model);
  if (!model) return model.error();
  if (model->find('\0') != std::string::npos) return Invalid("model: the path has a NUL inside");
  options.Set("model", *model);
  for (size_t i = 0; i < params.num_options; ++i) {
    auto name = ReadText("option", params.options[i].name);
    if (!name) return name.error();
    auto value = ReadText(*name, params.options[i].value);
    if (!value) return value.error();
    const std::string known = base::OptionName(*name);
    const auto names = vllm::EngineOptionNames();
    if (known == "model") return Invalid("option 'model': the model is given by params->model");
    if (std::find(names.begin(), names.end(), known) == names.end()) {
      std::vector<std::string> written(names.begin(), names.end());
      for (std::string& other : written) std::replace(other.begin(), other.end(), '_', '-');
      const std::string nearest = base::Nearest(*name, written);
      return Invalid("option '", *name, "' is not known", nearest.empty() ? "" : "; nearest is ", nearest);
    }
    options.Set(known, *value, base::OptionSource::kHost, *name);
  }
  return options;
}

// What ReadSamplingParams reads, and max_tokens; anything else would be dropped silently.
constexpr std::array<std::string_view, 21> kSamplingFields = {"n",
                                                              "presence_penalty",
                                                              "frequency_penalty",
                                                              "repetition_penalty",
                                                              "temperature",
                                                              "top_p",
                                                              "top_k",
                                                              "min_p",
                                                              "seed",
                                                              "stop",
                                                              "stop_token_ids",
                                                              "ignore_eos",
                                                              "min_tokens",
                                                              "max_tokens",
                                                              "logit_bias",
                                                              "allowed_token_ids",
                                                              "bad_words",
                                                              "skip_special_tokens",
                                                              "spaces_between_special_tokens",
                                                              "include_stop_str_in_output",
                                                              "logprob_token_ids"};

base::Status CheckSamplingFields(const base::Json& object) {
  for (const auto& [name, value] : object.items()) {
    if (std::find(kSamplingFields.begin(), kSamplingFields.end(), name) != kSamplingFields.end()) continue;
    const std::vector<std::string> known(kSamplingFields.begin(), kSamplingFields.end());
    const std::string nearest = base::Nearest(name, known);
    return Invalid("sampling_json: '", base::ReplaceInvalidUtf8(name), "' is not known",
                   nearest.empty() ? "" : "; nearest is ", nearest);
  }
  return base::Ok();
}

base::Result<vllm::SamplingParams> ReadSampling(const vllm::LlmEngine& engine, vllm_text json, bool fills_context) {
  base::Json object = base::Json::object();
  auto text = ReadText("sampling_json", json);
  if (!text) return text.error();
  if (!text->empty()) {
    auto parsed = base::ParseJson(*text, base::kMaxJsonDepth);
    if (!parsed.ok()) return Invalid("sampling_json: ", parsed.error().message);
    object = std::move(*parsed);
  }
  if (!object.is_object()) return Invalid("sampling_json: must be an object");
  if (base::Status status = CheckSamplingFields(object); !status) return status.error();
  base::JsonFields fields(object);
  const vllm::GenerationDefaults& defaults = engine.defaults();
  vllm::SamplingParams params = vllm::ReadSamplingParams(fields, defaults);
  params.max_tokens = fields.FindInt("max_tokens");
  if (!params.max_tokens && !fills_context) params.max_tokens = 16;
  if (defaults.max_new_tokens)
    params.max_tokens = std::min(params.max_tokens.value_or(*defaults.max_new_tokens), *defaults.max_new_tokens);
  if (fields.error()) return Invalid("sampling_json: ", fields.error()->field, ": ", fields.error()->message);
  return params;
}

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

// Ends a request in the engine; when it returns, its callback is not running, but where this is called from it.
void EndEarly(RequestState& state, EngineLink& link) {
  std::unique_lock lock(state.mutex);
  state.changed.wait(lock, [&] { return state.handle.has_value(); });  // a first callback may come before it
  const uint64_t handle = *state.handle;
  lock.unlock();
  link.Abort(handle);
  state.Cancel();
}

// The engine's callback: hands each choice to the host's function. The engine drops it when the request is over.
class Delivery {
 public:
  Delivery(const vllm_request& request, vllm_output_fn on_output, void* user)
      : state_(request.state), link_(request.link), on_output_(on_output), user_(user) {}
  ~Delivery() { state_->Cancel(); }
  Delivery(const Delivery&) = delete;
  Delivery& operator=(const Delivery&) = delete;

  void Deliver(const vllm::RequestOutput& output) {
    const Calling calling(*state_);
    const vllm_text error =
        output.error ? vllm_text{output.error->message.data(), output.error->message.size()} : vllm_text{nullptr, 0};
    bool told = false;  // the choice that failed ends with the error
    for (const vllm::ChoiceOutput& choice : output.choices) {
      if (state_->IsCancelled()) return;  // by the callback before
      const bool failed = choice.finish == vllm::FinishReason::kError;
      told |= failed;
      Call({.size = sizeof(vllm_output),
            .index = choice.index,
            .text = {choice.text.data(), choice.text.size()},
            .token_ids = choice.token_ids.data(),
            .num_token_ids = choice.token_ids.size(),
            .finish_reason = ReasonOf(choice.finish),
            .error = failed ? error : vllm_text{nullptr, 0}});
    }
    if (output.error && !told && !state_->IsCancelled()) {
      Call({.size = sizeof(vllm_output),
            .index = 0,
            .text = {nullptr, 0},
            .token_ids = nullptr,
            .num_token_ids = 0,
            .finish_reason = VLLM_FINISH_ERROR,
            .error = error});
    }
    if (!output.finished && !output.error) return;
    const std::lock_guard lock(state_->mutex);
    state_->finished = true;
    state_->error = output.error;
  }

 private:
  // Marks the time in which the host's function may run.
  class Calling {
   public:
    explicit Calling(RequestState& state) : state_(state) { Set(true, 1); }
    ~Calling() { Set(false, -1); }

   private:
    void Set(bool calling, int change) {
      const std::lock_guard lock(state_.mutex);
      state_.calling = calling;
      callback_depth += change;
      state_.changed.notify_all();
    }
    RequestState& state_;
  };

  // A function of a C++ host may throw all the same: its request ends, the engine goes on.
  void Call(const vllm_output& piece) {
    try {
      on_output_(&piece, user_);
    } catch (...) {
      EndEarly(*state_, *link_);
    }
  }

  const std::shared_ptr<RequestState> state_;
  const std::shared_ptr<EngineLink> link_;
  const vllm_output_fn on_output_;
  void* const user_;
};

base::Status Start(vllm_engine* engine, vllm::GenerateRequest request, vllm_output_fn on_output, void* user,
                   vllm_request** out) {
  auto handle = std::make_unique<vllm_request>();
  handle->link = engine->link;
  handle->state = std::make_shared<RequestState>();
  const auto delivery = std::make_shared<Delivery>(*handle, on_output, user);
  request.on_output = [delivery](vllm::RequestOutput output) { delivery->Deliver(output); };
  *out = handle.get();  // before the first callback, which may use it
  std::optional<base::Result<uint64_t>> submitted;
  try {
    submitted = engine->engine->Submit(std::move(request));
  } catch (...) {
    *out = nullptr;
    throw;
  }
  if (!submitted->ok()) {
    *out = nullptr;
    return submitted->error();
  }
  const std::shared_ptr<RequestState> state = handle.release()->state;
  const std::lock_guard lock(state->mutex);
  state->handle = **submitted;
  state->changed.notify_all();
  return base::Ok();
}

base::Result<base::Json> ReadMessages(const vllm_chat_params& params) {
  if (params.num_messages == 0) return Invalid("vllm_chat: there are no messages");
  if (!params.messages) return Invalid("vllm_chat: messages is NULL with num_messages ", params.num_messages);
  if (params.num_messages > base::kMaxChatMessages)
    return Invalid("vllm_chat: ", params.num_messages, " messages, at most ", base::kMaxChatMessages);
  base::Json messages = base::Json::array();
  for (size_t i = 0; i < params.num_messages; ++i) {
    auto role = ReadText("role", params.messages[i].role), content = ReadText("content", params.messages[i].content);
    if (!role) return role.error();
    if (!content) return content.error();
    base::Json message = base::Json::object();
    message["role"] = base::ReplaceInvalidUtf8(*role);
    message["content"] = base::ReplaceInvalidUtf8(*content);
    messages.push_back(std::move(message));
  }
  return messages;
}

base::Result<std::vector<int32_t>> ReadPrompt(const vllm_engine& engine, const vllm_generate_params& params) {
  if (params.token_ids && params.prompt.length > 0)
    return Invalid("vllm_generate: prompt and token_ids exclude each other");
  if (!params.token_ids) {
    if (params.num_token_ids > 0) return Invalid("token_ids is NULL with num_token_ids ", params.num_token_ids);
    auto text = ReadText("prompt", params.prompt);
    if (!text) return text.error();
    return engine.engine->tokenizer().Encode(*text);
  }
  if (params.num_token_ids > static_cast<size_t>(base::kMaxRequestTokens))
    return Invalid("num_token_ids ", params.num_token_ids, " is above ", base::kMaxRequestTokens);
  return std::vector<int32_t>(params.token_ids, params.token_ids + params.num_token_ids);
}

}  // namespace

extern "C" {

vllm_status vllm_engine_load(const vllm_engine_params* params, vllm_engine** engine) {
  return Guard([&]() -> base::Status {
    if (base::Status status = CheckParams("vllm_engine_load", params); !status) return status;
    if (!engine) return Invalid("vllm_engine_load: engine is NULL");
    auto options = ReadOptions(*params);
    if (!options) return options.error();
    base::SetLogLevel(base::LogLevel::kOff);  // stderr is the host's
    bool stopped = false;
    vllm::LlmEngine::Progress progress;
    if (params->progress)
      progress = [&](double fraction) {
        stopped |= params->progress(fraction, params->progress_user) != 0;
        return !stopped;
      };
    auto loaded = std::make_unique<vllm_engine>();
    loaded->engine = vllm::LlmEngine::Load(vllm::EngineConfigFromOptions(*options), progress);
    if (stopped) return base::MakeError(base::ErrorCode::kCancelled, "the load was cancelled");
    loaded->link = std::make_shared<EngineLink>(loaded->engine.get());
    *engine = loaded.release();
    return base::Ok();
  });
}

void vllm_engine_free(vllm_engine* engine) {
  Guard([&]() -> base::Status {
    if (callback_depth > 0) return Invalid("vllm_engine_free: not from a callback");
    if (!engine) return base::Ok();
    const std::unique_ptr<vllm_engine> owner(engine);
    owner->link->Cut();
    return base::Ok();
  });
}

vllm_status vllm_generate(vllm_engine* engine, const vllm_generate_params* params, vllm_request** request) {
  return Guard([&]() -> base::Status {
    if (base::Status status = CheckParams("vllm_generate", params); !status) return status;
    if (!engine || !params->on_output || !request)
      return Invalid("vllm_generate: engine, on_output or request is NULL");
    auto sampling = ReadSampling(*engine->engine, params->sampling_json, /*fills_context=*/false);
    if (!sampling) return sampling.error();
    auto prompt = ReadPrompt(*engine, *params);
    if (!prompt) return prompt.error();
    vllm::GenerateRequest generate;
    generate.params = std::move(*sampling);
    generate.prompt_token_ids = std::move(*prompt);
    return Start(engine, std::move(generate), params->on_output, params->user, request);
  });
}

vllm_status vllm_chat(vllm_engine* engine, const vllm_chat_params* params, vllm_request** request) {
  return Guard([&]() -> base::Status {
    if (base::Status status = CheckParams("vllm_chat", params); !status) return status;
    if (!engine || !params->on_output || !request) return Invalid("vllm_chat: engine, on_output or request is NULL");
    const vllm::ChatTemplate* chat_template = engine->engine->chat_template();
    if (!chat_template)
      return base::MakeError(
          base::ErrorCode::kUnsupported,
          "the model has no chat template; give one with the option chat-template, or use vllm_generate");
    auto sampling = ReadSampling(*engine->engine, params->sampling_json, /*fills_context=*/true);
    if (!sampling) return sampling.error();
    auto messages = ReadMessages(*params);
    if (!messages) return messages.error();
    auto prompt = chat_template->Render({.messages = *messages});
    if (!prompt) return prompt.error();
    vllm::GenerateRequest generate;
    generate.params = std::move(*sampling);
    generate.prompt_token_ids = engine->engine->tokenizer().Encode(*prompt, {.add_special_tokens = false});
    return Start(engine, std::move(generate), params->on_output, params->user, request);
  });
}

vllm_status vllm_request_wait(vllm_request* request) {
  return Guard([&]() -> base::Status {
    if (!request) return Invalid("vllm_request_wait: request is NULL");
    if (callback_depth > 0) return Invalid("vllm_request_wait: not from a callback");
    const std::shared_ptr<RequestState> state = request->state;
    std::unique_lock lock(state->mutex);
    state->changed.wait(lock, [&] { return (state->finished || state->cancelled) && !state->calling; });
    if (state->cancelled) return base::MakeError(base::ErrorCode::kCancelled, "the request was cancelled");
    if (state->error) return *state->error;
    return base::Ok();
  });
}

void vllm_request_cancel(vllm_request* request) {
  Guard([&]() -> base::Status {
    if (!request) return base::Ok();
    const std::shared_ptr<RequestState> state = request->state;  // the callback may free the request
    const std::shared_ptr<EngineLink> link = request->link;
    EndEarly(*state, *link);
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
    if (!engine || !count || (capacity > 0 && !ids)) return Invalid("vllm_tokenize: engine, ids or count is NULL");
    auto given = ReadText("text", text);
    if (!given) return given.error();
    const std::vector<int32_t> found =
        engine->engine->tokenizer().Encode(*given, {.add_special_tokens = add_special_tokens != 0});
    std::copy_n(found.begin(), std::min(found.size(), capacity), ids);
    *count = found.size();
    return base::Ok();
  });
}

vllm_status vllm_detokenize(vllm_engine* engine, const int32_t* ids, size_t num_ids, char* text, size_t capacity,
                            size_t* length) {
  return Guard([&]() -> base::Status {
    if (!engine || !length || (num_ids > 0 && !ids) || (capacity > 0 && !text))
      return Invalid("vllm_detokenize: engine, ids, text or length is NULL");
    const std::string decoded = engine->engine->tokenizer().Decode({ids, num_ids});
    std::copy_n(decoded.begin(), std::min(decoded.size(), capacity), text);
    *length = decoded.size();
    return base::Ok();
  });
}

const char* vllm_last_error(void) { return last_error.c_str(); }
const char* vllm_version(void) { return base::kVersion.data(); }
int vllm_abi_version(void) { return VLLM_ABI_VERSION; }

}  // extern "C"
