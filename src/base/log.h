// The process log on stderr. Off (kOff) in the C ABI's host processes. Thread-safe.
#pragma once
#include <string_view>

#include "base/strings.h"

namespace base {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };

void SetLogLevel(LogLevel level);
void Log(LogLevel level, std::string_view message);

template <class... Parts>
void LogInfo(const Parts&... parts) {
  Log(LogLevel::kInfo, StrCat(parts...));
}
template <class... Parts>
void LogWarning(const Parts&... parts) {
  Log(LogLevel::kWarning, StrCat(parts...));
}
template <class... Parts>
void LogError(const Parts&... parts) {
  Log(LogLevel::kError, StrCat(parts...));
}

}  // namespace base
