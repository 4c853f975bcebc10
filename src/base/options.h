// One map of settings: name → text with provenance, read through typed getters. The command line, the configuration
// file, the environment, the C ABI's option keys and the tests fill the same map, so a wrong value is told the same way
// everywhere.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace base {

// Where a value came from; a stronger source wins over a weaker one, whatever the order of Set.
enum class OptionSource { kEnvironment, kConfigFile, kCommandLine, kHost };

// Not thread-safe while it is filled; const use is. Names are those of vLLM's fields ("max_model_len"); '-' reads as
// '_'. Getters throw Exception(kInvalidArgument) naming the origin, the value and what would be accepted.
class Options {
 public:
  // `origin` is how the user wrote the name ("--max-model-len", "serve.yaml: max-model-len"); empty: the name itself.
  void SetList(std::string_view name, std::vector<std::string> values, OptionSource source = OptionSource::kHost,
               std::string origin = {});
  void Set(std::string_view name, std::string value, OptionSource source = OptionSource::kHost,
           std::string origin = {});
  // Adds values to those that the same source gave (a list flag typed twice).
  void Append(std::string_view name, std::vector<std::string> values, OptionSource source, std::string origin);

  bool Has(std::string_view name) const;
  // How the user wrote it, for messages; the name itself when it is absent.
  std::string Origin(std::string_view name) const;
  std::vector<std::string> Names() const;

  std::optional<std::string> FindString(std::string_view name) const;
  std::optional<bool> FindBool(std::string_view name) const;
  std::optional<int64_t> FindInt(std::string_view name) const;
  std::optional<double> FindDouble(std::string_view name) const;
  // Counts and bytes: "4096", "4k" (1000), "4K" (1024), "1.5g", "2GiB", "512MB". As in vLLM, no fraction before K M G
  // T.
  std::optional<int64_t> FindSize(std::string_view name) const;
  // One of `choices`, or an error that lists them.
  std::optional<std::string> FindChoice(std::string_view name, std::span<const std::string_view> choices) const;
  // The values as given; absent: empty.
  std::vector<std::string> List(std::string_view name) const;
  // Depth-bounded JSON; the caller includes nlohmann/json.hpp.
  std::optional<Json> FindJson(std::string_view name) const;

  std::string String(std::string_view name, std::string_view fallback) const;
  bool Bool(std::string_view name, bool fallback) const { return FindBool(name).value_or(fallback); }
  int64_t Int(std::string_view name, int64_t fallback) const { return FindInt(name).value_or(fallback); }
  double Double(std::string_view name, double fallback) const { return FindDouble(name).value_or(fallback); }
  int64_t Size(std::string_view name, int64_t fallback) const { return FindSize(name).value_or(fallback); }

  // Throws for the option `name`: "<origin>: <value> <what>".
  [[noreturn]] void Refuse(std::string_view name, std::string_view what) const;

 private:
  struct Entry {
    std::vector<std::string> values;
    OptionSource source;
    std::string origin;
  };
  const Entry* Find(std::string_view name) const;
  std::map<std::string, Entry, std::less<>> entries_;
};

// "max-model-len" → "max_model_len".
std::string OptionName(std::string_view written);

// The readers behind the getters. Whole text or an error; no leading or trailing blanks.
Result<bool> ParseBool(std::string_view text);
Result<int64_t> ParseInt(std::string_view text);
Result<double> ParseDouble(std::string_view text);
Result<int64_t> ParseSize(std::string_view text);

}  // namespace base
