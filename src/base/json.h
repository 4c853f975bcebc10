// Guarded JSON for client input: bounded depth, no exceptions, insertion order kept. Include nlohmann/json.hpp in .cc
// files only.
#pragma once
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "base/result.h"

namespace base {

using Json = nlohmann::ordered_json;

// Parses one JSON text. Error messages name the byte; nesting deeper than `max_depth` is an error before anything
// recurses.
Result<Json> ParseJson(std::string_view text, int max_depth);
// Compact text; invalid UTF-8 becomes U+FFFD, NaN and infinities become null. Never throws on bounded depth.
std::string DumpJson(const Json& value);
// The text as a JSON string with its quotes, byte for byte as DumpJson writes it.
void AppendJsonString(std::string& out, std::string_view text);

}  // namespace base
