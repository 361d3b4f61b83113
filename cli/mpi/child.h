// Runs quern as a process of its own and keeps what it prints.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace quern::cli::mpi {

/// The quern beside this program; else the one that PATH finds.
std::string quern_program();

class Child {
 public:
  /// Throws CliError (resource) where no process can be made.
  explicit Child(const std::vector<std::string>& words);
  /// Ends it when it still runs.
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// True when it has ended. Never waits unless `wait`.
  bool has_ended(bool wait);
  /// Once it has ended: its exit code; 5 where a signal ended it.
  int code() const { return code_; }
  /// What it printed, and a sentence where a signal ended it.
  std::string text() const;
  std::string messages() const;

 private:
  pid_t id_ = -1;
  int text_ = -1;
  int messages_ = -1;
  int code_ = 0;
  std::string ended_by_;
};

}  // namespace quern::cli::mpi
