// One socket a process: the parent sends the number of a file, the process answers with the outcome and with what it
// would have printed.
//
//   parent -> process   u64 number of the file; the end of the socket: nothing is left to do
//   process -> parent   Answer, then its bytes of text, then those of messages
#include "cli/files/side_by_side.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <new>
#include <optional>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "cli/files/memory.h"
#include "cli/files/safe_file.h"
#include "cli/messages/messages.h"

namespace quern::cli {
namespace {

struct Answer {
  FileOutcome outcome;
  std::uint64_t text_bytes = 0;
  std::uint64_t message_bytes = 0;
};

/// Whole or not at all; false at the end of the socket.
bool receive(int socket, void* to, std::size_t bytes) {
  auto* at = static_cast<char*>(to);
  while (bytes != 0) {
    const ssize_t count = read(socket, at, bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    at += count;
    bytes -= static_cast<std::size_t>(count);
  }
  return true;
}

bool send_all(int socket, const void* from, std::size_t bytes) {
  const auto* at = static_cast<const char*>(from);
  while (bytes != 0) {
    const ssize_t count = send(socket, at, bytes, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    at += count;
    bytes -= static_cast<std::size_t>(count);
  }
  return true;
}

/// What is printed to a descriptor, kept in a file without a name until it is taken.
class Captured {
 public:
  explicit Captured(int descriptor) : file_(open_spool_file()) {
    if (dup2(file_, descriptor) < 0) fail_errno("standard output", "keep");
  }

  /// What was printed since the last call.
  std::string take() {
    std::string text = read_spool_file(file_);
    if (ftruncate(file_, 0) != 0 || lseek(file_, 0, SEEK_SET) != 0) fail_errno("standard output", "keep");
    return text;
  }

 private:
  int file_;
};

/// What a process does until the parent has nothing left for it.
void serve(int socket, const std::function<FileOutcome(std::size_t)>& work) {
  Captured text(STDOUT_FILENO);
  Captured messages(STDERR_FILENO);
  for (std::uint64_t index = 0; receive(socket, &index, sizeof index);) {
    Answer answer;
    try {
      answer.outcome = work(index);
    } catch (const std::bad_alloc&) {
      answer.outcome.code = Exit::resource;
      print_message("quern: memory ran out; lower -T, or free some\n");
    } catch (const std::exception& error) {
      answer.outcome.code = Exit::resource;
      print_note(std::string("an unexpected error, please report it: ") + error.what());
    }
    std::fflush(stdout);
    std::fflush(stderr);
    const std::string printed = text.take();
    const std::string said = messages.take();
    answer.text_bytes = printed.size();
    answer.message_bytes = said.size();
    if (!send_all(socket, &answer, sizeof answer) || !send_all(socket, printed.data(), printed.size()) ||
        !send_all(socket, said.data(), said.size()))
      return;
  }
}

struct Process {
  pid_t id = -1;
  int socket = -1;
  std::optional<std::size_t> file;
};

class ProcessPool {
 public:
  ProcessPool(std::size_t count, const std::function<FileOutcome(std::size_t)>& work,
              const std::function<std::string(std::size_t)>& name,
              const std::function<void(std::size_t, const FinishedFile&)>& finished)
      : count_(count), work_(work), name_(name), finished_(finished) {}

  ~ProcessPool() {
    for (Process& process : processes_) end(process);
  }
  ProcessPool(const ProcessPool&) = delete;
  ProcessPool& operator=(const ProcessPool&) = delete;

  void run(std::size_t processes) {
    processes_.resize(processes);
    for (Process& process : processes_) give_next(process);
    while (std::any_of(processes_.begin(), processes_.end(), [](const Process& p) { return p.file.has_value(); }))
      for (Process* process : ready()) take_answer(*process);
  }

 private:
  void begin(Process& process) {
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) fail_errno("a process", "make");
    const pid_t parent = getpid();
    const pid_t id = fork();
    if (id < 0) {
      close(ends[0]);
      close(ends[1]);
      fail_errno("a process", "make");
    }
    if (id == 0) {
      // Whatever ends the parent ends its processes, whose handlers then remove their half-written files.
      prctl(PR_SET_PDEATHSIG, SIGTERM);
      if (getppid() != parent) _exit(static_cast<int>(Exit::interrupted));
      close(ends[0]);
      for (const Process& other : processes_)
        if (other.socket >= 0) close(other.socket);
      try {
        serve(ends[1], work_);
      } catch (...) {
        _exit(static_cast<int>(Exit::resource));
      }
      _exit(0);
    }
    close(ends[1]);
    process.id = id;
    process.socket = ends[0];
  }

  /// The exit status as wait() gives it.
  int end(Process& process) {
    int status = 0;
    if (process.socket >= 0) close(process.socket);
    if (process.id >= 0)
      while (waitpid(process.id, &status, 0) < 0 && errno == EINTR) {
      }
    process = {};
    return status;
  }

  void give_next(Process& process) {
    process.file.reset();
    if (next_ == count_) return;
    if (process.id < 0) begin(process);
    const std::uint64_t index = next_++;
    process.file = index;
    // A process that is gone shows itself when its answer is read.
    send_all(process.socket, &index, sizeof index);
  }

  std::vector<Process*> ready() {
    std::vector<pollfd> sockets;
    std::vector<Process*> waiting;
    for (Process& process : processes_) {
      if (!process.file) continue;
      sockets.push_back({process.socket, POLLIN, 0});
      waiting.push_back(&process);
    }
    while (poll(sockets.data(), sockets.size(), -1) < 0 && errno == EINTR) {
    }
    std::vector<Process*> out;
    for (std::size_t i = 0; i < sockets.size(); ++i)
      if (sockets[i].revents != 0) out.push_back(waiting[i]);
    return out;
  }

  void take_answer(Process& process) {
    const std::size_t file = *process.file;
    FinishedFile done;
    Answer answer;
    bool whole = receive(process.socket, &answer, sizeof answer);
    if (whole) {
      done.outcome = answer.outcome;
      done.text.resize(answer.text_bytes);
      done.messages.resize(answer.message_bytes);
      whole = receive(process.socket, done.text.data(), done.text.size()) &&
              receive(process.socket, done.messages.data(), done.messages.size());
    }
    if (!whole) done = lost(file, end(process));
    finished_later_.emplace(file, std::move(done));
    for (auto at = finished_later_.begin(); at != finished_later_.end() && at->first == told_;) {
      finished_(at->first, at->second);
      at = finished_later_.erase(at);
      ++told_;
    }
    give_next(process);
  }

  FinishedFile lost(std::size_t file, int status) const {
    FinishedFile done;
    done.outcome.code = Exit::resource;
    const std::string how =
        WIFSIGNALED(status)
            ? fmt::format("by signal {}{}", WTERMSIG(status),
                          WTERMSIG(status) == SIGKILL ? "; if memory ran out, a lower -T needs less" : "")
            : fmt::format("with status {}", WEXITSTATUS(status));
    done.messages = fmt::format("quern: {}: the process that worked on it was ended {}\n", name_(file), how);
    return done;
  }

  std::size_t count_;
  const std::function<FileOutcome(std::size_t)>& work_;
  const std::function<std::string(std::size_t)>& name_;
  const std::function<void(std::size_t, const FinishedFile&)>& finished_;
  std::vector<Process> processes_;
  std::size_t next_ = 0;  // the file that is given out next
  std::size_t told_ = 0;  // files below are told of
  std::map<std::size_t, FinishedFile> finished_later_;
};

}  // namespace

Shares share_out(const RunArgs& run, std::size_t files) {
  Shares shares;
  shares.run = run;
  const std::size_t threads = run.threads != 0 ? run.threads : std::max(1U, std::thread::hardware_concurrency());
  shares.processes = std::max<std::size_t>(1, std::min(threads, files));
  shares.run.threads = threads / shares.processes;
  if (shares.processes > 1) {
    shares.run.memory = memory_limit(run) / shares.processes;
    shares.run.progress = ProgressMode::never;
  }
  return shares;
}

void work_side_by_side(std::size_t count, std::size_t processes, const std::function<FileOutcome(std::size_t)>& work,
                       const std::function<std::string(std::size_t)>& name,
                       const std::function<void(std::size_t, const FinishedFile&)>& finished) {
  ProcessPool(count, work, name, finished).run(std::min(processes, count));
}

}  // namespace quern::cli
