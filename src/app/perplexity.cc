// vllm perplexity FILE: llama.cpp's protocol, so that the two programs' figures compare.
#include "app/perplexity.h"

#include <cmath>
#include <cstdio>

#include "app/commands.h"
#include "app/session.h"
#include "app/text_input.h"
#include "base/strings.h"
#include "text/tokenizer/tokenizer.h"

namespace vllm {
namespace {

using base::ErrorCode;

constexpr size_t kInFlight = 4;  // chunks: enough for the next to be scheduled while one runs

// The first chunk position whose token is measured: llama.cpp gives each measured token at least half a window of
// context.
int64_t FirstMeasured(int64_t window) { return window / 2 + 1; }

// `perplexity FILE -m MODEL`, or `perplexity MODEL FILE`.
CommandLine WithModelAndFile(const CommandLine& line, std::string* file) {
  CommandLine out = line;
  std::vector<std::string> words = line.operands;
  if (const auto named = line.options.FindString("file")) words.push_back(*named);
  if (!line.options.Has("model") && words.size() == 2) {
    out.options.Set("model", words[0], base::OptionSource::kCommandLine, "model");
    words.erase(words.begin());
  }
  if (words.size() != 1) {
    base::Throw(ErrorCode::kInvalidArgument,
                "vllm perplexity: needs one text file and a model: vllm perplexity FILE -m MODEL");
  }
  *file = words[0];
  return out;
}

}  // namespace

void PerplexitySum::Add(double logprob) {
  nll -= logprob;
  nll_squared += logprob * logprob;
  ++count;
}

double PerplexitySum::perplexity() const { return std::exp(nll / static_cast<double>(count)); }

double PerplexitySum::error() const {
  if (count < 2) return 0;
  const double mean = nll / static_cast<double>(count);
  const double variance = nll_squared / static_cast<double>(count) - mean * mean;
  return variance > 0 ? std::sqrt(variance / static_cast<double>(count - 1)) * perplexity() : 0;
}

std::vector<std::vector<int32_t>> PerplexityChunks(std::span<const int32_t> tokens, int64_t window, int32_t bos) {
  std::vector<std::vector<int32_t>> chunks;
  for (size_t at = 0; at + window <= tokens.size(); at += window) {
    chunks.emplace_back(tokens.begin() + at, tokens.begin() + at + window);
    if (bos >= 0) chunks.back()[0] = bos;
  }
  return chunks;
}

int RunPerplexity(const CommandLine& given) {
  std::string file;
  const CommandLine line = WithModelAndFile(given, &file);
  const int64_t window = line.options.Size("window", 512);
  if (window < 4 || window > 1 << 20) line.options.Refuse("window", "is not in 4 .. 1048576");
  const std::string text = ReadTextFile(file);

  const std::string length = base::StrCat(window + 1), seqs = base::StrCat(kInFlight);
  const std::pair<std::string_view, std::string_view> defaults[] = {
      {"enable_prefix_caching", "false"}, {"max_model_len", length}, {"max_num_seqs", seqs}};
  const auto engine = OpenEngine(line, defaults);
  if (window >= engine->info().max_model_len) {
    base::Throw(ErrorCode::kInvalidArgument, "--window ", window, ": must be below the context of ",
                engine->info().max_model_len, " tokens");
  }
  const Tokenizer& tokenizer = engine->tokenizer();
  const std::vector<int32_t> tokens = tokenizer.Encode(text, {.add_special_tokens = true, .parse_special = false});
  const bool bos = tokenizer.adds_bos() && tokenizer.bos_id();
  std::vector<std::vector<int32_t>> chunks = PerplexityChunks(tokens, window, bos ? *tokenizer.bos_id() : -1);
  const int64_t most = line.options.Int("chunks", static_cast<int64_t>(chunks.size()));
  if (most >= 0 && static_cast<size_t>(most) < chunks.size()) chunks.resize(most);
  if (chunks.empty()) {
    base::Throw(ErrorCode::kInvalidArgument, file, ": has ", tokens.size(), " tokens, at least ", window,
                " are needed");
  }
  std::printf("perplexity: %zu tokens, %zu chunks of %lld\n", tokens.size(), chunks.size(),
              static_cast<long long>(window));

  std::vector<GenerateRequest> requests(chunks.size());
  for (size_t i = 0; i < chunks.size(); ++i) {
    requests[i].prompt_token_ids = chunks[i];
    requests[i].params.max_tokens = 1;
    requests[i].params.prompt_logprobs = 0;
    requests[i].params.detokenize = false;
  }
  std::vector<std::vector<double>> measured(chunks.size());
  PerplexitySum sum;
  size_t shown = 0;
  GenerateAll(*engine, std::move(requests), kInFlight, [&](size_t index, Answer answer) {
    CHECK(answer.prompt_logprobs.size() == static_cast<size_t>(window), answer.prompt_logprobs.size(),
          " prompt logprobs");
    for (int64_t at = FirstMeasured(window); at < window; ++at) {
      measured[index].push_back(answer.prompt_logprobs[at]->front().logprob);
    }
    for (; shown < measured.size() && !measured[shown].empty(); ++shown) {  // in the order of the text
      for (const double logprob : measured[shown]) sum.Add(logprob);
      std::printf("[%zu]%.4f,", shown + 1, sum.perplexity());
      std::fflush(stdout);
    }
  });
  std::printf("\nFinal estimate: PPL = %.4f +/- %.5f\n", sum.perplexity(), sum.error());
  return 0;
}

}  // namespace vllm
