// Chat templates in the Jinja language, equal to jinja2 as transformers sets it up: an immutable sandbox, trim_blocks
// and lstrip_blocks on, break and continue, {% generation %}, raise_exception, strftime_now, and tojson as json.dumps.
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/limits.h"
#include "base/result.h"
#include "text/template/value.h"

namespace vllm {

namespace jinja {
struct Tree;
}

struct RenderOptions {
  int64_t steps_max = base::kMaxTemplateSteps;
  int64_t allocated_bytes_max = base::kMaxTemplateAllocatedBytes;
  int64_t string_bytes_max = base::kMaxTemplateStringBytes;  // of every string, the result included
  // What strftime_now sees, in local time; the clock when empty.
  std::optional<std::chrono::system_clock::time_point> now = {};
};

// A compiled template: immutable, cheap to copy, usable by many threads at once.
class JinjaTemplate {
 public:
  // Errors: kInvalidArgument "chat template line N: …" for bad syntax, kUnsupported for include, import, extends, block
  // and the few filters that are not served.
  static base::Result<JinjaTemplate> Parse(std::string_view source);
  // `context` is a dict: the template's variables. Errors are kInvalidArgument: a raise_exception's message verbatim,
  // others "chat template line N: …", exceeded limits among them.
  base::Result<std::string> Render(const jinja::Value& context, const RenderOptions& options = {}) const;
  // For analyses of the tree within this folder.
  const jinja::Tree& tree() const { return *tree_; }

 private:
  explicit JinjaTemplate(std::shared_ptr<const jinja::Tree> tree) : tree_(std::move(tree)) {}
  std::shared_ptr<const jinja::Tree> tree_;
};

}  // namespace vllm
