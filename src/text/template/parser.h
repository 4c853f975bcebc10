// Template text to syntax tree, names resolved.
#pragma once
#include <memory>
#include <string_view>

#include "text/template/ast.h"

namespace vllm::jinja {

// Throws Failure ("line N: ..."): kInvalidArgument for bad syntax, kUnsupported for what chat templates do not have.
std::unique_ptr<Tree> ParseTemplate(std::string_view source);
// The second half of it: scopes, slots, filters and tests (scope.cc).
void ResolveNames(Tree& tree);

}  // namespace vllm::jinja
