// fork and exec; what it prints goes to files without names.
#include "cli/files/child.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "cli/args/exit_codes.h"
#include "cli/files/file_names.h"
#include "cli/files/interrupt.h"
#include "cli/files/safe_file.h"
#include "cli/messages/clock.h"

namespace quern::cli {

std::string quern_program() {
  std::array<char, 4096> self;
  const ssize_t length = readlink("/proc/self/exe", self.data(), self.size());
  if (length > 0 && static_cast<std::size_t>(length) < self.size()) {
    std::string path(self.data(), static_cast<std::size_t>(length));
    path = path.substr(0, path.rfind('/') + 1) + "quern";
    if (access(path.c_str(), X_OK) == 0) return path;
  }
  return "quern";
}

Child::Child(const std::vector<std::string>& words, Group group)
    : group_(group), text_(open_spool_file()), messages_(open_spool_file()) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t parent = getpid();
  id_ = fork();
  if (id_ < 0) fail_errno("a process", "make");
  // Both set the group, so that it stands whoever comes first.
  if (group_ == Group::own) setpgid(id_, id_);
  if (id_ != 0) {
    if (group_ == Group::own) end_group_when_interrupted(id_);
    return;
  }
  // Whatever ends this program ends that one, whose handlers then remove what is half written.
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(static_cast<int>(Exit::interrupted));
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::signal(number, SIG_DFL);
  const int empty = open("/dev/null", O_RDONLY);
  dup2(empty, STDIN_FILENO);
  dup2(text_, STDOUT_FILENO);
  dup2(messages_, STDERR_FILENO);
  execvp(arguments.front(), arguments.data());
  const std::string why = words.front() + ": cannot be run: " + errno_text(errno) + "\n";
  static_cast<void>(!write(STDERR_FILENO, why.data(), why.size()));
  _exit(static_cast<int>(Exit::resource));
}

Child::~Child() {
  if (id_ >= 0) {
    send(SIGTERM);
    const Stopwatch watch;
    while (!is_over(false) && watch.seconds() < kGraceSeconds) usleep(5000);
    send(SIGKILL);
    has_ended(true);
  }
  close(text_);
  close(messages_);
}

void Child::send(int number) const { kill(group_ == Group::own ? -id_ : id_, number); }

bool Child::is_over(bool wait) const {
  siginfo_t info{};
  int result = 0;
  do {
    result = waitid(P_PID, static_cast<id_t>(id_), &info, WEXITED | WNOWAIT | (wait ? 0 : WNOHANG));
  } while (result != 0 && errno == EINTR);
  return result != 0 || info.si_pid != 0;
}

bool Child::has_ended(bool wait) {
  if (id_ < 0) return true;
  if (!is_over(wait)) return false;
  if (group_ == Group::own) {
    // What it left running. Its id names no other group before wait4 below.
    send(SIGKILL);
    end_group_when_interrupted(0);
  }
  int status = 0;
  pid_t done = 0;
  rusage used{};
  do {
    done = wait4(id_, &status, 0, &used);
  } while (done < 0 && errno == EINTR);
  id_ = -1;
  code_ = static_cast<int>(Exit::resource);
  if (done > 0 && WIFEXITED(status)) code_ = WEXITSTATUS(status);
  if (done > 0 && WIFSIGNALED(status)) signal_ = WTERMSIG(status);
  for (const timeval& part : {used.ru_utime, used.ru_stime})
    seconds_ += static_cast<double>(part.tv_sec) + 1e-6 * static_cast<double>(part.tv_usec);
  return true;
}

std::string Child::text() const { return read_spool_file(text_); }
std::string Child::messages() const { return read_spool_file(messages_); }

}  // namespace quern::cli
