// Sampling settings from a client's JSON object.
#include "engine/sampling_json.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>

namespace vllm {
namespace {

void ReadLogitBias(base::JsonFields& fields, SamplingParams& params) {
  const base::Json* bias = fields.Find("logit_bias");
  if (!bias) return;
  if (!bias->is_object()) return fields.Fail("logit_bias", "Input should be a valid dictionary");
  for (const auto& [key, value] : bias->items()) {
    int32_t id = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || end != key.data() + key.size())
      return fields.Fail(
          "logit_bias",
          base::StrCat("Found token_id `", key,
                       "` in logit_bias but token_id must be an integer or string representing an integer"));
    if (!value.is_number())
      return fields.Fail("logit_bias", base::StrCat("logit_bias of token ", id, " should be a valid number"));
    params.logit_bias.emplace_back(id, static_cast<float>(value.get<double>()));
  }
}

int32_t ClampToInt(int64_t value) {
  return static_cast<int32_t>(
      std::clamp<int64_t>(value, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()));
}

}  // namespace

SamplingParams ReadSamplingParams(base::JsonFields& fields, const GenerationDefaults& defaults) {
  SamplingParams params;
  params.n = ClampToInt(fields.Int("n", 1));
  params.presence_penalty = fields.Double("presence_penalty", 0);
  params.frequency_penalty = fields.Double("frequency_penalty", 0);
  params.repetition_penalty = fields.Double("repetition_penalty", defaults.repetition_penalty.value_or(1));
  params.temperature = fields.Double("temperature", defaults.temperature.value_or(1));
  params.top_p = fields.Double("top_p", defaults.top_p.value_or(1));
  params.top_k = ClampToInt(fields.Int("top_k", defaults.top_k.value_or(0)));
  params.min_p = fields.Double("min_p", defaults.min_p.value_or(0));
  params.seed = fields.FindInt("seed");
  params.stop = fields.Strings("stop");
  params.stop_token_ids = fields.FindIds("stop_token_ids").value_or(std::vector<int32_t>());
  params.ignore_eos = fields.Bool("ignore_eos", false);
  params.min_tokens = fields.Int("min_tokens", 0);
  params.logprob_token_ids = fields.FindIds("logprob_token_ids").value_or(std::vector<int32_t>());
  params.skip_special_tokens = fields.Bool("skip_special_tokens", true);
  params.spaces_between_special_tokens = fields.Bool("spaces_between_special_tokens", true);
  params.include_stop_str_in_output = fields.Bool("include_stop_str_in_output", false);
  ReadLogitBias(fields, params);
  params.allowed_token_ids = fields.FindIds("allowed_token_ids");
  params.bad_words = fields.Strings("bad_words");
  return params;
}

}  // namespace vllm
