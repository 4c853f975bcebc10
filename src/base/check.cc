// CHECK: our own bugs become an InternalError with file, line and values.
#include "base/check.h"

namespace base {

void FailCheck(const char* file, int line, const char* expression, const std::string& values) {
  throw InternalError(StrCat(file, ":", line, ": CHECK(", expression, ") failed", values.empty() ? "" : ": ", values));
}

}  // namespace base
