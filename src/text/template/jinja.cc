// Parse and Render: where failures of a template become error values.
#include "text/template/jinja.h"

#include <new>

#include "text/template/interpreter.h"
#include "text/template/parser.h"

namespace vllm {

base::Result<JinjaTemplate> JinjaTemplate::Parse(std::string_view source) {
  try {
    return JinjaTemplate(jinja::ParseTemplate(source));
  } catch (const jinja::Failure& failure) {
    return base::MakeError(failure.code, "chat template ", failure.message);
  }
}

base::Result<std::string> JinjaTemplate::Render(const jinja::Value& context, const RenderOptions& options) const {
  CHECK(context.is_dict(), "the variables of a template are a dict, not ", jinja::TypeName(context));
  jinja::Interpreter interpreter(*tree_, context, options);
  try {
    return interpreter.Run();
  } catch (const jinja::Failure& failure) {
    if (failure.verbatim) return base::MakeError(failure.code, failure.message);
    return base::MakeError(failure.code, "chat template line ", interpreter.line(), ": ", failure.message);
  } catch (const std::bad_alloc&) {
    return base::MakeError(base::ErrorCode::kOutOfMemory, "chat template line ", interpreter.line(), ": out of memory");
  }
}

}  // namespace vllm
