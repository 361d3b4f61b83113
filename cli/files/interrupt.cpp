// Signal handlers that use nothing but async-signal-safe calls and a fixed table of file names.
#include "cli/files/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstring>
#include <ctime>

#include "cli/args/exit_codes.h"

namespace quern::cli {
namespace {

constexpr std::size_t kSlots = 8;
constexpr std::size_t kPathBytes = PATH_MAX;

struct Slot {
  std::atomic<bool> used{false};
  char path[kPathBytes];
};
Slot slots[kSlots];

void remove_temporaries() {
  for (Slot& slot : slots)
    if (slot.used.load(std::memory_order_acquire)) unlink(slot.path);
}

std::atomic<pid_t> group_to_end{0};

/// Its first process is not waited for meanwhile, so that the id stays its own.
void end_group() {
  const pid_t group = group_to_end.load();
  if (group <= 0) return;
  kill(-group, SIGTERM);
  const timespec grace{0, 200000000};
  nanosleep(&grace, nullptr);
  kill(-group, SIGKILL);
}

extern "C" void on_interrupt(int) {
  end_group();
  remove_temporaries();
  _exit(static_cast<int>(Exit::interrupted));
}

extern "C" void on_bus_error(int) {
  static const char kMessage[] = "quern: an input file became shorter while it was read\n";
  end_group();
  remove_temporaries();
  (void)!write(STDERR_FILENO, kMessage, sizeof kMessage - 1);
  _exit(static_cast<int>(Exit::io));
}

sigset_t handled_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, number);
  return set;
}

void handle(int number, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_mask = handled_signals();
  sigaction(number, &action, nullptr);
}

}  // namespace

void install_signal_handlers() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    // A parent that ignores a signal (nohup, a shell's background job) wants it ignored here too.
    struct sigaction inherited {};
    if (sigaction(number, nullptr, &inherited) == 0 && inherited.sa_handler == SIG_IGN) continue;
    handle(number, on_interrupt);
  }
  handle(SIGBUS, on_bus_error);
  handle(SIGXFSZ, SIG_IGN);
  handle(SIGPIPE, SIG_IGN);
}

void end_group_when_interrupted(pid_t group) { group_to_end.store(group); }

static_assert(sizeof(sigset_t) <= 128);

SignalGuard::SignalGuard() {
  const sigset_t set = handled_signals();
  sigset_t previous;
  pthread_sigmask(SIG_BLOCK, &set, &previous);
  std::memcpy(saved_mask_, &previous, sizeof previous);
}

SignalGuard::~SignalGuard() {
  sigset_t previous;
  std::memcpy(&previous, saved_mask_, sizeof previous);
  pthread_sigmask(SIG_SETMASK, &previous, nullptr);
}

bool SignalGuard::is_interrupted() {
  sigset_t pending;
  if (sigpending(&pending) != 0) return false;
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    // One that is ignored may be pending, too.
    struct sigaction current {};
    if (sigismember(&pending, number) == 1 && sigaction(number, nullptr, &current) == 0 &&
        current.sa_handler != SIG_IGN)
      return true;
  }
  return false;
}

std::size_t register_temporary(const std::string& path) {
  if (path.size() + 1 > kPathBytes) return kSlots;
  for (std::size_t i = 0; i < kSlots; ++i) {
    if (slots[i].used.load(std::memory_order_relaxed)) continue;
    std::memcpy(slots[i].path, path.c_str(), path.size() + 1);
    slots[i].used.store(true, std::memory_order_release);
    return i;
  }
  return kSlots;
}

void forget_temporary(std::size_t slot) {
  if (slot < kSlots) slots[slot].used.store(false, std::memory_order_release);
}

}  // namespace quern::cli
