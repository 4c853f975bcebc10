// Typed reads of a client's JSON object: null counts as absent, the first mistake is kept, nothing throws.
#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace base {

// A mistake in one field, as pydantic words it.
struct FieldError {
  std::string field = {};
  std::string message = {};
};

// The object must outlive the reader. One thread.
class JsonFields {
 public:
  explicit JsonFields(const Json& object);

  // Present and not null. All reads mark their field as known.
  bool Has(std::string_view name);
  const Json* Find(std::string_view name);
  bool Bool(std::string_view name, bool fallback);
  std::optional<bool> FindBool(std::string_view name);
  // A JSON number without a fraction.
  std::optional<int64_t> FindInt(std::string_view name);
  int64_t Int(std::string_view name, int64_t fallback) { return FindInt(name).value_or(fallback); }
  std::optional<double> FindDouble(std::string_view name);
  double Double(std::string_view name, double fallback) { return FindDouble(name).value_or(fallback); }
  std::optional<std::string> FindString(std::string_view name);
  // A list of integers that fit 32 bits.
  std::optional<std::vector<int32_t>> FindIds(std::string_view name);
  // A string or a list of strings.
  std::vector<std::string> Strings(std::string_view name);

  // Notes a mistake; only the first is kept.
  void Fail(std::string_view name, std::string message);
  const std::optional<FieldError>& error() const { return error_; }

 private:
  void Mistyped(std::string_view name, const char* expected);
  const Json& object_;
  std::optional<FieldError> error_;
};

}  // namespace base
