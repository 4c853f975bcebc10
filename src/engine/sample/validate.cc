// ValidateSamplingParams: vLLM's checks in vLLM's order, with its messages.
#include <algorithm>
#include <cmath>
#include <set>

#include "base/limits.h"
#include "base/py_text.h"
#include "engine/llm_engine.h"

namespace vllm {
namespace {

constexpr double kMinTemperature = 0.01;

template <class... Parts>
base::Status Refuse(const Parts&... parts) {
  return base::MakeError(base::ErrorCode::kInvalidArgument, parts...);
}

// With the parameter and value that vLLM appends; the HTTP edge reads "param" from there.
template <class Value>
base::Status RefuseField(std::string_view field, const Value& value, std::string_view message) {
  return Refuse(message, " (parameter=", field, ", value=", value, ")");
}

template <class T>
void RemoveRepeats(std::vector<T>& values) {
  std::set<T> seen;
  std::erase_if(values, [&](const T& value) { return !seen.insert(value).second; });
}

base::Status CheckNumbers(const SamplingParams& p) {
  if (p.n < 1) return Refuse("n must be at least 1, got ", p.n, ".");
  if (p.n > base::kMaxSequencesPerRequest) {
    return Refuse("n must be at most ", base::kMaxSequencesPerRequest, ", got ", p.n, ".");
  }
  if (!(-2 <= p.presence_penalty && p.presence_penalty <= 2)) {
    return Refuse("presence_penalty must be in [-2, 2], got ", base::PyRepr(p.presence_penalty), ".");
  }
  if (!(-2 <= p.frequency_penalty && p.frequency_penalty <= 2)) {
    return Refuse("frequency_penalty must be in [-2, 2], got ", base::PyRepr(p.frequency_penalty), ".");
  }
  if (!std::isfinite(p.repetition_penalty)) {
    return Refuse("repetition_penalty must be a finite number, got ", base::PyRepr(p.repetition_penalty), ".");
  }
  if (p.repetition_penalty <= 0) {
    return Refuse("repetition_penalty must be greater than zero, got ", base::PyRepr(p.repetition_penalty), ".");
  }
  const std::string temperature = base::PyRepr(p.temperature);
  const auto refuse_temperature = [&](std::string_view rule) {
    return RefuseField("temperature", temperature,
                       base::StrCat("temperature must be ", rule, ", got ", temperature, "."));
  };
  if (!std::isfinite(p.temperature)) return refuse_temperature("a finite number");
  if (p.temperature < 0) return refuse_temperature("non-negative");
  if (p.temperature > 2) return refuse_temperature("in [0, 2]");
  if (!(0 < p.top_p && p.top_p <= 1)) {
    const std::string top_p = base::PyRepr(p.top_p);
    return RefuseField("top_p", top_p, base::StrCat("top_p must be in (0, 1], got ", top_p, "."));
  }
  if (p.top_k < -1) return Refuse("top_k must be 0 (disable), or at least 1, got ", p.top_k, ".");
  if (!(0 <= p.min_p && p.min_p <= 1)) return Refuse("min_p must be in [0, 1], got ", base::PyRepr(p.min_p), ".");
  return base::Ok();
}

base::Status CheckLengths(const SamplingParams& p) {
  if (p.max_tokens && *p.max_tokens < 1) {
    return RefuseField("max_tokens", *p.max_tokens,
                       base::StrCat("max_tokens must be at least 1, got ", *p.max_tokens, "."));
  }
  if (p.min_tokens < 0) return Refuse("min_tokens must be greater than or equal to 0, got ", p.min_tokens, ".");
  if (p.max_tokens && p.min_tokens > *p.max_tokens) {
    return Refuse("min_tokens must be less than or equal to max_tokens=", *p.max_tokens, ", got ", p.min_tokens, ".");
  }
  const auto negative = [](const std::optional<int>& count) { return count && *count < -1; };
  if (negative(p.logprobs)) {
    return RefuseField("logprobs", *p.logprobs,
                       base::StrCat("logprobs must be non-negative or -1, got ", *p.logprobs, "."));
  }
  if (negative(p.prompt_logprobs)) {
    return RefuseField("prompt_logprobs", *p.prompt_logprobs,
                       base::StrCat("prompt_logprobs must be non-negative or -1, got ", *p.prompt_logprobs, "."));
  }
  return base::Ok();
}

base::Status CheckTexts(const SamplingParams& p) {
  const auto empty = [](const std::string& text) { return text.empty(); };
  if (std::any_of(p.stop.begin(), p.stop.end(), empty)) return Refuse("stop cannot contain an empty string.");
  if (!p.stop.empty() && !p.detokenize) {
    return Refuse("stop strings are only supported when detokenize is True. Set detokenize=True to use stop.");
  }
  if (p.stop.size() > base::kMaxStopStrings) {
    return Refuse("Too many stop strings: ", p.stop.size(), ". The max size is ", base::kMaxStopStrings, ".");
  }
  if (std::any_of(p.bad_words.begin(), p.bad_words.end(), empty)) {
    return Refuse("bad_words cannot contain an empty string. Got bad_words=",
                  base::PyRepr(std::span<const std::string>(p.bad_words)));
  }
  return base::Ok();
}

base::Status CheckLogprobCounts(const SamplingParams& p, int64_t vocab_size, int max_logprobs) {
  const int64_t most = max_logprobs == -1 ? vocab_size : max_logprobs;
  const auto check = [&](std::string_view what, std::string_view field, std::optional<int> asked) -> base::Status {
    const int64_t count = asked.value_or(0) == -1 ? vocab_size : asked.value_or(0);
    if (count <= most) return base::Ok();
    return RefuseField(
        field, count,
        base::StrCat("Requested ", what, " logprobs of ", count, ", which is greater than max allowed: ", most));
  };
  if (base::Status status = check("sample", "logprobs", p.logprobs); !status) return status;
  const int64_t ids = static_cast<int64_t>(p.logprob_token_ids.size());
  if (ids > base::kMaxLogprobTokenIds) {
    return RefuseField("logprob_token_ids", ids,
                       base::StrCat("Requested logprob_token_ids of length ", ids,
                                    ", which is greater than max allowed: ", base::kMaxLogprobTokenIds));
  }
  return check("prompt", "prompt_logprobs", p.prompt_logprobs);
}

std::vector<int32_t> Outside(std::span<const int32_t> ids, int64_t vocab_size) {
  std::vector<int32_t> outside;
  std::copy_if(ids.begin(), ids.end(), std::back_inserter(outside),
               [&](int32_t id) { return id < 0 || id >= vocab_size; });
  return outside;
}

base::Status CheckIds(std::string_view field, std::span<const int32_t> ids, int64_t vocab_size) {
  const std::vector<int32_t> outside = Outside(ids, vocab_size);
  if (outside.empty()) return base::Ok();
  const std::string listed = base::PyRepr(std::span<const int32_t>(outside));
  return RefuseField(field, listed,
                     base::StrCat("token_id(s) ", listed, " in ", field,
                                  " contain out-of-vocab token ids. Vocabulary size: ", vocab_size));
}

base::Status CheckTokenLists(const SamplingParams& p, int64_t vocab_size) {
  if (base::Status status = CheckIds("logprob_token_ids", p.logprob_token_ids, vocab_size); !status) return status;
  const int ids = static_cast<int>(p.logprob_token_ids.size());
  if (ids > 0 && p.logprobs && *p.logprobs != ids) {
    return RefuseField("logprob_token_ids", ids,
                       base::StrCat("When both logprobs and logprob_token_ids are set, logprobs must equal "
                                    "len(logprob_token_ids). Got logprobs=",
                                    *p.logprobs, ", len(logprob_token_ids)=", ids, "."));
  }
  std::vector<int32_t> biased;
  for (const auto& [id, bias] : p.logit_bias) biased.push_back(id);
  if (base::Status status = CheckIds("logit_bias", biased, vocab_size); !status) return status;
  if (base::Status status = CheckIds("stop_token_ids", p.stop_token_ids, vocab_size); !status) return status;
  if (p.allowed_token_ids) {
    const std::span<const int32_t> allowed = *p.allowed_token_ids;
    if (allowed.empty()) {
      return RefuseField("allowed_token_ids", "[]", "allowed_token_ids is not None and empty!");
    }
    const std::vector<int32_t> outside = Outside(allowed, vocab_size);
    if (!outside.empty()) {
      return RefuseField("allowed_token_ids", base::PyRepr(std::span<const int32_t>(outside)),
                         "allowed_token_ids contains out-of-vocab token id!");
    }
    if (allowed.size() > base::kMaxAllowedTokenIds) {
      return Refuse("Too many allowed token IDs: ", allowed.size(), ". The max size is ", base::kMaxAllowedTokenIds,
                    ".");
    }
  }
  if (p.logit_bias.size() > base::kMaxLogitBiasTokens) {
    return Refuse("Too many logit bias tokens: ", p.logit_bias.size(), ". The max size is ", base::kMaxLogitBiasTokens,
                  ".");
  }
  if (p.stop_token_ids.size() > base::kMaxStopTokenIds) {
    return Refuse("Too many stop tokens: ", p.stop_token_ids.size(), ". The max size is ", base::kMaxStopTokenIds, ".");
  }
  return base::Ok();
}

// The derived fields, as vLLM's post-init sets them.
void Normalize(SamplingParams& p) {
  if (p.temperature > 0 && p.temperature < kMinTemperature) p.temperature = kMinTemperature;
  if (p.seed == -1) p.seed.reset();
  if (p.top_k == -1) p.top_k = 0;
  RemoveRepeats(p.stop_token_ids);
  RemoveRepeats(p.bad_words);
  // NaN clamps to the lower bound, as Python's max(-100.0, nan) does.
  for (auto& [id, bias] : p.logit_bias) bias = bias >= -100 ? std::min(bias, 100.0f) : -100.0f;
  if (!p.skip_reading_prefix_cache) p.skip_reading_prefix_cache = p.prompt_logprobs.has_value();
  p.all_stop_token_ids = p.stop_token_ids;
  if (!p.greedy()) return;
  p.top_p = 1;
  p.top_k = 0;
  p.min_p = 0;
}

}  // namespace

base::Status ValidateSamplingParams(SamplingParams& params, int64_t vocab_size, int max_logprobs) {
  if (base::Status status = CheckNumbers(params); !status) return status;
  if (base::Status status = CheckLengths(params); !status) return status;
  if (base::Status status = CheckTexts(params); !status) return status;
  if (params.temperature == 0 && params.n > 1) {
    return Refuse("n must be 1 when using greedy sampling, got ", params.n, ".");
  }
  if (base::Status status = CheckLogprobCounts(params, vocab_size, max_logprobs); !status) return status;
  if (base::Status status = CheckTokenLists(params, vocab_size); !status) return status;
  Normalize(params);
  return base::Ok();
}

}  // namespace vllm
