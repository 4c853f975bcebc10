// Guarded JSON for client input: bounded depth and size, no exceptions, insertion order kept.
#include "base/json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/limits.h"
#include "base/strings.h"

namespace base {
namespace {

// Builds the document as it is read. The library's own builder searches an ordered object from its start for every key,
// which is quadratic, and its callback is quadratic in the elements of an array of objects.
class Builder {
 public:
  Builder(Json& out, int max_depth) : out_(out), max_depth_(max_depth) {}

  bool null() { return Add(nullptr) != nullptr; }
  bool boolean(bool value) { return Add(value) != nullptr; }
  bool number_integer(int64_t value) { return Add(value) != nullptr; }
  bool number_unsigned(uint64_t value) { return Add(value) != nullptr; }
  bool number_float(double value, const std::string&) { return Add(value) != nullptr; }
  bool string(std::string& value) { return Add(std::move(value)) != nullptr; }
  bool binary(Json::binary_t&) { return false; }  // no part of JSON texts
  bool start_object(std::size_t) { return Open(Json::object()); }
  bool start_array(std::size_t) { return Open(Json::array()); }
  bool key(std::string& name) {
    Level& level = levels_.back();
    const auto [found, added] = level.places.try_emplace(name, level.places.size());
    level.place = found->second;
    if (!added) return true;  // the last value of a repeated name counts, as in Python
    if (level.places.size() > kMaxJsonObjectKeys)
      return Refuse(StrCat("JSON object of more than ", kMaxJsonObjectKeys, " names"));
    Members(level).push_back({std::move(name), nullptr});
    return Count(kJsonValuesOfAText);
  }
  bool end_object() { return Close(); }
  bool end_array() { return Close(); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) {
    return Refuse(StrCat("invalid JSON at byte ", position));
  }
  const std::string& refusal() const { return refusal_; }

 private:
  struct Level {
    Json* value;
    std::unordered_map<std::string, size_t> places = {};  // of an object's names
    size_t place = 0;                                     // of the name that was read last
  };

  static Json::object_t& Members(Level& level) { return level.value->get_ref<Json::object_t&>(); }
  bool Refuse(std::string why) {
    refusal_ = std::move(why);
    return false;
  }
  // False, with a refusal, when the document has too many values.
  bool Count(size_t values) {
    values_ += values;
    return values_ <= kMaxJsonValues || Refuse(StrCat("JSON of more than ", kMaxJsonValues, " values"));
  }
  // Null, with a refusal, when it cannot be added.
  Json* Add(Json value) {
    if (!Count(value.is_string() || value.is_structured() ? kJsonValuesOfAText : 1)) return nullptr;
    if (levels_.empty()) return &(out_ = std::move(value));
    Level& level = levels_.back();
    if (level.value->is_object())
      return &(Members(level).begin()[static_cast<ptrdiff_t>(level.place)].second = std::move(value));
    level.value->push_back(std::move(value));
    return &level.value->back();
  }
  bool Open(Json empty) {
    if (levels_.size() >= static_cast<size_t>(max_depth_))
      return Refuse(StrCat("JSON nested deeper than ", max_depth_, " levels"));
    Json* added = Add(std::move(empty));
    if (added) levels_.push_back({added});
    return added != nullptr;
  }
  bool Close() {
    levels_.pop_back();
    return true;
  }

  Json& out_;
  const int max_depth_;
  size_t values_ = 0;
  std::vector<Level> levels_;
  std::string refusal_;
};

}  // namespace

Result<Json> ParseJson(std::string_view text, int max_depth) {
  Json out;
  Builder builder(out, max_depth);
  if (Json::sax_parse(text.begin(), text.end(), &builder)) return out;
  return MakeError(ErrorCode::kInvalidArgument, builder.refusal());
}

void AppendJsonString(std::string& out, std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  const auto is_wide = [](char c) { return static_cast<unsigned char>(c) >= 0x80; };
  if (std::any_of(text.begin(), text.end(), is_wide) && !IsValidUtf8(text)) {
    out += DumpJson(Json(std::string(text)));
    return;
  }
  out += '"';
  size_t done = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c >= 0x20 && c != '"' && c != '\\') continue;
    out += text.substr(done, i - done);
    done = i + 1;
    out += '\\';
    switch (c) {
      case '\b':
        out += 'b';
        break;
      case '\f':
        out += 'f';
        break;
      case '\n':
        out += 'n';
        break;
      case '\r':
        out += 'r';
        break;
      case '\t':
        out += 't';
        break;
      case '"':
      case '\\':
        out += static_cast<char>(c);
        break;
      default:
        out += "u00";
        out += kHex[c >> 4];
        out += kHex[c & 15];
    }
  }
  out += text.substr(done);
  out += '"';
}

std::string DumpJson(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace base
