// Matching call arguments to parameter names.
#include <string>

#include "text/template/builtins.h"
#include "text/template/format.h"

namespace vllm::jinja {

Arguments::Arguments(std::string_view function, const Signature& signature, const Args& args) {
  size_t count = 0;
  while (count < signature.names.size() && !signature.names[count].empty()) ++count;
  if (args.positional.size() > count) {
    Fail(function, "() takes at most ", count, " argument(s) (", args.positional.size(), " given)");
  }
  for (size_t i = 0; i < args.positional.size(); ++i) values_[i] = &args.positional[i];
  for (const auto& [name, value] : args.keywords) {
    if (signature.positional_only) Fail(function, "() takes no keyword arguments");
    size_t at = 0;
    while (at < count && signature.names[at] != name) ++at;
    if (at == count) Fail(function, "() got an unexpected keyword argument '", name, "'");
    if (values_[at] != nullptr) Fail(function, "() got multiple values for argument '", name, "'");
    values_[at] = &value;
  }
  for (size_t i = 0; i < static_cast<size_t>(signature.required); ++i) {
    if (values_[i] == nullptr) Fail(function, "() missing required argument '", signature.names[i], "'");
  }
}

int64_t ToIndex(const Value& value) {
  if (!value.is_integral()) {
    Fail("'", TypeName(value), "' object cannot be interpreted as an integer");
  }
  const Int index = value.integer();
  return index > INT64_MAX / 4      ? INT64_MAX / 4
         : index < -(INT64_MAX / 4) ? -(INT64_MAX / 4)
                                    : static_cast<int64_t>(index);
}

int64_t Arguments::integer(int index, int64_t otherwise) const {
  return has(index) ? ToIndex((*this)[index]) : otherwise;
}

}  // namespace vllm::jinja
