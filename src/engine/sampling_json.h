// Sampling settings from a client's JSON object, with the model's defaults: the same for the server and the C ABI.
#pragma once
#include "base/json_fields.h"
#include "engine/llm_engine.h"

namespace vllm {

// Reads every SamplingParams field but max_tokens, logprobs and prompt_logprobs, whose meaning differs by endpoint.
// Mistakes are noted in `fields`.
SamplingParams ReadSamplingParams(base::JsonFields& fields, const GenerationDefaults& defaults);

}  // namespace vllm
