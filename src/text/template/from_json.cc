// JSON values as template values: the one place of this folder that sees the JSON library's values.
#include <nlohmann/json.hpp>

#include "text/template/value.h"

namespace vllm::jinja {
namespace {

std::string Clean(const std::string& text) { return base::IsValidUtf8(text) ? text : base::ReplaceInvalidUtf8(text); }

}  // namespace

Value FromJson(const base::Json& json) {
  switch (json.type()) {
    case base::Json::value_t::boolean:
      return Value::Bool(json.get<bool>());
    case base::Json::value_t::number_integer:
      return Value::Integer(json.get<int64_t>());
    case base::Json::value_t::number_unsigned:
      return Value::Integer(json.get<uint64_t>());
    case base::Json::value_t::number_float:
      return Value::Float(json.get<double>());
    case base::Json::value_t::string:
      return Value::String(Clean(json.get_ref<const std::string&>()));
    case base::Json::value_t::array: {
      std::vector<Value> items;
      items.reserve(json.size());
      for (const auto& item : json) items.push_back(FromJson(item));
      return Value::FromList(std::move(items));
    }
    case base::Json::value_t::object: {
      Dict dict;
      for (const auto& [key, value] : json.items()) dict.Set(Clean(key), FromJson(value));
      return Value::FromDict(std::move(dict));
    }
    case base::Json::value_t::null:
    case base::Json::value_t::binary:
    case base::Json::value_t::discarded:
      break;
  }
  return Value();
}

}  // namespace vllm::jinja
