// What happens when the command is interrupted or killed by a signal it can see: temporary files go, the exit code is
// 130, and no half-written file gets a final name.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>

namespace quern::cli {

/// SIGINT, SIGTERM and SIGHUP remove the registered files and end the process with 130; SIGBUS (a mapped input that
/// shrank) removes them and ends with 2. SIGXFSZ and SIGPIPE are ignored: write() reports those.
void install_signal_handlers();

/// Holds back the signals above while it lives, so that creating a file and registering it is one step for them.
class SignalGuard {
 public:
  SignalGuard();
  ~SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

  /// Whether the guard's end will be that of the process: for work that is to be given up then.
  static bool is_interrupted();

 private:
  alignas(16) unsigned char saved_mask_[128];
};

/// From now on those signals end this process group, too: SIGTERM, then SIGKILL for what ignores it. 0: no group.
void end_group_when_interrupted(pid_t group);

/// Adds a file to those a signal removes; returns a slot for forget_temporary. Paths longer than PATH_MAX or more files
/// than slots give a slot that means nothing: the file is then removed by destructors only.
std::size_t register_temporary(const std::string& path);
void forget_temporary(std::size_t slot);

}  // namespace quern::cli
