// Runs a program as a process of its own and keeps what it prints.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace quern::cli {

/// The quern beside this program; else the one that PATH finds.
std::string quern_program();

class Child {
 public:
  enum class Group {
    ours,  ///< the process group of this program, whose signals from a terminal it gets, too
    own,   ///< a new one: whatever it started ends with it. One such Child at a time
  };
  /// Seconds from SIGTERM to SIGKILL for what still runs.
  static constexpr double kGraceSeconds = 2;

  /// Starts words[0], which PATH finds where it holds no slash; its standard input is empty. No shell reads the words.
  /// Throws CliError (resource) where no process can be made; a program that cannot be run ends with code 5.
  explicit Child(const std::vector<std::string>& words, Group group = Group::ours);
  /// Ends it, with its own group, when it still runs: at last by SIGKILL.
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// True when it has ended. Never waits unless `wait`.
  bool has_ended(bool wait);
  /// Once it has ended: its exit code; 5 where a signal ended it.
  int code() const { return code_; }
  /// The signal that ended it; 0 where none did.
  int signal() const { return signal_; }
  /// Processor time that it and its own children took, in seconds.
  double seconds() const { return seconds_; }
  /// What it printed.
  std::string text() const;
  std::string messages() const;

 private:
  void send(int number) const;
  /// True once it has ended, while its id still belongs to it.
  bool is_over(bool wait) const;

  pid_t id_ = -1;
  Group group_;
  int text_ = -1;
  int messages_ = -1;
  int code_ = 0;
  int signal_ = 0;
  double seconds_ = 0;
};

}  // namespace quern::cli
