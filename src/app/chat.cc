// vllm chat MODEL: a dialogue on the terminal. Answers stream; Ctrl-C stops one, twice quits.
#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/interrupt.h"
#include "app/session.h"
#include "app/text_input.h"
#include "base/limits.h"
#include "base/strings.h"
#include "text/template/chat_template.h"
#include "text/tokenizer/tokenizer.h"

namespace vllm {
namespace {

using base::ErrorCode;

// Lines of standard input; a signal ends the wait.
class LineReader {
 public:
  enum class End { kLine, kClosed, kInterrupted };

  End Read(std::string* line) {
    const int seen = InterruptCount();
    while (true) {
      if (const size_t at = held_.find('\n'); at != std::string::npos) {
        *line = held_.substr(0, at);
        held_.erase(0, at + 1);
        return End::kLine;
      }
      if (InterruptCount() != seen) return End::kInterrupted;
      if (closed_) {
        *line = std::move(held_);
        held_.clear();
        return line->empty() ? End::kClosed : End::kLine;
      }
      Fill();
    }
  }

 private:
  void Fill() {
    pollfd input = {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    // Bounded, as a signal may come between the check and the wait.
    if (::poll(&input, 1, 200) <= 0) return;
    char buffer[4096];
    const ssize_t count = ::read(STDIN_FILENO, buffer, sizeof buffer);
    if (count == 0) closed_ = true;
    if (count > 0) held_.append(buffer, static_cast<size_t>(count));
    if (held_.size() > base::kMaxTextFileBytes)
      base::Throw(ErrorCode::kInvalidArgument, "standard input: the line is too long");
  }

  std::string held_;
  bool closed_ = false;
};

class Dialogue {
 public:
  Dialogue(LlmEngine& engine, const CommandLine& line) : engine_(engine), options_(line.options) { Clear(); }

  void Clear() {
    messages_ = base::Json::array();
    if (const auto system = options_.FindString("system_prompt")) Say("system", *system);
  }

  // One question and its streamed answer. False when the answer was stopped.
  bool Ask(const std::string& question) {
    Say("user", question);
    const base::Result<std::string> prompt = engine_.chat_template()->Render({.messages = messages_});
    if (!prompt.ok()) return Refused(prompt.error());
    GenerateRequest request;
    request.prompt_token_ids = engine_.tokenizer().Encode(*prompt, {.add_special_tokens = false});
    request.params = SamplingFromOptions(options_, engine_.defaults());
    const int seen = InterruptCount();
    const base::Result<Answer> answer = Generate(
        engine_, std::move(request),
        [](std::string_view text) {
          std::fwrite(text.data(), 1, text.size(), stdout);
          std::fflush(stdout);
        },
        [&] { return InterruptCount() != seen; });
    std::fputc('\n', stdout);
    if (!answer.ok()) return Refused(answer.error());
    if (answer->error) return Refused(*answer->error);
    if (answer->finish == FinishReason::kLength) std::fputs("(the answer was cut at its length limit)\n", stderr);
    Say("assistant", answer->text);
    return answer->finish.has_value();
  }

  bool failed() const { return failed_; }

 private:
  void Say(const char* role, const std::string& content) {
    base::Json message = base::Json::object();
    message["role"] = role;
    message["content"] = base::ReplaceInvalidUtf8(content);
    messages_.push_back(std::move(message));
  }

  // The question goes away again, so that the dialogue can go on.
  bool Refused(const base::Error& error) {
    std::fprintf(stderr, "vllm: %s (/clear starts anew)\n", error.message.c_str());
    messages_.erase(messages_.size() - 1);
    failed_ = true;
    return true;
  }

  LlmEngine& engine_;
  const base::Options& options_;
  base::Json messages_;
  bool failed_ = false;
};

int RunDialogue(Dialogue& dialogue) {
  const bool terminal = ::isatty(STDIN_FILENO);
  if (terminal) std::fputs("Ctrl-C stops an answer, twice quits; /clear starts anew, /quit quits.\n", stderr);
  LineReader reader;
  bool interrupted = false;  // the last thing that happened was a Ctrl-C
  std::string line;
  while (true) {
    if (terminal) {
      std::fputs("> ", stdout);
      std::fflush(stdout);
    }
    const LineReader::End end = reader.Read(&line);
    if (end == LineReader::End::kClosed) break;
    if (end == LineReader::End::kInterrupted) {
      if (interrupted) break;
      interrupted = true;
      std::fputs("\n(Ctrl-C again quits)\n", stderr);
      continue;
    }
    interrupted = false;
    if (line == "/quit" || line == "/exit") break;
    if (line == "/clear") {
      dialogue.Clear();
    } else if (line.find_first_not_of(" \t\r") != std::string::npos) {
      interrupted = !dialogue.Ask(line);
    }
  }
  if (terminal) std::fputc('\n', stdout);
  return !terminal && dialogue.failed() ? 1 : 0;
}

}  // namespace

int RunChat(const CommandLine& line) {
  constexpr std::pair<std::string_view, std::string_view> kDefaults[] = {{"max_num_seqs", "1"}};
  const auto engine = OpenEngine(line, kDefaults);
  if (!engine->chat_template()) {
    base::Throw(ErrorCode::kUnsupported, line.options.String("model", ""),
                ": has no chat template; give one with --chat-template FILE, or use vllm complete");
  }
  CatchInterrupts();
  Dialogue dialogue(*engine, line);
  for (const char* name : {"prompt", "quick"}) {
    if (const auto question = line.options.FindString(name))
      return dialogue.Ask(*question) && !dialogue.failed() ? 0 : 1;
  }
  if (const auto file = line.options.FindString("file"))
    return dialogue.Ask(ReadTextFile(*file)) && !dialogue.failed() ? 0 : 1;
  return RunDialogue(dialogue);
}

}  // namespace vllm
