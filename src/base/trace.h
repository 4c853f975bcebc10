// TraceSink: what a program did when, as a Chrome trace (chrome://tracing, Perfetto). For people, not for machines.
#pragma once
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>
#include <string_view>

#include "base/strings.h"

namespace base {

// Writes events to a JSON file as they come, so that a killed process leaves a file that still opens. Thread-safe.
class TraceSink {
 public:
  // Throws base::Exception (kInvalidArgument) if the file cannot be written.
  explicit TraceSink(const std::string& path);
  ~TraceSink();
  TraceSink(const TraceSink&) = delete;
  TraceSink& operator=(const TraceSink&) = delete;

  // Microseconds since the sink was made.
  int64_t NowUs() const;
  // A span of the calling thread. `args` is the inside of a JSON object ("\"tokens\":3"), or empty; `name` needs no
  // escapes.
  void Complete(std::string_view name, int64_t begin_us, int64_t end_us, std::string_view args = {});
  // Begin and end of a span of the calling thread; they nest.
  void Begin(std::string_view name, std::string_view args = {});
  void End();
  // Names the calling thread in the viewer.
  void NameThread(std::string_view name);

 private:
  void Write(std::string_view event);
  int64_t ThreadNumber();

  const std::chrono::steady_clock::time_point start_;
  std::mutex mutex_;
  std::FILE* file_;     // guarded
  uint64_t bytes_ = 0;  // guarded
  bool first_ = true;   // guarded
};

// One span, from here to the end of the scope; nothing if `sink` is null.
class TraceScope {
 public:
  TraceScope(TraceSink* sink, std::string_view name) : sink_(sink), name_(name), begin_us_(sink ? sink->NowUs() : 0) {}
  ~TraceScope() {
    if (sink_) sink_->Complete(name_, begin_us_, sink_->NowUs(), args_);
  }
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;

  void Arg(std::string_view name, int64_t value) {
    if (sink_) args_ += StrCat(args_.empty() ? "\"" : ",\"", name, "\":", value);
  }

 private:
  TraceSink* sink_;
  std::string_view name_;
  int64_t begin_us_;
  std::string args_;
};

}  // namespace base
