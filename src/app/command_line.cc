// argv → command, options and notes. Table-driven and ours: vLLM's spellings (-tp, -asc, --json.key=1, --no-x, '_' for
// '-') are outside of what the packaged parsers accept.
#include "app/command_line.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/environment.h"
#include "app/yaml_config.h"
#include "base/limits.h"
#include "base/mapped_file.h"
#include "base/strings.h"

namespace vllm {
namespace {

using base::ErrorCode;
using base::OptionSource;

constexpr std::string_view kCommands = "serve, chat, complete, bench, perplexity, inspect";

// The command that the first words name; consumes them.
Command TakeCommand(std::span<const std::string>* words) {
  const auto take = [&](size_t count, Command command) { return *words = words->subspan(count), command; };
  const std::string& first = words->front();
  if (first == "serve") return take(1, kServe);
  if (first == "chat") return take(1, kChat);
  if (first == "complete") return take(1, kComplete);
  if (first == "perplexity") return take(1, kPerplexity);
  if (first == "inspect") return take(1, kInspect);
  if (first == "bench") {
    const std::string second = words->size() > 1 ? (*words)[1] : std::string();
    if (second == "latency") return take(2, kLatency);
    if (second == "throughput") return take(2, kThroughput);
    if (second == "serve") return take(2, kBenchServe);
    base::Throw(ErrorCode::kInvalidArgument, "vllm bench: '", second, "' is not one of latency, throughput, serve");
  }
  const std::vector<std::string> names = {"serve", "chat", "complete", "bench", "perplexity", "inspect"};
  const std::string near = base::Nearest(first, names);
  base::Throw(ErrorCode::kInvalidArgument, "vllm: '", first, "' is not a command (", kCommands, ")",
              near.empty() ? "" : "; did you mean ", near);
}

bool LooksLikeFlag(const std::string& word) {
  if (word.size() < 2 || word[0] != '-') return false;
  return !base::ParseDouble(word).ok() && !base::ParseSize(word).ok();  // -1, -0.5 are values
}

class Parser {
 public:
  Parser(std::span<const std::string> words, CommandLine* out) : words_(words), out_(*out) {}

  void Run() {
    while (at_ < words_.size()) {
      const std::string& word = words_[at_++];
      if (only_operands_ || !LooksLikeFlag(word)) {
        Operand(word);
      } else if (word == "--") {
        only_operands_ = true;
      } else if (!Builtin(word)) {
        FlagWord(word);
      }
    }
  }

 private:
  void Operand(const std::string& word) {
    // perplexity measures a text: its first word is that file, and a second one makes the first the model.
    const bool model = !out_.options.Has("model") && out_.command != kPerplexity;
    if (model) {
      out_.options.Set("model", word, OptionSource::kCommandLine, "model");
    } else {
      out_.operands.push_back(word);
    }
    const size_t most = out_.command == kPerplexity ? 2 : out_.command == kComplete ? 1 : 0;
    if (out_.operands.size() > most) {
      base::Throw(ErrorCode::kInvalidArgument, "vllm ", CommandName(out_.command), ": '", word,
                  "' is one word too many (quote texts with blanks)");
    }
  }

  bool Builtin(const std::string& word) {
    if (word == "-h" || word == "--help" || word.starts_with("--help=")) {
      out_.action = Action::kHelp;
      if (word.starts_with("--help=")) out_.help_topic = word.substr(7);
      return true;
    }
    if (word == "--version") return out_.action = Action::kVersion, true;
    return false;
  }

  void FlagWord(const std::string& word) {
    const size_t equals = word.starts_with("--") ? word.find('=') : std::string::npos;
    std::string name = word.substr(0, equals);
    std::vector<std::string> values;
    if (equals != std::string::npos) values.push_back(word.substr(equals + 1));
    if (name.size() == 3 && name.starts_with("-O") && name[2] >= '0' && name[2] <= '9') {  // vLLM's -O3
      values.push_back(name.substr(2));
      name = "-O";
    }
    const size_t dot = name.starts_with("--") ? name.find('.') : std::string::npos;
    const std::string path = dot == std::string::npos ? std::string() : name.substr(dot + 1);
    name = name.substr(0, dot);

    bool negated = false;
    const Flag& flag = Known(name, &negated);
    if (dot != std::string::npos && flag.type != FlagType::kJson) {
      base::Throw(ErrorCode::kInvalidArgument, word, ": only JSON flags have keys; use ", name);
    }
    if (negated && !values.empty())
      base::Throw(ErrorCode::kInvalidArgument, name, ": takes no value, not '", values[0], "'");
    if (flag.type == FlagType::kSwitch) {
      if (values.empty()) values.push_back(negated ? "false" : "true");
    } else if (values.empty()) {
      TakeValues(flag, name, &values);
    }
    if (!path.empty()) {
      Dotted(flag, name, path, values[0]);
    } else {
      Store(flag, name, std::move(values));
    }
  }

