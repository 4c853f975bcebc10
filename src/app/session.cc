// What the commands share: opening an engine, its start-up summary, and requests run to their end.
#include "app/session.h"

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <mutex>

#include "base/log.h"
#include "base/strings.h"
#include "vt/ops.h"

namespace vllm {
namespace {

using base::StrCat;

std::string Millions(int64_t count) {
  char text[32];
  if (count >= 1000000000) {
    std::snprintf(text, sizeof text, "%.2f B", static_cast<double>(count) / 1e9);
  } else {
    std::snprintf(text, sizeof text, "%.0f M", static_cast<double>(count) / 1e6);
  }
  return text;
}

// Outputs of one or many requests, from the engine's output thread to the one that waits.
class Mailbox {
 public:
  OutputCallback Slot(size_t index) {
    return [this, index](RequestOutput output) {
      const std::lock_guard lock(mutex_);
      waiting_.emplace_back(index, std::move(output));
      changed_.notify_one();
    };
  }
  // The next output; nothing after `timeout`.
  std::optional<std::pair<size_t, RequestOutput>> Take(std::chrono::milliseconds timeout) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, timeout, [&] { return !waiting_.empty(); })) return std::nullopt;
    auto output = std::move(waiting_.front());
    waiting_.pop_front();
    return output;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::pair<size_t, RequestOutput>> waiting_;
};

constexpr std::chrono::milliseconds kPoll(20);  // between looks at `stop`

void Merge(RequestOutput& output, Answer* answer) {
  if (output.first) answer->prompt_logprobs = std::move(output.prompt_logprobs);
  if (output.error) answer->error = output.error;
  for (ChoiceOutput& news : output.choices)
    if (news.index == 0) MergeChoice(*answer, std::move(news));
}

// A line every two seconds while weights are packed: small models are there before the first.
LlmEngine::Progress LoadProgress() {
  using Clock = std::chrono::steady_clock;
  return [last = Clock::now()](double fraction) mutable {
    if (fraction < 1 && Clock::now() - last >= std::chrono::seconds(2)) {
      last = Clock::now();
      base::LogInfo("loading weights: ", static_cast<int>(fraction * 100), " %");
    }
    return true;
  };
}

}  // namespace

void SetUpLog(const CommandLine& line) {
  const base::Options& options = line.options;
  std::string level = base::ToLower(options.String("log_level", "INFO"));
  if (options.Bool("verbose", false)) level = "debug";
  if (level == "debug") base::SetLogLevel(base::LogLevel::kDebug);
  if (level == "info") base::SetLogLevel(base::LogLevel::kInfo);
  if (level == "warning") base::SetLogLevel(base::LogLevel::kWarning);
  if (level == "error" || level == "critical") base::SetLogLevel(base::LogLevel::kError);
  vt::SetOpProviderAnnouncements(options.Bool("op_provider_stats", false));
  for (const std::string& note : line.notes) base::LogWarning(note);
}

std::unique_ptr<LlmEngine> OpenEngine(const CommandLine& line, OptionDefaults defaults) {
  SetUpLog(line);
  base::Options options = line.options;
  for (const auto& [name, value] : defaults) {
    if (!options.Has(name)) options.Set(name, std::string(value));
  }
  if (!options.Has("model")) {
    base::Throw(base::ErrorCode::kInvalidArgument, "vllm ", CommandName(line.command),
                ": no model given; name a GGUF file, a model folder or a cached hub name "
                "(./dev serve fetches SmolLM2-135M-Instruct and serves it)");
  }
  return LlmEngine::Load(EngineConfigFromOptions(options), LoadProgress());
}

