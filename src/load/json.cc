// The three JSON texts of model files, over simdjson's on-demand reader. The only unit of load/ that includes simdjson.
#include "load/json.h"

#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/limits.h"
#include "base/strings.h"
#include "load/text.h"

namespace vllm {
namespace {

namespace od = simdjson::ondemand;
using simdjson::error_code;

// Ends a parse; caught in Guarded. Positions are found there.
struct Failure {
  std::string what;
};

[[noreturn]] void Fail(std::string what) { throw Failure{std::move(what)}; }

void Must(error_code error) {
  if (error != simdjson::SUCCESS) Fail(base::StrCat("invalid JSON: ", simdjson::error_message(error)));
}

template <class T>
T Take(simdjson::simdjson_result<T> result, std::string_view what) {
  T value;
  const error_code error = std::move(result).get(value);
  if (error == simdjson::INCORRECT_TYPE || error == simdjson::NUMBER_ERROR || error == simdjson::NUMBER_OUT_OF_RANGE) {
    Fail(std::string(what));
  }
  Must(error);
  return value;
}

void MustBeNull(od::value value) {
  const std::string_view what = "invalid JSON: a value that starts with n is not null";
  if (!Take(value.is_null(), what)) Fail(std::string(what));
}

std::string_view KeyOf(od::field& field) { return Take(field.unescaped_key(), "a key is not a string"); }

// Runs read(root object) over the text; the whole text must be one object.
template <class T, class Read>
base::Result<T> Guarded(std::string_view text, Read read) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    return base::MakeError(base::ErrorCode::kBadFile, "is empty, not a JSON object");
  }
  const simdjson::padded_string padded(text);
  od::parser parser;
  od::document document;
  try {
    Must(parser.iterate(padded).get(document));
    od::object root = Take(document.get_object(), "is not a JSON object");
    T out = read(root);
    // The reader has no name for this: at the end there is no current location.
    if (document.current_location().error() != simdjson::OUT_OF_BOUNDS)
      Fail("invalid JSON: more text after the closing brace");
    return out;
  } catch (const Failure& failure) {
    const char* at = nullptr;
    if (document.is_alive() && document.current_location().get(at) == simdjson::SUCCESS) {
      return base::MakeError(base::ErrorCode::kBadFile, failure.what, " (near byte ", at - padded.data(), ")");
    }
    return base::MakeError(base::ErrorCode::kBadFile, failure.what);
  }
}

class TreeReader {
 public:
  ConfigValue Read(od::value value, int depth) {
    if (++values_ > base::kMaxConfigValues) Fail(base::StrCat("holds more than ", base::kMaxConfigValues, " values"));
    if (depth > base::kMaxConfigDepth) Fail(base::StrCat("is nested deeper than ", base::kMaxConfigDepth, " levels"));
    od::json_type type;
    if (value.type().get(type) != simdjson::SUCCESS) return ReadNumber(value);  // NaN, Infinity, or garbage
    ConfigValue out;
    switch (type) {
      case od::json_type::object:
        return ReadObject(Take(value.get_object(), "invalid object"), depth);
      case od::json_type::array:
        out.kind = ConfigValue::Kind::kList;
        for (auto item : Take(value.get_array(), "invalid list")) {
          out.items.push_back(Read(Take(std::move(item), "invalid list"), depth + 1));
        }
        return out;
      case od::json_type::string:
        out.kind = ConfigValue::Kind::kString;
        out.text = Take(value.get_string(), "invalid string");
        return out;
      case od::json_type::boolean:
        out.kind = ConfigValue::Kind::kBool;
        out.boolean = Take(value.get_bool(), "invalid boolean");
        return out;
      case od::json_type::null:
        MustBeNull(value);
        return out;
      case od::json_type::number:
        return ReadNumber(value);
    }
    return out;
  }

