#include "tests/simt/runtime/faults.h"

#include <csignal>
#include <cstdio>
#include <string>

#include "tests/simt/runtime/grid_run.h"
#include "tests/simt/runtime/runtime.h"

namespace simt {
namespace {

struct sigaction previous_segv;
struct sigaction previous_bus;

/// The program is at its end, so that memory is allocated here although signals and malloc do not go together.
void report(int signal, siginfo_t* info, void*) {
  sigaction(signal, signal == SIGBUS ? &previous_bus : &previous_segv, nullptr);
  const GridRun* const run = GridRun::current();
  const std::string what = runtime().memory.describe(info->si_addr);
  if (run != nullptr || !what.empty())
    std::fprintf(stderr, "simt: %s touches %p%s%s\n", run != nullptr ? run->describe_running().c_str() : "the host",
                 info->si_addr, what.empty() ? "" : ", ", what.c_str());
  // Returning repeats the access, and the handler from before or the system ends the program.
}

}  // namespace

void report_faults() {
  // A stack of its own, as the fault may be the end of a thread's stack.
  stack_t stack{};
  if (sigaltstack(nullptr, &stack) == 0 && (stack.ss_flags & SS_DISABLE) != 0) {
    static unsigned char memory[64 * 1024];
    stack = {};
    stack.ss_sp = memory;
    stack.ss_size = sizeof memory;
    sigaltstack(&stack, nullptr);
  }
  struct sigaction action {};
  action.sa_sigaction = &report;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, &action, &previous_segv);
  sigaction(SIGBUS, &action, &previous_bus);
}

}  // namespace simt
