// Errors as values (Result, Error) and their thrown form for start-up code (Exception).
#pragma once
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

#include "base/check.h"

namespace base {

enum class ErrorCode {
  kInvalidArgument,  // a bad flag, field or request
  kNotFound,         // a file, model or route that is not there
  kBadFile,          // a model file that is damaged, hostile or not of the format it claims
  kUnsupported,      // understood, and not served by this build
  kOutOfMemory,      // does not fit; the message holds the arithmetic
  kOverloaded,       // a queue is full; try later
  kCancelled,
  kDeadlineExceeded,  // a request's time limit passed before its first output
  kInternal,          // our bug, or a dead engine
};

// One line naming the thing, its value and the remedy.
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message = {};
};

// Thrown by start-up code only (load, bind, runner construction); the app prints it, the C ABI returns it.
class Exception : public std::runtime_error {
 public:
  Exception(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  explicit Exception(const Error& error) : Exception(error.code, error.message) {}
  ErrorCode code() const { return code_; }
  Error error() const { return {code_, what()}; }

 private:
  ErrorCode code_;
};

template <class... Parts>
[[noreturn]] void Throw(ErrorCode code, const Parts&... parts) {
  throw Exception(code, StrCat(parts...));
}

template <class... Parts>
Error MakeError(ErrorCode code, const Parts&... parts) {
  return {code, StrCat(parts...)};
}

// A value or an Error. Reading the wrong side is a CHECK failure.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  const T& value() const& { return Get(); }
  T& value() & { return const_cast<T&>(Get()); }
  T&& value() && { return std::move(const_cast<T&>(Get())); }
  const T& operator*() const& { return Get(); }
  T& operator*() & { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  const T* operator->() const { return &Get(); }
  T* operator->() { return &value(); }
  const Error& error() const {
    CHECK(!ok(), "error() of a result that holds a value");
    return *std::get_if<1>(&state_);
  }
  // The value, or its Exception: for start-up code.
  T ValueOrThrow() && {
    if (!ok()) throw Exception(error());
    return std::move(*this).value();
  }

 private:
  const T& Get() const {
    CHECK(ok(), "value() of an error: ", ok() ? std::string() : std::get_if<1>(&state_)->message);
    return *std::get_if<0>(&state_);
  }
  std::variant<T, Error> state_;
};

// Success or an Error.
using Status = Result<std::monostate>;
inline Status Ok() { return std::monostate{}; }

}  // namespace base
