// Typed reads of a model's configuration.
#include "load/config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <set>
#include <type_traits>
#include <utility>

#include "base/limits.h"
#include "base/mapped_file.h"
#include "base/result.h"
#include "base/strings.h"
#include "load/json.h"
#include "load/text.h"

namespace vllm {

using base::ErrorCode;
using base::StrCat;
using Kind = ConfigValue::Kind;

// What was asked for, by full path.
struct Config::Record {
  std::set<std::string, std::less<>> known;
  std::set<std::string, std::less<>> whole;  // with all that lies below
  std::vector<std::string> prefixes;         // ignored "name*"
};

namespace {

const ConfigValue* Member(const ConfigValue* object, std::string_view key) {
  if (object == nullptr || object->kind != Kind::kObject) return nullptr;
  for (size_t i = 0; i < object->keys.size(); ++i) {
    if (object->keys[i] == key) return &object->items[i];
  }
  return nullptr;
}

std::string Shown(const ConfigValue& value) {
  switch (value.kind) {
    case Kind::kNull:
      return "null";
    case Kind::kBool:
      return value.boolean ? "true" : "false";
    case Kind::kInt:
      return StrCat(value.integer);
    case Kind::kDouble:
      return StrCat(value.number);
    case Kind::kString:
      return Printable(value.text, 80);
    case Kind::kList:
      return StrCat("[", value.items.size(), " values]");
    case Kind::kObject:
      return StrCat("{", value.items.size(), " keys}");
  }
  return {};
}

std::string Shown(bool value) { return value ? "true" : "false"; }
std::string Shown(const std::string& value) { return Printable(value, 80); }
template <class T>
  requires(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>)
std::string Shown(T value) {
  return StrCat(value);
}
template <class T>
std::string Shown(const std::vector<T>& value) {
  return StrCat("[", value.size(), " values]");
}

// Empty when the value has another type or does not fit.
template <class T>
struct Reader;

template <>
struct Reader<bool> {
  static constexpr std::string_view kName = "true or false";
  static std::optional<bool> Read(const ConfigValue& v) {
    return v.kind == Kind::kBool ? std::optional(v.boolean) : std::nullopt;
  }
};
template <>
struct Reader<int64_t> {
  static constexpr std::string_view kName = "an integer";
  static std::optional<int64_t> Read(const ConfigValue& v) {
    if (v.kind == Kind::kInt) return v.integer;
    // 2^53: beyond it not every integer is a double.
    if (v.kind == Kind::kDouble && std::fabs(v.number) <= 0x1p53 && v.number == std::floor(v.number)) {
      return static_cast<int64_t>(v.number);
    }
    return std::nullopt;
  }
};
template <>
struct Reader<int> {
  static constexpr std::string_view kName = "an integer of 32 bits";
  static std::optional<int> Read(const ConfigValue& v) {
    const auto wide = Reader<int64_t>::Read(v);
    if (!wide || *wide != static_cast<int>(*wide)) return std::nullopt;
    return static_cast<int>(*wide);
  }
};
template <>
struct Reader<double> {
  static constexpr std::string_view kName = "a number";
  static std::optional<double> Read(const ConfigValue& v) {
    return v.kind == Kind::kInt || v.kind == Kind::kDouble ? std::optional(v.number) : std::nullopt;
  }
};
template <>
struct Reader<std::string> {
  static constexpr std::string_view kName = "a string";
  static std::optional<std::string> Read(const ConfigValue& v) {
    return v.kind == Kind::kString ? std::optional(v.text) : std::nullopt;
  }
};
template <class T>
struct Reader<std::vector<T>> {
  static constexpr std::string_view kName = std::is_same_v<T, std::string> ? "a list of strings"
                                            : std::is_same_v<T, bool>      ? "a list of true and false"
                                            : std::is_same_v<T, double>    ? "a list of numbers"
                                                                           : "a list of integers";
  static std::optional<std::vector<T>> Read(const ConfigValue& v) {
    if (v.kind != Kind::kList) return std::nullopt;
    std::vector<T> out;
    out.reserve(v.items.size());
    for (const ConfigValue& item : v.items) {
      auto read = Reader<T>::Read(item);
      if (!read) return std::nullopt;
      out.push_back(*std::move(read));
    }
    return out;
  }
};

}  // namespace

Config::Config() : Config(ConfigValue{.kind = Kind::kObject}, "config.json") {}

Config::Config(ConfigValue root, std::string source)
    : tree_(std::make_shared<const ConfigValue>(std::move(root))),
      node_(tree_.get()),
      record_(std::make_shared<Record>()),
      source_(std::move(source)) {}

Config Config::Parse(std::string_view json, std::string source) {
  base::Result<ConfigValue> tree = ParseConfigJson(json);
  if (!tree) base::Throw(tree.error().code, source, ": ", tree.error().message, "; download the file again");
  return Config(std::move(tree).value(), std::move(source));
}

Config Config::FromFile(const std::string& path) {
  const std::string shown = PrintablePath(path);
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) base::Throw(ErrorCode::kNotFound, shown, ": does not exist");
  if (!std::filesystem::is_regular_file(status)) base::Throw(ErrorCode::kBadFile, shown, ": is not a regular file");
  const auto file = base::MappedFile::Open(path);
  return Parse({reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()}, shown);
}