  ConfigValue ReadObject(od::object object, int depth) {
    ConfigValue out;
    out.kind = ConfigValue::Kind::kObject;
    std::unordered_map<std::string, size_t> seen;
    for (auto entry : object) {
      od::field field = Take(std::move(entry), "invalid object");
      const std::string key(KeyOf(field));
      ConfigValue value = Read(field.value(), depth + 1);
      const auto [at, fresh] = seen.try_emplace(key, out.items.size());
      if (fresh) {
        out.keys.push_back(key);
        out.items.push_back(std::move(value));
      } else {
        out.items[at->second] = std::move(value);
      }
    }
    return out;
  }

 private:
  static ConfigValue ReadNumber(od::value value) {
    ConfigValue out;
    const std::string_view token = Trim(value.raw_json_token());
    int64_t integer = 0;
    if (value.get_int64().get(integer) == simdjson::SUCCESS) {
      out.kind = ConfigValue::Kind::kInt;
      out.integer = integer;
      out.number = static_cast<double>(integer);
      return out;
    }
    out.kind = ConfigValue::Kind::kDouble;
    if (value.get_double().get(out.number) == simdjson::SUCCESS) return out;
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (token == "NaN") {
      out.number = std::numeric_limits<double>::quiet_NaN();
    } else if (token == "Infinity" || token == "-Infinity") {
      out.number = token.front() == '-' ? -kInfinity : kInfinity;
    } else {
      Fail(base::StrCat("invalid JSON: '", Printable(token, 40), "' is no value"));
    }
    return out;
  }

  static std::string_view Trim(std::string_view token) {
    const size_t end = token.find_last_not_of(" \t\r\n");
    return end == std::string_view::npos ? std::string_view() : token.substr(0, end + 1);
  }

  int64_t values_ = 0;
};

// Reads a value for its syntax only.
void Skip(od::value value, int depth) {
  if (depth > base::kMaxSafetensorsDepth) {
    Fail(base::StrCat("is nested deeper than ", base::kMaxSafetensorsDepth, " levels"));
  }
  switch (Take(value.type(), "invalid JSON: a value is expected")) {
    case od::json_type::object:
      for (auto entry : Take(value.get_object(), "invalid object")) {
        od::field field = Take(std::move(entry), "invalid object");
        KeyOf(field);
        Skip(field.value(), depth + 1);
      }
      return;
    case od::json_type::array:
      for (auto item : Take(value.get_array(), "invalid list")) Skip(Take(std::move(item), "invalid list"), depth + 1);
      return;
    case od::json_type::string:
      Take(value.get_string(), "invalid string");
      return;
    case od::json_type::number:
      Take(value.get_double(), "invalid JSON: a value is no number");
      return;
    case od::json_type::boolean:
      Take(value.get_bool(), "invalid JSON: a value is no boolean");
      return;
    case od::json_type::null:
      MustBeNull(value);
      return;
  }
}

void CheckMetadata(od::value value) {
  if (Take(value.type(), "__metadata__ is not an object") == od::json_type::null) {
    MustBeNull(value);
    return;
  }
  for (auto entry : Take(value.get_object(), "__metadata__ is not an object")) {
    od::field field = Take(std::move(entry), "__metadata__ is not an object");
    KeyOf(field);
    Take(field.value().get_string(), "a value of __metadata__ is not a string");
  }
}

