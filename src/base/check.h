// CHECK: our own bugs become an InternalError with file, line and values; never an abort of the host process.
#pragma once
#include <stdexcept>
#include <string>

#include "base/strings.h"

namespace base {

// A broken invariant of this program. The engine turns it into a dead-engine state; the C ABI into an error code.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void FailCheck(const char* file, int line, const char* expression, const std::string& values);

}  // namespace base

// CHECK(rows == n, "rows ", rows, " of ", n): always on. Values are strings, numbers or characters.
#define CHECK(condition, ...)                                                         \
  do {                                                                                \
    if (!(condition)) [[unlikely]]                                                    \
      ::base::FailCheck(__FILE__, __LINE__, #condition, ::base::StrCat(__VA_ARGS__)); \
  } while (false)

// The same in debug builds only, for inner loops.
#ifdef NDEBUG
#define DCHECK(condition, ...) \
  do {                         \
  } while (false)
#else
#define DCHECK CHECK
#endif
