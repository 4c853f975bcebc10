// Follows vllm/benchmarks/datasets/datasets.py.
#include "app/serving/dataset.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "app/text_input.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/strings.h"

namespace vllm {
namespace {

using base::ErrorCode;
using Random = std::mt19937_64;

constexpr int kMostTries = 10;

int64_t Length(const base::Options& options, std::string_view name, int64_t fallback, int64_t least) {
  const int64_t value = options.Int(name, fallback);
  if (value < least || value > 1 << 24) options.Refuse(name, base::StrCat("is not in ", least, " .. 16777216"));
  return value;
}

int64_t Between(Random& random, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(random);
}

const Tokenizer& NeedTokenizer(const DatasetContext& context, std::string_view name) {
  if (context.tokenizer) return *context.tokenizer;
  base::Throw(ErrorCode::kInvalidArgument, "--dataset-name ", name, ": makes its prompts of tokens; give --tokenizer");
}

// Ids of ordinary tokens, in order.
std::vector<int32_t> OrdinaryIds(const Tokenizer& tokenizer) {
  std::vector<int32_t> ids;
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id)
    if (tokenizer.Exists(id) && !tokenizer.IsSpecial(id) && !tokenizer.IsAdded(id)) ids.push_back(id);
  if (ids.empty()) base::Throw(ErrorCode::kUnsupported, "--tokenizer: it has no ordinary token");
  return ids;
}

struct RangeRatio {
  double input = 0, output = 0;
};

// A number for both, or {"input": x, "output": y}.
RangeRatio ReadRangeRatio(const base::Options& options) {
  const std::string text = options.String("random_range_ratio", "0.0");
  RangeRatio ratio;
  if (const base::Result<double> number = base::ParseDouble(text); number.ok()) {
    ratio = {*number, *number};
  } else {
    const base::Result<base::Json> json = base::ParseJson(text, base::kMaxJsonDepth);
    const auto read = [&](const char* name) {
      if (!json.ok() || !json->is_object() || !json->contains(name) || !(*json)[name].is_number())
        options.Refuse("random_range_ratio", R"(is neither a number nor {"input": X, "output": Y})");
      return (*json)[name].get<double>();
    };
    ratio = {read("input"), read("output")};
  }
  for (const double each : {ratio.input, ratio.output})
    if (!(each >= 0 && each < 1)) options.Refuse("random_range_ratio", "is not in [0, 1)");
  return ratio;
}

int64_t SampleCount(const base::Options& options) { return Length(options, "num_prompts", 1000, 1); }

// Each prompt is a run of neighbours in the vocabulary, behind a prefix that all share.
std::vector<SampleRequest> RandomSamples(const base::Options& options, const DatasetContext& context) {
  const Tokenizer& tokenizer = NeedTokenizer(context, "random");
  Random random(context.seed);
  const int64_t general_input = Length(options, "random_input_len", 1024, 0);
  const int64_t general_output = Length(options, "random_output_len", 128, 1);
  const int64_t input_len = Length(options, "input_len", general_input, 0);
  const int64_t output_len = Length(options, "output_len", general_output, 1);
  const int64_t prefix_len = Length(options, "random_prefix_len", 0, 0);
  const RangeRatio ratio = ReadRangeRatio(options);
  const auto special = static_cast<int64_t>(tokenizer.Encode("").size());
  const auto real_input = static_cast<double>(std::max<int64_t>(0, input_len - special));
  const auto low = static_cast<int64_t>(std::floor(real_input * (1 - ratio.input)));
  const auto high = static_cast<int64_t>(std::ceil(real_input * (1 + ratio.input)));
  const auto outputs = static_cast<double>(output_len);
  const auto output_low = std::max<int64_t>(1, static_cast<int64_t>(std::floor(outputs * (1 - ratio.output))));
  const auto output_high = std::max<int64_t>(1, static_cast<int64_t>(std::ceil(outputs * (1 + ratio.output))));
  if (prefix_len + low < 1)
    base::Throw(ErrorCode::kInvalidArgument, "--random-input-len ", input_len, ": leaves no token beside the ", special,
                " special ones; give a longer one, or --random-prefix-len");
  const std::vector<int32_t> ids = OrdinaryIds(tokenizer);
  const auto count = static_cast<int64_t>(ids.size());
  std::vector<int32_t> prefix;
  for (int64_t i = 0; i < prefix_len; ++i) prefix.push_back(ids[Between(random, 0, count - 1)]);
  if (prefix_len > 0) prefix = FitPrompt(tokenizer, prefix, prefix.size(), random()).ids;
  std::vector<SampleRequest> samples;
  for (int64_t i = 0; i < SampleCount(options); ++i) {
    const int64_t length = Between(random, low, high), offset = Between(random, 0, count - 1);
    std::vector<int32_t> tokens = prefix;
    for (int64_t k = 0; k < length; ++k) tokens.push_back(ids[(offset + i + k) % count]);
    FittedPrompt prompt = FitPrompt(tokenizer, std::move(tokens), static_cast<size_t>(prefix_len + length), random());
    samples.push_back({.prompt = std::move(prompt.text),
                       .prompt_len = static_cast<int64_t>(prompt.ids.size()),
                       .output_len = Between(random, output_low, output_high)});
  }
  return samples;
}

// Some prefixes, each with its share of the requests, behind each a suffix of its own.
std::vector<SampleRequest> PrefixRepetition(const base::Options& options, const DatasetContext& context) {
  const Tokenizer& tokenizer = NeedTokenizer(context, "prefix_repetition");
  Random random(context.seed);
  const int64_t prefix_len = Length(options, "prefix_repetition_prefix_len", 256, 0);
  const int64_t suffix_len = Length(options, "prefix_repetition_suffix_len", 256, 0);
  const int64_t prefixes = Length(options, "prefix_repetition_num_prefixes", 10, 1);
  const int64_t own_output = Length(options, "prefix_repetition_output_len", 128, 1);
  const int64_t output_len = Length(options, "output_len", own_output, 1);
  const int64_t each = SampleCount(options) / prefixes;
  if (each == 0)
    base::Throw(ErrorCode::kInvalidArgument, "--num-prompts ", SampleCount(options), ": is less than the ", prefixes,
                " of --prefix-repetition-num-prefixes");
  if (prefix_len + suffix_len < 1)
    base::Throw(ErrorCode::kInvalidArgument, "--prefix-repetition-suffix-len 0: with no prefix the prompts are empty");
  const std::vector<int32_t> ids = OrdinaryIds(tokenizer);
  const auto exactly = [&](int64_t length) {
    std::vector<int32_t> tokens;
    for (int64_t i = 0; i < length; ++i)
      tokens.push_back(ids[Between(random, 0, static_cast<int64_t>(ids.size()) - 1)]);
    return length == 0 ? tokens : FitPrompt(tokenizer, tokens, tokens.size(), random()).ids;
  };
  std::vector<SampleRequest> samples;
  for (int64_t i = 0; i < prefixes; ++i) {
    const std::vector<int32_t> prefix = exactly(prefix_len);
    for (int64_t k = 0; k < each; ++k) {
      std::vector<int32_t> tokens = prefix;
      const std::vector<int32_t> suffix = exactly(suffix_len);
      tokens.insert(tokens.end(), suffix.begin(), suffix.end());
      samples.push_back({.prompt = tokenizer.Decode(tokens, {.skip_special_tokens = false}),
                         .prompt_len = static_cast<int64_t>(tokens.size()),
                         .output_len = output_len});
    }
  }
  if (!options.Bool("disable_shuffle", false)) std::shuffle(samples.begin(), samples.end(), random);
  return samples;
}

// Repeats some of the requests until there are enough.
void Oversample(const base::Options& options, int64_t wanted, Random& random, std::vector<SampleRequest>& samples) {
  if (samples.empty())
    base::Throw(ErrorCode::kBadFile, options.String("dataset_path", ""), ": has no request that can be used");
  if (options.Bool("no_oversample", false)) return;
  const auto found = static_cast<int64_t>(samples.size());
  while (static_cast<int64_t>(samples.size()) < wanted)
    samples.push_back(SampleRequest(samples[Between(random, 0, found - 1)]));
}

std::string DatasetPath(const base::Options& options, std::string_view name) {
  const auto path = options.FindString("dataset_path");
  if (!path) base::Throw(ErrorCode::kInvalidArgument, "--dataset-name ", name, ": needs --dataset-path FILE");
  return *path;
}

// First turns of conversations whose lengths vLLM takes too.
std::vector<SampleRequest> ShareGpt(const base::Options& options, const DatasetContext& context) {
  const Tokenizer& tokenizer = NeedTokenizer(context, "sharegpt");
  const std::string path = DatasetPath(options, "sharegpt");
  const base::Json file = base::Json::parse(ReadTextFile(path), nullptr, /*allow_exceptions=*/false);
  if (!file.is_array()) base::Throw(ErrorCode::kBadFile, path, ": is no JSON list of conversations");
  Random random(context.seed);
  std::vector<const base::Json*> entries;
  for (const base::Json& entry : file) {
    if (!entry.is_object() || !entry.contains("conversations")) continue;
    const base::Json& turns = entry["conversations"];
    const auto has_value = [&](size_t i) {
      return turns[i].is_object() && turns[i].contains("value") && turns[i]["value"].is_string();
    };
    if (turns.is_array() && turns.size() >= 2 && has_value(0) && has_value(1)) entries.push_back(&entry);
  }
  if (!options.Bool("disable_shuffle", false)) std::shuffle(entries.begin(), entries.end(), random);
  auto output_len = options.FindInt("output_len");
  if (!output_len) output_len = options.FindInt("sharegpt_output_len");
  const int64_t wanted = SampleCount(options);
  std::vector<SampleRequest> samples;
  for (const base::Json* entry : entries) {
    if (static_cast<int64_t>(samples.size()) >= wanted) break;
    const base::Json& turns = (*entry)["conversations"];
    const auto prompt = turns[0]["value"].get<std::string>();
    const auto prompt_len = static_cast<int64_t>(tokenizer.Encode(prompt).size());
    const int64_t length =
        output_len ? *output_len : static_cast<int64_t>(tokenizer.Encode(turns[1]["value"].get<std::string>()).size());
    if (prompt_len < 4 || (!output_len && length < 4) || prompt_len > 1024 || prompt_len + length > 2048) continue;
    samples.push_back({.prompt = prompt, .prompt_len = prompt_len, .output_len = length});
  }
  Oversample(options, wanted, random, samples);
  return samples;
}

std::string AsChat(const DatasetContext& context, const std::string& prompt, const std::string& origin) {
  if (!context.chat_template)
    base::Throw(ErrorCode::kInvalidArgument, origin, ": the tokenizer has no chat template; give --skip-chat-template");
  const base::Json messages = base::Json::array({{{"role", "user"}, {"content", prompt}}});
  return context.chat_template->Render({.messages = messages}).ValueOrThrow();
}

// Lines of {"prompt": text, "output_tokens": n}.
std::vector<SampleRequest> Custom(const base::Options& options, const DatasetContext& context) {
  const std::string path = DatasetPath(options, "custom"), text = ReadTextFile(path);
  const int64_t own_output = options.Int("custom_output_len", 256), output_len = options.Int("output_len", own_output);
  std::vector<SampleRequest> samples;
  int line_number = 0;
  for (const std::string_view line : base::Split(text, '\n')) {
    ++line_number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const std::string origin = base::StrCat(path, ":", line_number);
    const base::Json item = base::Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!item.is_object() || !item.contains("prompt") || !item["prompt"].is_string())
      base::Throw(ErrorCode::kBadFile, origin, R"(: is no JSON object with a text "prompt")");
    SampleRequest sample{.prompt = item["prompt"].get<std::string>(), .prompt_len = 1, .output_len = output_len};
    if (output_len == -1) {
      if (!item.contains("output_tokens") || !item["output_tokens"].is_number_integer())
        base::Throw(ErrorCode::kBadFile, origin, R"(: has no "output_tokens"; give --custom-output-len N)");
      sample.output_len = item["output_tokens"].get<int64_t>();
    }
    samples.push_back(std::move(sample));
  }
  Random random(context.seed);
  if (!options.Bool("disable_shuffle", false)) std::shuffle(samples.begin(), samples.end(), random);
  int64_t wanted = options.Int("num_prompts", 1000);
  if (wanted <= 0) wanted = static_cast<int64_t>(samples.size());
  if (static_cast<int64_t>(samples.size()) > wanted) samples.resize(wanted);
  for (SampleRequest& sample : samples) {
    if (!context.tokenizer) continue;
    if (!options.Bool("skip_chat_template", false)) sample.prompt = AsChat(context, sample.prompt, path);
    sample.prompt_len = static_cast<int64_t>(context.tokenizer->Encode(sample.prompt).size());
  }
  Oversample(options, wanted, random, samples);
  return samples;
}

}  // namespace

