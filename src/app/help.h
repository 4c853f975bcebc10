// The texts of --help and --version, and the flag and variable tables for the documentation.
#pragma once
#include <string>
#include <string_view>

#include "app/command_line.h"

namespace vllm {

// What `vllm --help`, `vllm serve --help` or `vllm serve --help=TOPIC` prints. Throws base::Exception for an unknown
// topic.
std::string HelpText(const CommandLine& line);
// "vllm.cpp 0.1.0 (vLLM 0.33.0 semantics)" and the instruction sets found.
std::string VersionText(std::string_view isa);
// Markdown tables for docs/: "flags" or "environment".
std::string MarkdownTable(std::string_view which);

}  // namespace vllm