std::string StartupSummary(const LlmEngine& engine, std::string_view url) {
  const EngineInfo& info = engine.info();
  const EngineConfig& config = engine.config();
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.2f", info.load_seconds);
  std::string names;
  for (const std::string& name : info.served_names) names += StrCat(names.empty() ? "" : ", ", name);
  const int64_t step = config.max_num_batched_tokens.value_or(2048);
  std::string out;
  const auto row = [&](std::string_view label, const auto&... parts) {
    out += StrCat("  ", label, std::string(12 - label.size(), ' '), parts..., "\n");
  };
  row("model", info.architecture, ", ", Millions(info.parameters), " parameters, vocabulary ", info.vocab_size);
  row("weights", info.weight_summary, ", loaded in ", seconds, " s");
  row("device", info.device_summary);
  row("attention", info.attention_backend);
  row("context", info.max_model_len, " tokens", info.context_notice.empty() ? "" : "; ", info.context_notice);
  row("KV cache", info.num_kv_blocks, " blocks of ", info.block_size, " tokens, ", base::HumanBytes(info.kv_bytes),
      ", ", info.kv_cache_dtype);
  row("scheduler", config.max_num_seqs, " requests at once, ", step, " tokens a step, prefix cache ",
      config.enable_prefix_caching ? "on" : "off");
  row("chat",
      engine.chat_template() ? "by the model's template" : "refused: the model has no template; give --chat-template");
  row("names", names);
  row("API", url.empty() ? std::string_view("none") : url);
  return out;
}

SamplingParams SamplingFromOptions(const base::Options& options, const GenerationDefaults& defaults) {
  SamplingParams params;
  params.max_tokens = options.FindInt("max_tokens");
  if (params.max_tokens == -1) params.max_tokens = std::nullopt;  // llama.cpp's "no limit"
  params.temperature = options.Double("temperature", defaults.temperature.value_or(1));
  params.top_p = options.Double("top_p", defaults.top_p.value_or(1));
  params.min_p = options.Double("min_p", defaults.min_p.value_or(0));
  params.top_k = static_cast<int>(options.Int("top_k", defaults.top_k.value_or(0)));
  params.repetition_penalty = options.Double("repetition_penalty", defaults.repetition_penalty.value_or(1));
  params.presence_penalty = options.Double("presence_penalty", 0);
  params.frequency_penalty = options.Double("frequency_penalty", 0);
  params.seed = options.FindInt("seed");
  if (params.seed == -1) params.seed = std::nullopt;  // llama.cpp's "random"
  params.stop = options.List("stop");
  params.ignore_eos = options.Bool("ignore_eos", false);
  return params;
}

base::Result<Answer> Generate(LlmEngine& engine, GenerateRequest request,
                              const std::function<void(std::string_view)>& on_text, const std::function<bool()>& stop) {
  Mailbox mailbox;
  request.on_output = mailbox.Slot(0);
  const base::Result<uint64_t> handle = engine.Submit(std::move(request));
  if (!handle.ok()) return handle.error();
  Answer answer;
  while (true) {
    if (stop && stop()) {
      engine.Abort(*handle);
      return answer;
    }
    auto output = mailbox.Take(kPoll);
    if (!output) continue;
    const size_t before = answer.text.size();
    Merge(output->second, &answer);
    if (on_text && answer.text.size() > before) on_text(std::string_view(answer.text).substr(before));
    if (output->second.finished || output->second.error) return answer;
  }
}

int64_t GenerateAll(LlmEngine& engine, std::vector<GenerateRequest> requests, size_t in_flight,
                    const std::function<void(size_t, Answer)>& on_answer) {
  Mailbox mailbox;
  std::vector<Answer> answers(requests.size());
  std::vector<uint64_t> handles(requests.size(), 0);
  size_t next = 0, done = 0;
  int64_t tokens = 0;
  // The callbacks refer to the mailbox: nothing may be running when this function is left by an error.
  const auto fail = [&](const base::Error& error) {
    for (size_t i = 0; i < next; ++i) engine.Abort(handles[i]);
    throw base::Exception(error);
  };
  while (done < requests.size()) {
    while (next < requests.size() && next - done < in_flight) {
      requests[next].on_output = mailbox.Slot(next);
      const base::Result<uint64_t> handle = engine.Submit(std::move(requests[next]));
      if (!handle.ok()) fail(handle.error());
      handles[next++] = *handle;
    }
    auto output = mailbox.Take(kPoll);
    if (!output) continue;
    auto& [index, news] = *output;
    for (const ChoiceOutput& choice : news.choices) tokens += static_cast<int64_t>(choice.token_ids.size());
    Merge(news, &answers[index]);
    if (news.error) fail(*news.error);
    if (!news.finished) continue;
    ++done;
    if (on_answer) on_answer(index, std::move(answers[index]));
  }
  return tokens;
}

}  // namespace vllm