std::string Config::Full(std::string_view key) const {
  return prefix_.empty() ? std::string(key) : StrCat(prefix_, ".", key);
}

// The value, null when absent or null. Marks the key.
const ConfigValue* Config::Lookup(std::string_view key) const {
  record_->known.insert(Full(key));
  const ConfigValue* value = Member(node_, key);
  if (value == nullptr && key.find('.') != std::string_view::npos) {
    value = node_;
    for (const std::string_view part : base::Split(key, '.')) value = Member(value, part);
  }
  return value == nullptr || value->kind == Kind::kNull ? nullptr : value;
}

void Config::Refuse(std::string_view key, std::string_view complaint) const {
  const ConfigValue* value = Lookup(key);
  const std::string shown = value == nullptr ? "(absent)" : StrCat("'", Shown(*value), "'");
  base::Throw(ErrorCode::kUnsupported, source_, ": ", Printable(Full(key)), " ", shown, " ", complaint);
}

template <class T>
std::optional<T> Config::find(std::string_view key) const {
  const ConfigValue* value = Lookup(key);
  if (value == nullptr) return std::nullopt;
  std::optional<T> read = Reader<T>::Read(*value);
  if (!read) {
    base::Throw(ErrorCode::kBadFile, source_, ": ", Printable(Full(key)), " '", Shown(*value), "' is not ",
                Reader<T>::kName, "; correct it or download the model again");
  }
  return read;
}

template <class T>
T Config::need(std::string_view key) const {
  std::optional<T> value = find<T>(key);
  if (!value) {
    base::Throw(ErrorCode::kBadFile, source_, ": ", Printable(Full(key)), " is missing; add it (", Reader<T>::kName,
                ") or download the model again");
  }
  return *std::move(value);
}

template <class T>
T Config::get(std::string_view key, T fallback) const {
  std::optional<T> value = find<T>(key);
  return value ? *std::move(value) : std::move(fallback);
}

template <class T>
void Config::expect(std::string_view key, T only) const {
  const std::optional<T> value = find<T>(key);
  if (value && *value != only) {
    base::Throw(ErrorCode::kUnsupported, source_, ": ", Printable(Full(key)), " '", Shown(*value),
                "' is not supported (supported: ", Shown(only), "); use another model");
  }
}

#define VLLM_CONFIG_TYPE(T)                                       \
  template std::optional<T> Config::find(std::string_view) const; \
  template T Config::need(std::string_view) const;                \
  template T Config::get(std::string_view, T) const;              \
  template void Config::expect(std::string_view, T) const;
VLLM_CONFIG_TYPE(bool)
VLLM_CONFIG_TYPE(int)
VLLM_CONFIG_TYPE(int64_t)
VLLM_CONFIG_TYPE(double)
VLLM_CONFIG_TYPE(std::string)
VLLM_CONFIG_TYPE(std::vector<bool>)
VLLM_CONFIG_TYPE(std::vector<int>)
VLLM_CONFIG_TYPE(std::vector<int64_t>)
VLLM_CONFIG_TYPE(std::vector<double>)
VLLM_CONFIG_TYPE(std::vector<std::string>)
#undef VLLM_CONFIG_TYPE

