// The program: picks the command, prints errors as one line, and turns them into exit code 1.
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "app/command_line.h"
#include "app/commands.h"
#include "app/environment.h"
#include "app/help.h"
#include "app/support.h"
#include "base/strings.h"
#include "vt/cpu/isa.h"
#include "vt/ops.h"

namespace vllm {
namespace {

std::string IsaFound() {
  try {
    return std::string(vt::IsaLongName(vt::DetectIsa()));
  } catch (const base::Exception& error) {
    return error.what();
  }
}

int Dispatch(const CommandLine& line) {
  switch (line.command) {
    case kServe:
      return RunServe(line);
    case kChat:
      return RunChat(line);
    case kComplete:
      return RunComplete(line);
    case kLatency:
      return RunLatency(line);
    case kThroughput:
      return RunThroughput(line);
    case kBenchServe:
      return RunBenchServe(line);
    case kPerplexity:
      return RunPerplexity(line);
    case kInspect:
      return RunInspect(line);
    default:
      return 1;
  }
}

void PrintProviderStats() {
  std::fputs("op provider device chosen executed\n", stderr);
  for (const vt::OpProviderStats& row : vt::GetOpProviderStats()) {
    if (row.chosen == 0 && row.executed == 0) continue;
    std::fprintf(stderr, "%s\n",
                 base::StrCat(vt::OpName(row.op), " ", row.provider, " ", vt::DeviceName(row.device), " ", row.chosen,
                              " ", row.executed)
                     .c_str());
  }
}

int Run(const std::vector<std::string>& words) {
  if (words.size() == 2 && words[0] == "--markdown") {  // for tools/tables.py
    std::fputs((words[1] == "support" ? SupportTable() : MarkdownTable(words[1])).c_str(), stdout);
    return 0;
  }
  const CommandLine line = ParseCommandLine(words, ReadEnvironment());
  if (line.action == Action::kHelp) return std::fputs(HelpText(line).c_str(), stdout), 0;
  if (line.action == Action::kVersion) return std::fputs(VersionText(IsaFound()).c_str(), stdout), 0;
  const int code = Dispatch(line);
  if (line.options.Bool("op_provider_stats", false)) PrintProviderStats();
  return code;
}

// One line, whatever the message holds.
int Fail(std::string message) {
  for (char& c : message) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  std::fprintf(stderr, "%s%s\n", message.starts_with("vllm") ? "" : "vllm: ", message.c_str());
  return 1;
}

}  // namespace
}  // namespace vllm

int main(int argc, char** argv) {
  try {
    return vllm::Run(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const std::bad_alloc&) {
    return vllm::Fail("out of memory; a smaller --max-model-len, --max-num-seqs or model needs less");
  } catch (const std::exception& error) {
    return vllm::Fail(error.what());
  }
}
