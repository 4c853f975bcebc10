// The texts of --help and --version, and the flag and variable tables for the documentation.
#include "app/help.h"

#include <algorithm>

#include "app/environment.h"
#include "base/strings.h"
#include "base/version.h"

namespace vllm {
namespace {

using base::StrCat;

constexpr std::string_view kOverview =
    R"(vllm: loads a language model and serves it (OpenAI API), talks to it, measures it.

  vllm serve MODEL             HTTP server on 127.0.0.1:8000
  vllm chat MODEL              dialogue on this terminal
  vllm complete MODEL PROMPT   goes on from a text
  vllm bench latency MODEL     time of a batch
  vllm bench throughput MODEL  tokens a second
  vllm bench serve             latencies of a server under load
  vllm perplexity FILE -m MODEL
  vllm inspect MODEL           what is in a model, and which kernels run it

MODEL is a GGUF file, a folder with safetensors, or a hub name that is in the local cache.
  vllm COMMAND --help          its flags; --help=GROUP, --help=FLAG, --help=all for more
  vllm --version
)";

std::string Usage(Command command) {
  switch (command) {
    case kComplete:
      return "vllm complete MODEL [PROMPT] [flags]\n";
    case kPerplexity:
      return "vllm perplexity FILE -m MODEL [flags]\n";
    case kBenchServe:
      return "vllm bench serve [flags]\n";
    default:
      return StrCat("vllm ", CommandName(command), " MODEL [flags]\n");
  }
}

std::string_view ValueName(const Flag& flag) {
  switch (flag.type) {
    case FlagType::kSwitch:
      return "";
    case FlagType::kText:
      return flag.values.empty() || flag.kind != FlagClass::kHonoured ? " TEXT" : "";
    case FlagType::kInt:
      return " N";
    case FlagType::kNumber:
      return " X";
    case FlagType::kSize:
      return " SIZE";
    case FlagType::kList:
      return " TEXT…";
    case FlagType::kJson:
      return " JSON";
  }
  return "";
}

// "  -c, --max-model-len SIZE  help (default: x)", wrapped by the terminal only.
std::string Row(const Flag& flag) {
  std::string names;
  for (const std::string_view alias : base::Split(flag.aliases, ' ')) {
    if (!alias.empty()) names += StrCat(alias, ", ");
  }
  const bool is_on = flag.type == FlagType::kSwitch && flag.default_text == "true";
  names += StrCat("--", is_on ? "[no-]" : "", flag.name, ValueName(flag));
  if (ValueName(flag).empty() && flag.type == FlagType::kText) names += StrCat(" ", flag.values);
  std::string out = StrCat("  ", names);
  out += out.size() < 38 ? std::string(38 - out.size(), ' ') : "\n" + std::string(38, ' ');
  if (flag.kind == FlagClass::kNoEffect) out += "no effect: ";
  if (flag.kind == FlagClass::kRefused) out += "refused: ";
  out += flag.help;
  if (!flag.default_text.empty() && flag.type != FlagType::kSwitch)
    out += StrCat(" (default: ", flag.default_text, ")");
  return out + "\n";
}

std::string Rows(uint16_t command, FlagGroup group, bool all) {
  std::string out;
  for (const Flag& flag : Flags()) {
    if ((flag.commands & command) && flag.group == group && (all || flag.kind == FlagClass::kHonoured))
      out += Row(flag);
  }
  return out.empty() ? out : StrCat("\n", GroupName(group), ":\n", out);
}

constexpr FlagGroup kGroups[] = {
    FlagGroup::kModel, FlagGroup::kServer,   FlagGroup::kGeneration, FlagGroup::kMeasuring, FlagGroup::kScheduler,
    FlagGroup::kCache, FlagGroup::kDevice,   FlagGroup::kKernel,     FlagGroup::kOutput,    FlagGroup::kLora,
    FlagGroup::kMedia, FlagGroup::kParallel, FlagGroup::kLog};

// The flags whose name or help holds the topic.
std::string Search(uint16_t command, std::string_view topic) {
  const std::string wanted = base::OptionName(base::ToLower(topic));
  std::string out;
  for (const Flag& flag : Flags()) {
    if ((flag.commands & command) && OptionOf(flag).find(wanted) != std::string::npos) out += Row(flag);
  }
  return out;
}

std::string_view KindName(FlagClass kind) {
  switch (kind) {
    case FlagClass::kHonoured:
      return "honoured";
    case FlagClass::kNoEffect:
      return "no effect";
    case FlagClass::kRefused:
      return "refused";
  }
  return "";
}

std::string CommandsOf(const Flag& flag) {
  if (flag.commands == kAll) return "all";
  if (flag.commands == kEngine) return StrCat("all but ", CommandName(kBenchServe));
  std::string out;
  for (const Command command : Commands()) {
    if (flag.commands & command) out += StrCat(out.empty() ? "" : ", ", CommandName(command));
  }
  return out;
}

std::string FlagTable() {
  std::string out = "| flag | commands | default | | |\n|---|---|---|---|---|\n";
  for (const FlagGroup group : kGroups) {
    for (const Flag& flag : Flags()) {
      if (flag.group != group) continue;
      std::string names = StrCat("`--", flag.name, "`");
      for (const std::string_view alias : base::Split(flag.aliases, ' ')) {
        if (!alias.empty()) names += StrCat(" `", alias, "`");
      }
      std::string text(flag.help);
      if (flag.kind == FlagClass::kHonoured && !flag.values.empty()) {
        std::string values(flag.values);
        std::replace(values.begin(), values.end(), '|', ' ');
        text += StrCat(" (", values, ")");
      }
      out += StrCat("| ", names, " | ", CommandsOf(flag), " | ", flag.default_text, " | ", KindName(flag.kind), " | ",
                    text, " |\n");
    }
  }
  return out;
}

}  // namespace