int64_t Config::need_in(std::string_view key, int64_t lo, int64_t hi) const {
  const auto value = need<int64_t>(key);
  if (value < lo || value > hi) {
    base::Throw(ErrorCode::kBadFile, source_, ": ", Printable(Full(key)), " '", value, "' is not in ", lo, "..", hi,
                "; correct it or download the model again");
  }
  return value;
}

int64_t Config::get_in(std::string_view key, int64_t fallback, int64_t lo, int64_t hi) const {
  return has(key) ? need_in(key, lo, hi) : fallback;
}

double Config::need_in_real(std::string_view key, double lo, double hi) const {
  const auto value = need<double>(key);
  if (!(value >= lo && value <= hi)) {
    base::Throw(ErrorCode::kBadFile, source_, ": ", Printable(Full(key)), " '", value, "' is not in ", lo, "..", hi,
                "; correct it or download the model again");
  }
  return value;
}

double Config::get_in_real(std::string_view key, double fallback, double lo, double hi) const {
  return has(key) ? need_in_real(key, lo, hi) : fallback;
}

bool Config::has(std::string_view key) const { return Lookup(key) != nullptr; }

const ConfigValue* Config::raw(std::string_view key) const {
  record_->whole.insert(Full(key));
  return Lookup(key);
}

Config Config::object(std::string_view key) const {
  static const ConfigValue kEmpty = {.kind = Kind::kObject};
  const ConfigValue* value = Lookup(key);
  if (value != nullptr && value->kind != Kind::kObject) {
    base::Throw(ErrorCode::kBadFile, source_, ": ", Printable(Full(key)), " '", Shown(*value),
                "' is not an object; correct it or download the model again");
  }
  Config out = *this;
  out.node_ = value == nullptr ? &kEmpty : value;
  out.prefix_ = Full(key);
  return out;
}

size_t Config::list_size(std::string_view key) const {
  const ConfigValue* value = Lookup(key);
  if (value == nullptr) return 0;
  if (value->kind != Kind::kList) {
    base::Throw(ErrorCode::kBadFile, source_, ": ", Printable(Full(key)), " '", Shown(*value),
                "' is not a list; correct it or download the model again");
  }
  return value->items.size();
}

void Config::ignore(std::span<const std::string_view> keys) const {
  for (const std::string_view key : keys) {
    if (key.ends_with('*')) {
      record_->prefixes.push_back(Full(key.substr(0, key.size() - 1)));
    } else {
      record_->whole.insert(Full(key));
    }
  }
}

namespace {

bool Below(const std::set<std::string, std::less<>>& known, const std::string& path) {
  const auto at = known.lower_bound(path + ".");
  return at != known.end() && at->starts_with(path + ".");
}

}  // namespace

void Config::CheckAllKnown(std::span<const std::string_view> also_ignored) const {
  ignore(also_ignored);
  const auto check = [this](const auto& self, const ConfigValue& object, const std::string& prefix) -> void {
    for (size_t i = 0; i < object.keys.size(); ++i) {
      const ConfigValue& value = object.items[i];
      const std::string path = prefix.empty() ? object.keys[i] : StrCat(prefix, ".", object.keys[i]);
      const auto covers = [&](const std::string& start) { return path.starts_with(start); };
      if (value.kind == Kind::kNull || record_->whole.contains(path) ||
          std::ranges::any_of(record_->prefixes, covers)) {
        continue;
      }
      const bool known = record_->known.contains(path);
      if (value.kind == Kind::kObject && (known || Below(record_->known, path))) {
        self(self, value, path);
      } else if (!known) {
        base::Throw(ErrorCode::kUnsupported, source_, ": ", Printable(path), " '", Shown(value),
                    "' is a key that this version does not know and that may change the model's output; "
                    "remove it if it does not matter");
      }
    }
  };
  check(check, *node_, prefix_);
}

std::vector<std::string> Config::keys() const { return node_->keys; }

bool Config::empty() const { return node_->items.empty(); }

}  // namespace vllm
