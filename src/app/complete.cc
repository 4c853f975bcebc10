// vllm complete MODEL [PROMPT]: goes on from a text, streaming to standard output.
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "app/commands.h"
#include "app/interrupt.h"
#include "app/session.h"
#include "app/text_input.h"
#include "base/strings.h"
#include "text/tokenizer/tokenizer.h"

namespace vllm {
namespace {

constexpr int64_t kDefaultTokens = 128;

std::string PromptOf(const CommandLine& line) {
  if (!line.operands.empty()) return line.operands[0];
  for (const char* name : {"prompt", "quick"}) {
    if (const auto prompt = line.options.FindString(name)) return *prompt;
  }
  if (const auto file = line.options.FindString("file")) return ReadTextFile(*file);
  if (!::isatty(STDIN_FILENO)) return ReadStandardInput();
  base::Throw(base::ErrorCode::kInvalidArgument,
              "vllm complete: no text given; vllm complete MODEL \"Once upon a time\"");
}

}  // namespace

int RunComplete(const CommandLine& line) {
  const std::string prompt = PromptOf(line);
  constexpr std::pair<std::string_view, std::string_view> kDefaults[] = {{"max_num_seqs", "1"}};
  const auto engine = OpenEngine(line, kDefaults);
  GenerateRequest request;
  request.prompt_token_ids = engine->tokenizer().Encode(prompt);
  request.params = SamplingFromOptions(line.options, engine->defaults());
  if (!line.options.Has("max_tokens")) {
    const int64_t room = engine->info().max_model_len - static_cast<int64_t>(request.prompt_token_ids.size());
    request.params.max_tokens = std::clamp<int64_t>(room, 1, kDefaultTokens);
  }
  CatchInterrupts();
  std::fwrite(prompt.data(), 1, prompt.size(), stdout);
  std::fflush(stdout);
  bool closed = false;  // the reader of our output has gone
  const base::Result<Answer> answer = Generate(
      *engine, std::move(request),
      [&](std::string_view text) {
        closed = std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0;
      },
      [&] { return closed || InterruptCount() > 0; });
  std::fputc('\n', stdout);
  if (!answer.ok()) throw base::Exception(answer.error());
  if (answer->error) throw base::Exception(*answer->error);
  return 0;
}

}  // namespace vllm