std::string HelpText(const CommandLine& line) {
  if (!line.command_given && line.help_topic.empty()) return std::string(kOverview);
  const Command command = line.command;
  const std::string head = StrCat("usage: ", Usage(command));
  if (line.help_topic.empty()) {
    std::string out = head;
    for (const FlagGroup group : kGroups) out += Rows(command, group, /*all=*/false);
    return out + "\nvLLM's other flags are accepted with a note or refused with the reason: --help=all\n";
  }
  if (line.help_topic == "all") {
    std::string out = head;
    for (const FlagGroup group : kGroups) out += Rows(command, group, /*all=*/true);
    return out;
  }
  std::string names;
  for (const FlagGroup group : kGroups) {
    if (base::ToLower(GroupName(group)) == base::ToLower(line.help_topic))
      return head + Rows(command, group, /*all=*/true);
    names += StrCat(names.empty() ? "" : ", ", base::ToLower(GroupName(group)));
  }
  std::string topic = line.help_topic;
  topic.erase(0, std::min(topic.find_first_not_of('-'), topic.size()));
  const std::string found = topic.empty() ? std::string() : Search(command, topic);
  if (!found.empty()) return head + "\n" + found;
  base::Throw(base::ErrorCode::kInvalidArgument, "--help: '", line.help_topic, "' is neither a flag nor a group (all, ",
              names, ")");
}

std::string VersionText(std::string_view isa) {
  return StrCat("vllm.cpp ", base::kVersion, " (vLLM ", base::kVllmVersion, " semantics), ", isa, "\n");
}

std::string MarkdownTable(std::string_view which) {
  if (which == "flags") return FlagTable();
  std::string out = "| variable | effect |\n|---|---|\n";
  for (const Variable& variable : Variables()) {
    out += StrCat("| `", variable.name, "` | ", variable.option.empty() ? "no effect: " : "", variable.help, " |\n");
  }
  return out;
}

}  // namespace vllm
