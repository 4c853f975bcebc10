// Typed reads of a client's JSON object.
#include "base/json_fields.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace base {
namespace {

std::optional<int64_t> Integral(const Json& value) {
  if (value.is_number_unsigned()) {
    const uint64_t number = value.get<uint64_t>();
    if (number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
    return static_cast<int64_t>(number);
  }
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_number_float()) {
    const double number = value.get<double>();
    if (std::nearbyint(number) == number && std::abs(number) < 9e15) return static_cast<int64_t>(number);
  }
  return std::nullopt;
}

}  // namespace

JsonFields::JsonFields(const Json& object) : object_(object) { CHECK(object.is_object(), "fields of no object"); }

const Json* JsonFields::Find(std::string_view name) {
  const auto found = object_.find(std::string(name));
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

bool JsonFields::Has(std::string_view name) { return Find(name) != nullptr; }

std::optional<bool> JsonFields::FindBool(std::string_view name) {
  const Json* value = Find(name);
  if (!value) return std::nullopt;
  if (!value->is_boolean()) return Mistyped(name, "Input should be a valid boolean"), std::nullopt;
  return value->get<bool>();
}

bool JsonFields::Bool(std::string_view name, bool fallback) { return FindBool(name).value_or(fallback); }

std::optional<int64_t> JsonFields::FindInt(std::string_view name) {
  const Json* value = Find(name);
  if (!value) return std::nullopt;
  const auto number = Integral(*value);
  if (!number) Mistyped(name, "Input should be a valid integer");
  return number;
}

std::optional<double> JsonFields::FindDouble(std::string_view name) {
  const Json* value = Find(name);
  if (!value) return std::nullopt;
  if (!value->is_number()) return Mistyped(name, "Input should be a valid number"), std::nullopt;
  return value->get<double>();
}

std::optional<std::string> JsonFields::FindString(std::string_view name) {
  const Json* value = Find(name);
  if (!value) return std::nullopt;
  if (!value->is_string()) return Mistyped(name, "Input should be a valid string"), std::nullopt;
  return value->get<std::string>();
}

std::optional<std::vector<int32_t>> JsonFields::FindIds(std::string_view name) {
  const Json* value = Find(name);
  if (!value) return std::nullopt;
  std::vector<int32_t> ids;
  if (!value->is_array()) return Mistyped(name, "Input should be a valid list"), std::nullopt;
  for (const Json& item : *value) {
    const auto id = Integral(item);
    if (!id || *id < std::numeric_limits<int32_t>::min() || *id > std::numeric_limits<int32_t>::max())
      return Mistyped(name, "Input should be a list of token ids"), std::nullopt;
    ids.push_back(static_cast<int32_t>(*id));
  }
  return ids;
}

std::vector<std::string> JsonFields::Strings(std::string_view name) {
  const Json* value = Find(name);
  if (!value) return {};
  if (value->is_string()) return {value->get<std::string>()};
  std::vector<std::string> texts;
  if (value->is_array())
    for (const Json& item : *value)
      if (item.is_string()) texts.push_back(item.get<std::string>());
  if (!value->is_array() || texts.size() != value->size())
    Mistyped(name, "Input should be a string or a list of strings");
  return texts;
}

void JsonFields::Fail(std::string_view name, std::string message) {
  if (!error_) error_ = FieldError{std::string(name), std::move(message)};
}

void JsonFields::Mistyped(std::string_view name, const char* expected) {
  std::string input = DumpJson(*Find(name));
  if (input.size() > 100) input = ReplaceInvalidUtf8(input.substr(0, 100)) + "...";
  Fail(name,
       StrCat("1 validation error:\n  {'loc': ('body', '", name, "'), 'msg': '", expected, "', 'input': ", input, "}"));
}

}  // namespace base
