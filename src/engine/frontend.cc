// Follows vLLM's input processor (vllm/v1/engine/input_processor.py) and parallel sampling.
#include "engine/frontend.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <random>
#include <utility>

#include "base/limits.h"
#include "base/metrics.h"
#include "base/py_text.h"
#include "engine/out/engine_metrics.h"
#include "engine/out/output_processor.h"

namespace vllm {
namespace {

int64_t NowUs() {
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

uint64_t RandomBits() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

// SplitMix64's output function.
uint64_t Scramble(uint64_t x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

template <class... Parts>
base::Status Refuse(const Parts&... parts) {
  return base::MakeError(base::ErrorCode::kInvalidArgument, parts...);
}

// Python's str.lstrip().
std::string_view StripLeadingSpace(std::string_view text) {
  constexpr std::string_view kWide[] = {"\u0085", "\u00A0", "\u1680", "\u2000", "\u2001", "\u2002", "\u2003",
                                        "\u2004", "\u2005", "\u2006", "\u2007", "\u2008", "\u2009", "\u200A",
                                        "\u2028", "\u2029", "\u202F", "\u205F", "\u3000"};
  for (;;) {
    const size_t before = text.size();
    while (!text.empty() && (text[0] == ' ' || (text[0] >= 9 && text[0] <= 13) || (text[0] >= 28 && text[0] <= 31))) {
      text.remove_prefix(1);
    }
    for (const std::string_view space : kWide) {
      if (text.starts_with(space)) text.remove_prefix(space.size());
    }
    if (text.size() == before) return text;
  }
}

base::Status CheckPrompt(const std::vector<int32_t>& ids, int64_t max_model_len, int64_t vocab_size) {
  const int64_t length = static_cast<int64_t>(ids.size());
  if (length == 0) return Refuse("The decoder prompt cannot be empty");
  if (length > max_model_len) {
    return Refuse("The decoder prompt (length ", length, ") is longer than the maximum model length of ", max_model_len,
                  ". Make sure that `max_model_len` is no smaller than the number of text tokens.");
  }
  if (length == max_model_len) {
    return Refuse(
        "The decoder prompt (length ", length,
        ") plus the number of requested output tokens (at least 1) is longer than the maximum model length of ",
        max_model_len,
        ". Make sure that `max_model_len` is no smaller than the number of text tokens (prompt + requested "
        "output tokens).");
  }
  for (const int32_t id : ids) {
    if (id < 0 || id >= vocab_size) return Refuse("Token id ", id, " is out of vocabulary");
  }
  return base::Ok();
}

// Each word both without and with a leading space; the spaced form only where it is another token and of equal length.
base::Status TokenizeBadWords(SamplingParams& params, const Tokenizer& tokenizer) {
  const auto refuse = [&](const std::string& message) {
    return Refuse(message,
                  " (parameter=bad_words, value=", base::PyRepr(std::span<const std::string>(params.bad_words)), ")");
  };
  std::vector<std::vector<int32_t>>& words = params.bad_words_ids;
  words.clear();
  size_t num_tokens = 0;
  const auto keep = [&](std::vector<int32_t> ids) {
    num_tokens += ids.size();
    words.push_back(std::move(ids));
  };
  for (const std::string& word : params.bad_words) {
    const std::string bare(StripLeadingSpace(word));
    std::vector<int32_t> plain = tokenizer.Encode(bare, {.add_special_tokens = false});
    if (plain.empty()) return refuse("bad_words entries must tokenize to at least one token.");
    std::vector<int32_t> spaced = tokenizer.Encode(" " + bare, {.add_special_tokens = false});
    const bool keep_spaced = !spaced.empty() && spaced[0] != plain[0] && spaced.size() == plain.size();
    keep(std::move(plain));
    if (keep_spaced) keep(std::move(spaced));
    if (words.size() > base::kMaxBadWords) {
      return refuse(base::StrCat("Too many bad words after tokenization: ", words.size(), ". The max number is ",
                                 base::kMaxBadWords, "."));
    }
  }
  if (num_tokens > base::kMaxBadWordTokens) {
    return Refuse("Too many total bad word tokens: ", num_tokens, ". The max is ", base::kMaxBadWordTokens, ".");
  }
  return base::Ok();
}

void AddUnique(std::vector<int32_t>& ids, int32_t id) {
  if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
}

// The tokenizer's EOS ends a sequence without a stop reason; further ones of generation_config.json do as stop token
// ids. min_tokens masks all of them, even with ignore_eos.
void AddEndTokens(SamplingParams& params, std::optional<int32_t> eos, const std::vector<int32_t>& extra) {
  params.eos_token_id = params.ignore_eos ? std::nullopt : eos;
  if (eos) AddUnique(params.all_stop_token_ids, *eos);
  for (const int32_t id : extra) {
    if (id == eos) continue;
    AddUnique(params.all_stop_token_ids, id);
    if (!params.ignore_eos) AddUnique(params.stop_token_ids, id);
  }
}

class Frontend final : public LlmEngine {
 public:
  explicit Frontend(EngineParts parts)
      : parts_(std::move(parts)),
        metrics_(registry_, parts_.info.model_name, parts_.info.max_model_len),
        seed_base_(parts_.config.seed ? Scramble(static_cast<uint64_t>(*parts_.config.seed)) : RandomBits()),
        outputs_({.tokenizer = parts_.tokenizer.get(),
                  .metrics = &metrics_,
                  .abort_sequence = [this](RequestId id) { core_->Abort(id); }}),
        core_(parts_.make_core([this](std::vector<CoreOutput> outputs) { outputs_.Push(std::move(outputs)); })) {
    AddCacheConfigInfo(registry_, parts_.config, parts_.info);
    registry_.OnCollect([this] { metrics_.SetEngineStats(core_->stats()); });
  }

  ~Frontend() override {
    outputs_.Stop();  // before the core, which its thread calls
    core_.reset();    // before the processor, which its thread calls
  }

  base::Result<uint64_t> Submit(GenerateRequest request) override;
  void Abort(uint64_t handle) override { outputs_.Abort(handle); }

  const EngineInfo& info() const override { return parts_.info; }
  const EngineConfig& config() const override { return parts_.config; }
  const GenerationDefaults& defaults() const override { return parts_.defaults; }
  const Tokenizer& tokenizer() const override { return *parts_.tokenizer; }
  const ChatTemplate* chat_template() const override { return parts_.chat_template.get(); }
  EngineStats stats() const override { return core_->stats(); }
  base::MetricsRegistry& metrics() override { return registry_; }
  bool healthy() const override { return core_->healthy(); }
  bool ResetPrefixCache() override { return core_->ResetPrefixCache(); }
  void Drain(int64_t timeout_ms) override {
    core_->Drain(timeout_ms);
    // The ends are with the output thread now; it needs only as long as the callbacks take.
    outputs_.WaitUntilEmpty(std::max<int64_t>(timeout_ms, kMinDeliveryMs));
  }

 private:
  static constexpr int64_t kMinDeliveryMs = 5000;

  base::Status Prepare(GenerateRequest& request) const;
  std::vector<CoreRequest> MakeSequences(GenerateRequest& request, std::shared_ptr<const SamplingParams> params,
                                         int64_t arrival_us, int64_t deadline_us);

  EngineParts parts_;
  base::MetricsRegistry registry_;
  EngineMetrics metrics_;
  const uint64_t seed_base_;
  std::atomic<uint64_t> num_seeds_{0};
  std::atomic<uint64_t> next_id_{1};  // of handles and sequences alike
  OutputProcessor outputs_;
  std::unique_ptr<EngineCore> core_;
};

// Checks, then everything that callers leave to the engine.
base::Status Frontend::Prepare(GenerateRequest& request) const {
  SamplingParams& params = request.params;
  const int64_t max_model_len = parts_.info.max_model_len;
  if (request.timeout_s && !(*request.timeout_s >= 0 && *request.timeout_s <= base::kMaxRequestTimeoutSeconds)) {
    return Refuse("timeout must be in 0 .. ", base::kMaxRequestTimeoutSeconds, " seconds, got ",
                  base::PyRepr(*request.timeout_s), ". (parameter=timeout, value=", base::PyRepr(*request.timeout_s),
                  ")");
  }
  if (!request.on_output) return Refuse("a request needs a callback for its outputs");
  base::Status status = ValidateSamplingParams(params, parts_.info.vocab_size, parts_.config.max_logprobs);
  if (!status) return status;
  status = CheckPrompt(request.prompt_token_ids, max_model_len, parts_.info.vocab_size);
  if (!status) return status;
  const int64_t prompt_tokens = static_cast<int64_t>(request.prompt_token_ids.size());
  if (prompt_tokens * params.n > base::kMaxRequestTokens) {
    return Refuse("n=", params.n, " choices of a prompt of ", prompt_tokens, " tokens are more than ",
                  base::kMaxRequestTokens, " prompt tokens together; reduce n or the prompt.");
  }
  if (!params.max_tokens) {
    params.max_tokens = max_model_len - prompt_tokens;
    if (params.min_tokens > *params.max_tokens) {
      return Refuse("min_tokens must be less than or equal to max_tokens=", *params.max_tokens, ", got ",
                    params.min_tokens, ".");
    }
  }
  AddEndTokens(params, parts_.tokenizer->eos_id(), parts_.defaults.extra_eos_token_ids);
  try {
    return TokenizeBadWords(params, *parts_.tokenizer);
  } catch (const base::Exception& error) {
    return error.error();
  }
}

std::vector<CoreRequest> Frontend::MakeSequences(GenerateRequest& request, std::shared_ptr<const SamplingParams> params,
                                                 int64_t arrival_us, int64_t deadline_us) {
  std::vector<CoreRequest> sequences;
  for (int i = 0; i < params->n; ++i) {
    const uint64_t seed = params->seed ? static_cast<uint64_t>(*params->seed) + static_cast<uint64_t>(i)
                                       : Scramble(seed_base_ + num_seeds_.fetch_add(1));
    sequences.push_back({.id = next_id_.fetch_add(1),
                         .prompt_token_ids = request.prompt_token_ids,
                         .params = params,
                         .seed = seed,
                         .cache_salt = request.cache_salt,
                         .priority = request.priority,
                         .arrival_us = arrival_us,
                         .deadline_us = deadline_us});
  }
  return sequences;
}

base::Result<uint64_t> Frontend::Submit(GenerateRequest request) {
  const int64_t arrival_us = NowUs();
  if (base::Status status = Prepare(request); !status) return status.error();
  const double timeout_s = request.timeout_s.value_or(parts_.config.request_timeout_s);
  const int64_t deadline_us = timeout_s > 0 ? arrival_us + static_cast<int64_t>(timeout_s * 1e6) : 0;
  const auto params = std::make_shared<const SamplingParams>(std::move(request.params));
  std::vector<CoreRequest> sequences = MakeSequences(request, params, arrival_us, deadline_us);
  const uint64_t handle = next_id_.fetch_add(1);
  OutputProcessor::NewRequest added = {.handle = handle,
                                       .params = params,
                                       .prompt_token_ids = std::move(request.prompt_token_ids),
                                       .arrival_us = arrival_us,
                                       .on_output = std::move(request.on_output)};
  for (const CoreRequest& sequence : sequences) added.sequences.push_back(sequence.id);
  outputs_.Add(std::move(added));  // first: the core may report at once
  base::Status status = core_->Add(std::move(sequences));
  if (status) return handle;
  outputs_.Remove(handle);
  return status.error();
}

}  // namespace

std::unique_ptr<LlmEngine> MakeLlmEngine(EngineParts parts) {
  CHECK(parts.tokenizer && parts.make_core, "an engine lacks a part");
  return std::make_unique<Frontend>(std::move(parts));
}

}  // namespace vllm
