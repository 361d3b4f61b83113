// The progress line.
#include "cli/progress.h"

#include <unistd.h>

#include <cstdio>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "cli/file_names.h"

namespace quern::cli {
namespace {

constexpr auto kInterval = std::chrono::milliseconds(100);

bool terminal_can_rewrite() {
  const std::string terminal = environment("TERM");
  return isatty(STDERR_FILENO) == 1 && !terminal.empty() && terminal != "dumb";
}

}  // namespace

Progress::Progress(std::string name, const RunArgs& run) : name_(std::move(name)) {
  switch (run.progress) {
    case ProgressMode::automatic: on_ = !run.quiet && terminal_can_rewrite(); break;
    case ProgressMode::always: on_ = true; break;
    case ProgressMode::never: break;
  }
  began_ = last_ = std::chrono::steady_clock::now();
}

Progress::~Progress() {
  if (!shown_) return;
  // Back to the first column and clear to the end of the line.
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
}

ProgressCallback Progress::callback() {
  if (!on_) return {};
  return [this](std::uint64_t done, std::uint64_t total) {
    update(done, total);
    return true;
  };
}

void Progress::update(std::uint64_t done, std::uint64_t total) {
  if (!on_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - last_ < kInterval && done < total) return;
  last_ = now;
  shown_ = true;
  const double share = total == 0 ? 100.0 : 100.0 * static_cast<double>(done) / static_cast<double>(total);
  fmt::print(stderr, "\r\033[K{}  {:.0f} %", name_, share);
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - began_).count();
  if (done == 0 && seconds > 0) fmt::print(stderr, ", {} s", seconds);
  std::fflush(stderr);
}

}  // namespace quern::cli
