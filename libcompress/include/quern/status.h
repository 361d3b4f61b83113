// Status and Result<T>: how every quern function reports failure.
// Nothing here allocates, throws or prints; a message is a static string with up to two integers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace quern {

/// Numbered in groups with gaps; a number never changes its meaning.
enum class StatusCode : int {
  ok = 0,
  // usage: the caller can fix it
  invalid_argument = 1,
  invalid_shape = 2,
  invalid_bound = 3,
  unknown_setting = 4,
  bound_not_met = 5,
  // stream: the bytes are not what they should be
  bad_magic = 20,
  truncated = 21,
  corrupt = 22,
  checksum_mismatch = 23,
  unsupported_version = 24,
  trailing_data = 25,
  reference_missing = 26,  ///< an array that the stream was predicted from is not there, or is another
  // capability: correct, but not something this build or codec does
  unsupported = 40,
  unknown_codec = 41,
  missing_model = 43,  ///< what a stream refers to is not where it was looked for
  // resource
  out_of_memory = 60,
  memory_limit = 61,
  io_error = 62,
  cancelled = 63,
  destination_too_small = 64,
  hardware_fault = 65,
  // device
  device_unavailable = 80,
  device_error = 81,
  // our own fault
  internal = 100,
};

/// Short, stable, lower-case name of a code ("checksum_mismatch").
const char* status_name(StatusCode code);

/// A code, a static message and two integers that fill {0} and {1} in it; {0.3} is for thousandths, not negative, as a
/// decimal number, {0.x} for a hash in 16 hexadecimal digits.
class [[nodiscard]] Status {
 public:
  constexpr Status() = default;
  constexpr Status(StatusCode code, const char* message, std::int64_t a = 0, std::int64_t b = 0)
      : code_(code), message_(message), a_(a), b_(b) {}

  constexpr bool ok() const { return code_ == StatusCode::ok; }
  constexpr StatusCode code() const { return code_; }
  /// Message with the integers put in; allocates.
  std::string text() const;
  /// The same into a buffer, with a 0 behind it, cut to fit; returns the characters written. `out` is not empty.
  std::size_t write_text(std::span<char> out) const;
  constexpr std::int64_t first() const { return a_; }
  constexpr std::int64_t second() const { return b_; }

 private:
  StatusCode code_ = StatusCode::ok;
  const char* message_ = "";
  std::int64_t a_ = 0;
  std::int64_t b_ = 0;
};

/// Either a value or a Status that is not ok.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}  // NOLINT: implicit, so that `return value;` works
  Result(Status status) : status_(status) {}     // NOLINT: implicit, so that `return status;` works

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& value() & { return *value_; }
  const T& value() const& { return *value_; }
  T&& value() && { return std::move(*value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace quern

#define QUERN_CONCAT_INNER(a, b) a##b
#define QUERN_CONCAT(a, b) QUERN_CONCAT_INNER(a, b)

/// Returns from the enclosing function when `expr` is a Status that is not ok.
#define QUERN_RETURN_IF_ERROR(expr)                                                        \
  do {                                                                                     \
    if (::quern::Status quern_status_ = (expr); !quern_status_.ok()) return quern_status_; \
  } while (false)

/// `QUERN_ASSIGN_OR_RETURN(auto x, f());` binds the value or returns the Status.
#define QUERN_ASSIGN_OR_RETURN(lhs, expr) QUERN_ASSIGN_OR_RETURN_AT(QUERN_CONCAT(quern_result_, __LINE__), lhs, expr)
#define QUERN_ASSIGN_OR_RETURN_AT(tmp, lhs, expr) \
  auto tmp = (expr);                              \
  if (!tmp.ok()) return tmp.status();             \
  lhs = std::move(tmp).value()
