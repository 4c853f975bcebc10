// TraceSink: events of a Chrome trace, one a line of a JSON array.
#include "base/trace.h"

#include <atomic>
#include <cerrno>
#include <cstring>

#include "base/limits.h"
#include "base/log.h"
#include "base/result.h"

namespace base {

TraceSink::TraceSink(const std::string& path)
    : start_(std::chrono::steady_clock::now()), file_(std::fopen(path.c_str(), "we")) {
  if (file_ == nullptr) {
    Throw(ErrorCode::kInvalidArgument, "VLLM_TRACE '", path, "' cannot be written: ", std::strerror(errno),
          "; name a file in a folder that exists and is writable");
  }
  std::fputs("[\n", file_);
}

TraceSink::~TraceSink() {
  std::fputs("\n]\n", file_);
  std::fclose(file_);
}

int64_t TraceSink::NowUs() const {
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - start_).count();
}

int64_t TraceSink::ThreadNumber() {
  static std::atomic<int64_t> count{0};
  thread_local const int64_t number = ++count;
  return number;
}

void TraceSink::Write(std::string_view event) {
  const std::lock_guard lock(mutex_);
  if (bytes_ > kMaxTraceBytes) return;
  bytes_ += event.size() + 2;
  if (!first_) std::fputs(",\n", file_);
  first_ = false;
  std::fwrite(event.data(), 1, event.size(), file_);
  if (bytes_ > kMaxTraceBytes) LogWarning("the trace has reached ", kMaxTraceBytes, " bytes; later events are dropped");
}

void TraceSink::Complete(std::string_view name, int64_t begin_us, int64_t end_us, std::string_view args) {
  Write(StrCat("{\"name\":\"", name, "\",\"ph\":\"X\",\"pid\":1,\"tid\":", ThreadNumber(), ",\"ts\":", begin_us,
               ",\"dur\":", end_us - begin_us, ",\"args\":{", args, "}}"));
}

void TraceSink::Begin(std::string_view name, std::string_view args) {
  Write(StrCat("{\"name\":\"", name, "\",\"ph\":\"B\",\"pid\":1,\"tid\":", ThreadNumber(), ",\"ts\":", NowUs(),
               ",\"args\":{", args, "}}"));
}

void TraceSink::End() { Write(StrCat("{\"ph\":\"E\",\"pid\":1,\"tid\":", ThreadNumber(), ",\"ts\":", NowUs(), "}")); }

void TraceSink::NameThread(std::string_view name) {
  Write(StrCat("{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":", ThreadNumber(), ",\"args\":{\"name\":\"",
               name, "\"}}"));
}

}  // namespace base
