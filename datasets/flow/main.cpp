// quern-flow: a command that simulates a compressible flow and writes fields a user would compress.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <new>

#include "datasets/flow/arguments.h"
#include "datasets/flow/exit_codes.h"
#include "datasets/flow/run.h"

namespace {

using quern::Status;
using quern::StatusCode;
namespace flow = quern::flow;

volatile std::sig_atomic_t interrupted = 0;
void on_interrupt(int) { interrupted = 1; }

int exit_code(const Status& status) {
  switch (status.code()) {
    case StatusCode::ok: return flow::kExitOk;
    case StatusCode::out_of_memory: return flow::kExitMemory;
    case StatusCode::io_error: return flow::kExitIo;
    case StatusCode::cancelled: return flow::kExitInterrupted;
    case StatusCode::invalid_shape:
    case StatusCode::unsupported: return flow::kExitUsage;
    default: return flow::kExitBrokeDown;
  }
}

int fail(const Status& status, const std::string& detail) {
  std::fprintf(stderr, "quern-flow: %s\n", detail.empty() ? status.text().c_str() : detail.c_str());
  return exit_code(status);
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// One line on standard error that overwrites itself, several times a second, on a terminal only.
class Progress {
 public:
  Progress(const flow::Arguments& arguments, std::chrono::steady_clock::time_point start)
      : arguments_(arguments), start_(start), shown_(!arguments.quiet && ::isatty(STDERR_FILENO) == 1) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() {
    if (shown_ && last_ > 0.0) std::fputs("\r\x1b[K", stderr);
  }

  void update(const flow::Solver& solver) {
    const double now = seconds_since(start_);
    if (!shown_ || now - last_ < 0.2) return;
    last_ = now;
    const double by_steps = static_cast<double>(solver.step()) / static_cast<double>(arguments_.steps);
    const double by_time = solver.time() / arguments_.time;
    const double percent = 100.0 * std::min(1.0, std::max(by_steps, by_time));
    const double rate = static_cast<double>(solver.step()) * static_cast<double>(solver.grid().elems()) / now;
    std::fprintf(stderr, "\r\x1b[Kstep %llu  time %.5g  %.0f %%  %.2f million cells/s",
                 static_cast<unsigned long long>(solver.step()), solver.time(), percent, rate * 1e-6);
    std::fflush(stderr);
  }

 private:
  const flow::Arguments& arguments_;
  std::chrono::steady_clock::time_point start_;
  bool shown_;
  double last_ = 0.0;
};

void print_summary(const flow::Solver& solver, const flow::Written& written, double stepping, double total) {
  const double updates = static_cast<double>(solver.step()) * static_cast<double>(solver.grid().elems());
  std::printf("%zu files, %.1f MB, step %llu, time %.6g; %.2f million cells/s on %d threads, %.1f s in all\n",
              written.files.size(), static_cast<double>(written.bytes) * 1e-6,
              static_cast<unsigned long long>(solver.step()), solver.time(),
              stepping > 0.0 ? updates / stepping * 1e-6 : 0.0, solver.threads(), total);
}

/// Threads that wait between loops spin by default, which costs a factor of four when a machine is shared with other
/// work. The runtime reads its policy before main, so the command starts itself again with the policy set, unless the
/// user chose one. Goes on as it is where that does not work.
void restart_with_sleeping_waiters(const flow::Arguments& arguments, char** argv) {
  if (!flow::has_threads() || arguments.threads == 1) return;
  // NOLINTBEGIN(concurrency-mt-unsafe): there is one thread yet
  if (std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  if (::setenv("OMP_WAIT_POLICY", "passive", 0) == 0) ::execv("/proc/self/exe", argv);
  // NOLINTEND(concurrency-mt-unsafe)
}

int simulate(const flow::Arguments& arguments) {
  std::error_code error;
  std::filesystem::create_directories(arguments.out, error);
  if (error || !std::filesystem::is_directory(arguments.out)) {
    const std::string reason = error ? error.message() : "something that is no folder has this name";
    return fail(Status(StatusCode::io_error, ""), "cannot make the folder " + arguments.out + ": " + reason);
  }
  const auto grid = flow::Grid::make(arguments.size);
  if (!grid.ok()) return fail(grid.status(), {});
  const auto setup = flow::make_setup(arguments.setup, *grid, arguments.seed);
  if (!setup.ok()) return fail(setup.status(), {});
  const auto boundary = flow::make_boundary(setup->boundary);
  auto solver = flow::Solver::make(*grid, *setup, *boundary, arguments.threads);
  if (!solver.ok()) return fail(solver.status(), {});

  const auto start = std::chrono::steady_clock::now();
  flow::Written written;
  std::string detail;
  Status status;
  {
    Progress progress(arguments, start);
    const auto observer = [&](const flow::Solver& now) {
      progress.update(now);
      return interrupted == 0;
    };
    const flow::RunOptions options{arguments.steps, arguments.time, arguments.every, arguments.initial, arguments.cfl};
    const flow::OutputOptions output{arguments.out, arguments.format, arguments.type, setup->name};
    status = flow::run(*solver, options, output, observer, written, detail);
  }
  if (!status.ok()) return fail(status, detail);
  const double total = seconds_since(start);
  if (!arguments.quiet) print_summary(*solver, written, total - written.seconds, total);
  return flow::kExitOk;
}

}  // namespace

int main(int argc, char** argv) {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  try {
    const auto parsed = flow::parse_arguments(argc, argv);
    if (const int* status = std::get_if<int>(&parsed)) return *status;
    const auto& arguments = std::get<flow::Arguments>(parsed);
    restart_with_sleeping_waiters(arguments, argv);
    return simulate(arguments);
  } catch (const std::bad_alloc&) {
    std::fputs("quern-flow: not enough memory\n", stderr);
    return flow::kExitMemory;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "quern-flow: an unexpected error, please report it: %s\n", error.what());
    return flow::kExitBrokeDown;
  }
}
