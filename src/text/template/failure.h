// How a template stops: Failure is thrown inside this folder only and becomes a base::Error at its edge; Budget bounds
// work.
#pragma once
#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/strings.h"

namespace vllm::jinja {

struct Failure {
  base::ErrorCode code = base::ErrorCode::kInvalidArgument;
  std::string message = {};
  bool verbatim = false;  // raise_exception: no line is put in front
};

template <class... Parts>
[[noreturn]] void Fail(const Parts&... parts) {
  throw Failure{.message = base::StrCat(parts...)};
}

template <class... Parts>
[[noreturn]] void Refuse(const Parts&... parts) {
  throw Failure{.code = base::ErrorCode::kUnsupported, .message = base::StrCat(parts...)};
}

// What one rendering may still use. Every loop over outside data takes a step; every new string or list pays its bytes.
class Budget {
 public:
  Budget(int64_t steps, int64_t bytes, int64_t string_bytes)
      : steps_(steps), bytes_(bytes), string_bytes_(string_bytes) {}

  void Step(int64_t count = 1) {
    steps_ -= count;
    if (steps_ < 0) [[unlikely]]
      FailSteps();
  }
  // Allocation of `count` bytes, also counted as work.
  void Bytes(int64_t count) {
    bytes_ -= count;
    if (bytes_ < 0) [[unlikely]]
      FailBytes();
    Step(count >> 6);
  }
  // A string of this many bytes is about to exist.
  void String(int64_t count) {
    if (count > string_bytes_) [[unlikely]]
      FailString(count);
    Bytes(count);
  }
  void CheckString(int64_t count) const {
    if (count > string_bytes_) [[unlikely]]
      FailString(count);
  }

 private:
  [[noreturn]] void FailSteps() const;
  [[noreturn]] void FailBytes() const;
  [[noreturn]] void FailString(int64_t count) const;
  int64_t steps_;
  int64_t bytes_;
  int64_t string_bytes_;
};

}  // namespace vllm::jinja
