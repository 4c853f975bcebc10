// The support table: model types, weight formats and attention backends, read from the registries that decide.
#pragma once
#include <string>

namespace vllm {

// Markdown. Asks this machine's cpu device which formats it multiplies with.
std::string SupportTable();

}  // namespace vllm
