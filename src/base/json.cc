// Guarded JSON for client input: bounded depth, no exceptions, insertion order kept.
#include "base/json.h"

#include <nlohmann/json.hpp>

namespace base {
namespace {

// A SAX consumer that builds the document and stops at a depth. The parser callback of the library is quadratic in the
// elements of an array of objects, so the depth is counted here.
class DepthLimited : public nlohmann::detail::json_sax_dom_parser<Json> {
  using Dom = nlohmann::detail::json_sax_dom_parser<Json>;

 public:
  DepthLimited(Json& out, int max_depth) : Dom(out, /*allow_exceptions=*/false), max_depth_(max_depth) {}
  bool start_object(std::size_t size) { return Enter() && Dom::start_object(size); }
  bool end_object() { return --depth_, Dom::end_object(); }
  bool start_array(std::size_t size) { return Enter() && Dom::start_array(size); }
  bool end_array() { return --depth_, Dom::end_array(); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) {
    error_byte_ = position;
    return false;
  }
  bool too_deep() const { return too_deep_; }
  std::size_t error_byte() const { return error_byte_; }

 private:
  bool Enter() {
    too_deep_ = ++depth_ > max_depth_;
    return !too_deep_;
  }
  int max_depth_, depth_ = 0;
  bool too_deep_ = false;
  std::size_t error_byte_ = 0;
};

}  // namespace

Result<Json> ParseJson(std::string_view text, int max_depth) {
  Json out;
  DepthLimited handler(out, max_depth);
  if (Json::sax_parse(text.begin(), text.end(), &handler)) return out;
  if (handler.too_deep())
    return MakeError(ErrorCode::kInvalidArgument, "JSON nested deeper than ", max_depth, " levels");
  return MakeError(ErrorCode::kInvalidArgument, "invalid JSON at byte ", handler.error_byte());
}

std::string DumpJson(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace base