  const Flag& Known(const std::string& name, bool* negated) {
    const Flag* flag = FindFlag(name, out_.command, negated);
    if (!flag) {
      const std::string near = NearestFlag(name, out_.command);
      base::Throw(ErrorCode::kInvalidArgument, "vllm ", CommandName(out_.command), ": unknown flag '", name, "'",
                  near.empty() ? base::StrCat("; see vllm ", CommandName(out_.command), " --help=all")
                               : base::StrCat("; did you mean ", near, "?"));
    }
    if (!(flag->commands & out_.command)) {
      std::string owners;
      for (const Command command : Commands()) {
        bool unused = false;  // several flags may have the name
        if (FindFlag(name, command, &unused)->commands & command)
          owners += base::StrCat(owners.empty() ? "" : ", ", CommandName(command));
      }
      base::Throw(ErrorCode::kInvalidArgument, "vllm ", CommandName(out_.command), ": ", name,
                  " is a flag of: ", owners);
    }
    return *flag;
  }

  void TakeValues(const Flag& flag, const std::string& name, std::vector<std::string>* values) {
    const bool many = flag.type == FlagType::kList;
    while (at_ < words_.size() && (many || values->empty()) && !LooksLikeFlag(words_[at_])) {
      values->push_back(words_[at_++]);
    }
    if (values->empty()) base::Throw(ErrorCode::kInvalidArgument, name, ": a value is missing");
  }

  void Store(const Flag& flag, const std::string& name, std::vector<std::string> values) {
    CheckFlagValue(flag, values, name);
    if (flag.kind == FlagClass::kNoEffect) {
      Note(flag, name);
    } else if (flag.type == FlagType::kList) {
      out_.options.Append(OptionOf(flag), std::move(values), OptionSource::kCommandLine, name);
    } else {
      out_.options.SetList(OptionOf(flag), std::move(values), OptionSource::kCommandLine, name);
    }
  }

  void Note(const Flag& flag, const std::string& name) {
    out_.notes.push_back(base::StrCat(name, " has no effect: ", flag.help));
  }

  // --flag.a.b=1 sets one key of a JSON flag, --flag.a+=x appends to a list in it.
  void Dotted(const Flag& flag, const std::string& name, std::string path, const std::string& value) {
    if (flag.kind == FlagClass::kNoEffect) return Note(flag, name);
    const bool append = path.ends_with("+");
    if (append) path.pop_back();
    base::Json whole = base::Json::object();
    const std::string option = OptionOf(flag);
    if (out_.options.Has(option)) whole = *out_.options.FindJson(option);
    base::Json* at = &whole;
    for (const std::string_view key : base::Split(path, '.')) {
      if (key.empty() || !(at->is_object() || at->is_null())) {
        base::Throw(ErrorCode::kInvalidArgument, name, ".", path, ": is no path of keys");
      }
      at = &(*at)[std::string(key)];
    }
    const base::Result<base::Json> parsed = base::ParseJson(value, base::kMaxJsonDepth);
    if (append) {
      if (!at->is_array()) *at = base::Json::array();
      for (const std::string_view part : base::Split(value, ',')) at->push_back(std::string(part));
    } else {
      *at = parsed.ok() ? *parsed : base::Json(value);
    }
    Store(flag, name, {base::DumpJson(whole)});
  }

  std::span<const std::string> words_;
  size_t at_ = 0;
  bool only_operands_ = false;
  CommandLine& out_;
};

// The entries of the --config file, as if typed before the command line.
void ApplyConfigFile(const std::string& path, CommandLine* out) {
  const auto file = base::MappedFile::Open(path);
  const std::string_view text(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
  for (const YamlEntry& entry : ParseYamlConfig(text, path)) {
    const std::string origin = base::StrCat(path, ":", entry.line, ": ", entry.key);
    const std::string key = entry.key == "model_tag" ? "model" : entry.key;
    bool negated = false;
    const Flag* flag = FindFlag(base::StrCat("--", key), out->command, &negated);
    if (!flag || negated) {
      const std::string near = NearestFlag(base::StrCat("--", key), out->command);
      base::Throw(ErrorCode::kInvalidArgument, origin, ": is no flag",
                  near.empty() ? "" : base::StrCat("; did you mean ", near.substr(2), "?"));
    }
    // One file may serve several commands: flags of the others are read over.
    if (entry.is_null || !(flag->commands & out->command)) continue;
    CheckFlagValue(*flag, entry.values, origin);
    if (flag->kind == FlagClass::kNoEffect) {
      out->notes.push_back(base::StrCat(origin, " has no effect: ", flag->help));
    } else {
      out->options.SetList(OptionOf(*flag), entry.values, OptionSource::kConfigFile, origin);
    }
  }
}

}  // namespace

CommandLine ParseCommandLine(std::span<const std::string> words, const Environment& environment) {
  CommandLine out;
  if (words.empty() || (words[0].starts_with("-") && words[0] != "-")) {
    out.command_given = false;
    if (words.empty() || words[0] == "-h" || words[0].starts_with("--help")) {
      out.action = Action::kHelp;
      if (!words.empty() && words[0].starts_with("--help=")) out.help_topic = words[0].substr(7);
      return out;
    }
    if (words[0] == "--version" || words[0] == "-v" || words[0] == "-V") return out.action = Action::kVersion, out;
    base::Throw(ErrorCode::kInvalidArgument, "vllm: ", words[0], ": a command comes first (", kCommands, ")");
  }
  out.command = TakeCommand(&words);
  Parser(words, &out).Run();
  if (out.action != Action::kRun) return out;
  if (const auto path = out.options.FindString("config")) ApplyConfigFile(*path, &out);
  for (std::string& note : ApplyEnvironment(environment, &out.options)) out.notes.push_back(std::move(note));
  return out;
}

}  // namespace vllm