TensorEntry ReadEntry(std::string name, od::value value) {
  TensorEntry out;
  out.name = std::move(name);
  const std::string head = base::StrCat("tensor '", Printable(out.name), "': ");
  bool has_dtype = false, has_shape = false, has_offsets = false;
  const auto once = [&](bool& seen, std::string_view field) {
    if (std::exchange(seen, true)) Fail(base::StrCat(head, "field ", field, " is given twice"));
  };
  for (auto item : Take(value.get_object(), base::StrCat(head, "its entry is not an object"))) {
    od::field field = Take(std::move(item), base::StrCat(head, "invalid object"));
    const std::string_view key = KeyOf(field);
    if (key == "dtype") {
      once(has_dtype, key);
      out.dtype = Take(field.value().get_string(), base::StrCat(head, "dtype is not a string"));
    } else if (key == "shape") {
      once(has_shape, key);
      const std::string wrong = base::StrCat(head, "shape is not a list of non-negative integers");
      for (auto extent : Take(field.value().get_array(), wrong)) {
        if (out.shape.size() == base::kMaxSafetensorsDims) {
          Fail(base::StrCat(head, "shape has more than ", base::kMaxSafetensorsDims, " dimensions"));
        }
        out.shape.push_back(Take(extent.get_uint64(), wrong));
      }
    } else if (key == "data_offsets") {
      once(has_offsets, key);
      const std::string wrong = base::StrCat(head, "data_offsets is not a pair of non-negative integers");
      int count = 0;
      for (auto offset : Take(field.value().get_array(), wrong)) {
        const uint64_t position = Take(offset.get_uint64(), wrong);
        if (count == 2) Fail(wrong);
        (count++ == 0 ? out.begin : out.end) = position;
      }
      if (count != 2) Fail(wrong);
    } else {
      Skip(field.value(), 1);
    }
  }
  const auto required = [&](bool seen, std::string_view field) {
    if (!seen) Fail(base::StrCat(head, "field ", field, " is missing"));
  };
  required(has_dtype, "dtype");
  required(has_shape, "shape");
  required(has_offsets, "data_offsets");
  return out;
}

void ReadMapEntries(od::value value, SafetensorsIndex& out) {
  const std::string_view wrong = "weight_map is not an object of tensor names and file names";
  for (auto item : Take(value.get_object(), wrong)) {
    od::field field = Take(std::move(item), wrong);
    if (out.tensors.size() == base::kMaxModelTensors) {
      Fail(base::StrCat("weight_map names more than ", base::kMaxModelTensors, " tensors"));
    }
    out.tensors.emplace_back(KeyOf(field));
    out.shards.emplace_back(Take(field.value().get_string(), wrong));
  }
}

}  // namespace

base::Result<ConfigValue> ParseConfigJson(std::string_view text) {
  if (text.size() > base::kMaxConfigBytes) {
    return base::MakeError(base::ErrorCode::kBadFile, "is larger than ", base::kMaxConfigBytes, " bytes");
  }
  return Guarded<ConfigValue>(text, [](od::object& root) { return TreeReader().ReadObject(root, 1); });
}

base::Result<std::vector<TensorEntry>> ParseTensorEntries(std::string_view text) {
  return Guarded<std::vector<TensorEntry>>(text, [](od::object& root) {
    std::vector<TensorEntry> out;
    for (auto item : root) {
      od::field field = Take(std::move(item), "invalid object");
      std::string name(KeyOf(field));
      if (name == "__metadata__") {
        CheckMetadata(field.value());
        continue;
      }
      if (out.size() == base::kMaxModelTensors)
        Fail(base::StrCat("has more than ", base::kMaxModelTensors, " tensors"));
      out.push_back(ReadEntry(std::move(name), field.value()));
    }
    return out;
  });
}

base::Result<SafetensorsIndex> ParseWeightMap(std::string_view text) {
  if (text.size() > base::kMaxSafetensorsHeaderBytes) {
    return base::MakeError(base::ErrorCode::kBadFile, "is larger than ", base::kMaxSafetensorsHeaderBytes, " bytes");
  }
  return Guarded<SafetensorsIndex>(text, [](od::object& root) {
    SafetensorsIndex out;
    bool found = false;
    for (auto item : root) {
      od::field field = Take(std::move(item), "invalid object");
      if (KeyOf(field) != "weight_map") {
        Skip(field.value(), 1);
        continue;
      }
      if (std::exchange(found, true)) Fail("weight_map is given twice");
      ReadMapEntries(field.value(), out);
    }
    if (!found) Fail("weight_map is missing");
    return out;
  });
}

}  // namespace vllm
