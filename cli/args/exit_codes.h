// Exit codes of the command and the one exception that carries them. Nothing outside cli/ throws or catches it.
#pragma once

#include <exception>
#include <string>
#include <utility>

#include <quern/status.h>

namespace quern::cli {

/// A contract with scripts; see docs/man/quern.1.
enum class Exit : int {
  ok = 0,
  usage = 1,
  io = 2,
  stream = 3,
  bound = 4,
  resource = 5,
  missing = 6,  ///< what a stream refers to is not there
  interrupted = 130,
};

/// What ends the work on one file: an exit code and one line for the user (without the leading "quern: ").
class CliError : public std::exception {
 public:
  CliError(Exit code, std::string message) : code_(code), message_(std::move(message)) {}
  Exit code() const { return code_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  Exit code_;
  std::string message_;
};

[[noreturn]] void fail(Exit code, std::string message);

/// Which side of the stream failed: the same status means a wrong option when writing and a bad stream when reading.
enum class Phase { encode, decode };

Exit exit_for(const Status& status, Phase phase);

/// Throws with the file's name, the status's text and what to do about it.
[[noreturn]] void fail_status(const Status& status, Phase phase, const std::string& file);

/// The same for a call of the C interface.
[[noreturn]] void fail_call(int status, const std::string& text, Phase phase, const std::string& file);

inline void check(const Status& status, Phase phase, const std::string& file) {
  if (!status.ok()) fail_status(status, phase, file);
}

template <class T>
T check(Result<T> result, Phase phase, const std::string& file) {
  if (!result.ok()) fail_status(result.status(), phase, file);
  return std::move(result).value();
}

/// To be put behind the text of an errno; empty when that is plain or not known.
const char* errno_advice(int error);

/// The system's text for an errno and, where there is something, what the user can do about it.
std::string errno_text(int error);

/// Throws Exit::io with "FILE: cannot WHAT: <text of errno>; <what to do>".
[[noreturn]] void fail_errno(const std::string& file, const std::string& what);

}  // namespace quern::cli
