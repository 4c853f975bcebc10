// The environment variables that the program reads: one table; nothing outside src/app looks at the environment.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/command_line.h"

namespace vllm {

struct Variable {
  std::string_view name;
  std::string_view option;  // the option that it fills when no flag does; empty: read and noted as without effect
  std::string_view help;
};

std::span<const Variable> Variables();

// Those variables of the process that the table knows, and unknown ones that begin with VLLM_ or VT_.
Environment ReadEnvironment();
// Fills options from `environment`; returns one note for each variable without effect or unknown.
std::vector<std::string> ApplyEnvironment(const Environment& environment, base::Options* options);

}  // namespace vllm
