// One map of settings: name → text with provenance, read through typed getters.
#include "base/options.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/limits.h"
#include "base/strings.h"

namespace base {
namespace {

Error Bad(std::string_view text, std::string_view what) {
  return MakeError(ErrorCode::kInvalidArgument, "'", text, "' ", what);
}

// The multiplier of a size's suffix, or 0. One letter is vLLM's: lower case decimal, upper case binary.
double Multiplier(std::string_view suffix) {
  if (suffix.empty() || suffix == "B") return 1;
  const size_t power = std::string_view("kmgt").find(ToLower(suffix.substr(0, 1)));
  if (power == std::string_view::npos) return 0;
  const std::string_view rest = suffix.substr(1);
  const bool upper = suffix[0] >= 'A' && suffix[0] <= 'Z';
  const bool binary = rest == "iB" || (rest.empty() && upper);
  if (!binary && !rest.empty() && rest != "B") return 0;
  return std::pow(binary ? 1024.0 : 1000.0, static_cast<double>(power + 1));
}

}  // namespace

std::string OptionName(std::string_view written) {
  std::string name(written);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

Result<bool> ParseBool(std::string_view text) {
  const std::string lower = ToLower(text);
  for (const char* yes : {"true", "1", "yes", "on"}) {
    if (lower == yes) return true;
  }
  for (const char* no : {"false", "0", "no", "off"}) {
    if (lower == no) return false;
  }
  return Bad(text, "is neither true nor false");
}

Result<int64_t> ParseInt(std::string_view text) {
  int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc::result_out_of_range) return Bad(text, "does not fit 64 bits");
  if (error != std::errc() || stop != end) return Bad(text, "is not a whole number");
  return value;
}

Result<double> ParseDouble(std::string_view text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || !std::isfinite(value)) return Bad(text, "is not a finite number");
  return value;
}

Result<int64_t> ParseSize(std::string_view text) {
  const size_t digits = std::min(text.find_first_not_of("-0123456789."), text.size());
  const double unit = Multiplier(text.substr(digits));
  if (unit == 0 || digits == 0) return Bad(text, "is not a size (as 4096, 4k, 4K, 2GiB)");
  if (unit == 1) {
    const Result<int64_t> whole = ParseInt(text.substr(0, digits));
    return whole.ok() ? whole : Result<int64_t>(Bad(text, "is not a size (as 4096, 4k, 4K, 2GiB)"));
  }
  const bool one_capital = text.size() == digits + 1 && text[digits] >= 'A' && text[digits] <= 'Z';
  if (one_capital && text.find('.') != std::string_view::npos) {
    return Bad(text, "has a fraction before a binary suffix (K M G T count in 1024s; k m g t in 1000s)");
  }
  const Result<double> number = ParseDouble(text.substr(0, digits));
  if (!number.ok()) return Bad(text, "is not a size (as 4096, 4k, 4K, 2GiB)");
  const double size = *number * unit;
  if (std::abs(size) >= 9.2e18) return Bad(text, "does not fit 64 bits");
  return static_cast<int64_t>(size);
}

void Options::SetList(std::string_view name, std::vector<std::string> values, OptionSource source, std::string origin) {
  const std::string key = OptionName(name);
  const auto found = entries_.find(key);
  if (found != entries_.end() && found->second.source > source) return;
  entries_.insert_or_assign(key, Entry{std::move(values), source, origin.empty() ? key : std::move(origin)});
}

void Options::Set(std::string_view name, std::string value, OptionSource source, std::string origin) {
  SetList(name, std::vector<std::string>{std::move(value)}, source, std::move(origin));
}

void Options::Append(std::string_view name, std::vector<std::string> values, OptionSource source, std::string origin) {
  const auto found = entries_.find(OptionName(name));
  if (found == entries_.end() || found->second.source != source) {
    SetList(name, std::move(values), source, std::move(origin));
    return;
  }
  found->second.values.insert(found->second.values.end(), values.begin(), values.end());
}

const Options::Entry* Options::Find(std::string_view name) const {
  const auto found = name.find('-') == std::string_view::npos ? entries_.find(name) : entries_.find(OptionName(name));
  return found == entries_.end() ? nullptr : &found->second;
}

bool Options::Has(std::string_view name) const { return Find(name) != nullptr; }

std::string Options::Origin(std::string_view name) const {
  const Entry* entry = Find(name);
  return entry ? entry->origin : std::string(name);
}

std::vector<std::string> Options::Names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_) names.push_back(name);
  return names;
}

void Options::Refuse(std::string_view name, std::string_view what) const {
  const Entry* entry = Find(name);
  Throw(ErrorCode::kInvalidArgument, Origin(name), ": '", entry ? Join(entry->values, " ") : "", "' ", what);
}

std::optional<std::string> Options::FindString(std::string_view name) const {
  const Entry* entry = Find(name);
  if (!entry) return std::nullopt;
  if (entry->values.size() != 1) Refuse(name, "must be one value");
  return entry->values[0];
}

namespace {

// Reads one value by `parse`; its error gets the option's origin in front.
template <class T>
std::optional<T> Parsed(const Options& options, std::string_view name, Result<T> (*parse)(std::string_view)) {
  const std::optional<std::string> text = options.FindString(name);
  if (!text) return std::nullopt;
  Result<T> value = parse(*text);
  if (!value.ok()) Throw(ErrorCode::kInvalidArgument, options.Origin(name), ": ", value.error().message);
  return *std::move(value);
}

}  // namespace

std::optional<bool> Options::FindBool(std::string_view name) const { return Parsed(*this, name, &ParseBool); }
std::optional<int64_t> Options::FindInt(std::string_view name) const { return Parsed(*this, name, &ParseInt); }
std::optional<double> Options::FindDouble(std::string_view name) const { return Parsed(*this, name, &ParseDouble); }
std::optional<int64_t> Options::FindSize(std::string_view name) const { return Parsed(*this, name, &ParseSize); }

std::optional<std::string> Options::FindChoice(std::string_view name, std::span<const std::string_view> choices) const {
  std::optional<std::string> value = FindString(name);
  if (!value || std::find(choices.begin(), choices.end(), *value) != choices.end()) return value;
  std::string all;
  for (const std::string_view choice : choices) all += StrCat(all.empty() ? "" : ", ", choice);
  Refuse(name, StrCat("is not one of ", all));
}

std::vector<std::string> Options::List(std::string_view name) const {
  const Entry* entry = Find(name);
  return entry ? entry->values : std::vector<std::string>();
}

std::optional<Json> Options::FindJson(std::string_view name) const {
  const std::optional<std::string> text = FindString(name);
  if (!text) return std::nullopt;
  Result<Json> value = ParseJson(*text, kMaxJsonDepth);
  if (!value.ok()) Throw(ErrorCode::kInvalidArgument, Origin(name), ": ", value.error().message, " of '", *text, "'");
  return *std::move(value);
}

std::string Options::String(std::string_view name, std::string_view fallback) const {
  return FindString(name).value_or(std::string(fallback));
}

}  // namespace base
