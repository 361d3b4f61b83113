// The progress line.
#include "cli/messages/progress.h"

#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "cli/files/file_names.h"
#include "cli/messages/messages.h"

namespace quern::cli {
namespace {

constexpr auto kInterval = std::chrono::milliseconds(100);
constexpr double kLeastShare = 0.01;   // done, before the time left is told
constexpr double kLeastSeconds = 1.0;  // passed, likewise

bool terminal_can_rewrite() {
  const std::string terminal = environment("TERM");
  return isatty(STDERR_FILENO) == 1 && !terminal.empty() && terminal != "dumb";
}

std::string time_text(double seconds) {
  const auto whole = static_cast<std::uint64_t>(std::clamp(seconds, 0.0, 1e9) + 0.5);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

}  // namespace

std::string progress_text(std::uint64_t done, std::uint64_t total, std::uint64_t element_bytes, double seconds) {
  const double share = total == 0 ? 1 : static_cast<double>(done) / static_cast<double>(total);
  // Rounded down: 100 % are shown when all is done.
  std::string text = fmt::format("{} %", static_cast<int>(100 * share));
  if (done == 0) return seconds < kLeastSeconds ? text : text + ", began " + time_text(seconds) + " ago";
  if (element_bytes != 0 && seconds > 0) {
    const double rate = static_cast<double>(done) * static_cast<double>(element_bytes) / 1e6 / seconds;
    text += rate < 10 ? fmt::format(", {:.1f} MB/s", rate) : fmt::format(", {:.0f} MB/s", rate);
  }
  if (share >= kLeastShare && share < 1 && seconds >= kLeastSeconds)
    text += ", " + time_text(seconds * (1 - share) / share) + " left";
  return text;
}

Progress::Progress(std::string name, const RunArgs& run, std::uint64_t element_bytes)
    : name_(std::move(name)), element_bytes_(element_bytes) {
  switch (run.progress) {
    case ProgressMode::automatic: on_ = !run.quiet && terminal_can_rewrite(); break;
    case ProgressMode::always: on_ = true; break;
    case ProgressMode::never: break;
  }
  began_ = last_ = std::chrono::steady_clock::now();
}

Progress::~Progress() { clear(); }

void Progress::clear() {
  // Back to the first column and clear to the end of the line.
  if (shown_) print_message("\r\033[K");
  shown_ = false;
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
  if (done < done_) began_ = now;
  done_ = done;
  if (now - last_ < kInterval && done < total) return;
  last_ = now;
  shown_ = true;
  const double seconds = std::chrono::duration<double>(now - began_).count();
  print_message("\r\033[K" + name_ + "  " + progress_text(done, total, element_bytes_, seconds));
}

}  // namespace quern::cli
