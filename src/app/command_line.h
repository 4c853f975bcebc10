// argv → command, options and notes. Knows the flag table, the YAML file of --config and the environment; reads no
// model.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/flags.h"
#include "base/options.h"

namespace vllm {

enum class Action { kRun, kHelp, kVersion };

struct CommandLine {
  Action action = Action::kRun;
  Command command = kServe;
  base::Options options = {};
  std::vector<std::string> operands = {};  // words after the model, if the command takes any
  std::vector<std::string> notes = {};     // one a flag without effect
  std::string help_topic = {};             // --help=TOPIC: a group, a flag, or "all"
  bool command_given = true;               // false: `vllm --help`
};

using Environment = std::vector<std::pair<std::string, std::string>>;

// `words` without the program's name. Reads the file of --config. Throws base::Exception: one line that names the flag,
// its value and the remedy.
CommandLine ParseCommandLine(std::span<const std::string> words, const Environment& environment);

}  // namespace vllm