FittedPrompt FitPrompt(const Tokenizer& tokenizer, std::vector<int32_t> ids, size_t length, uint64_t seed) {
  Random random(seed);
  FittedPrompt prompt{.ids = std::move(ids)};
  for (int tries = kMostTries;; --tries) {
    prompt.text = tokenizer.Decode(prompt.ids, {.skip_special_tokens = false});
    prompt.ids = tokenizer.Encode(prompt.text, {.add_special_tokens = false});
    if (tries == 0 || prompt.ids.size() == length) return prompt;
    if (prompt.ids.size() > length) prompt.ids.resize(length);
    while (prompt.ids.size() < length) {
      const auto id = static_cast<int32_t>(Between(random, 0, tokenizer.vocab_size() - 1));
      if (tokenizer.Exists(id) && !tokenizer.IsAdded(id)) prompt.ids.push_back(id);
    }
  }
}

std::vector<SampleRequest> MakeDataset(const base::Options& options, const DatasetContext& context) {
  const std::string name = options.String("dataset_name", "random");
  const bool made = name == "random" || name == "prefix_repetition";
  if (made && options.Has("dataset_path"))
    options.Refuse("dataset_path", base::StrCat("does not go with --dataset-name ", name));
  if (name == "random") return RandomSamples(options, context);
  if (name == "prefix_repetition") return PrefixRepetition(options, context);
  if (name == "sharegpt") return ShareGpt(options, context);
  return Custom(options, context);
}

}  // namespace vllm
