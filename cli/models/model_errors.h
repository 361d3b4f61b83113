// What is wrong with a model file, in words that are about models: other files are restored, a model can be trained again.
#pragma once

#include <string>

#include "cli/args/exit_codes.h"

namespace quern::cli {

/// Throws with the file's name, the status's text and what to do about it.
[[noreturn]] void fail_model(const Status& status, const std::string& file);

inline void check_model(const Status& status, const std::string& file) {
  if (!status.ok()) fail_model(status, file);
}

template <class T>
T check_model(Result<T> result, const std::string& file) {
  check_model(result.status(), file);
  return std::move(result).value();
}

}  // namespace quern::cli
