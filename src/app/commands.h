// The commands of the program. Each takes the parsed command line and returns the process's exit code; errors are
// thrown as base::Exception and printed by main as one line.
#pragma once
#include "app/command_line.h"

namespace vllm {

int RunServe(const CommandLine& line);
int RunChat(const CommandLine& line);
int RunComplete(const CommandLine& line);
int RunLatency(const CommandLine& line);
int RunThroughput(const CommandLine& line);
int RunBenchServe(const CommandLine& line);
int RunPerplexity(const CommandLine& line);
int RunInspect(const CommandLine& line);

}  // namespace vllm
