// Shares of passes, and chunks within one.
#include "libcompress/pipeline/pass_progress.h"

#include <algorithm>

namespace quern {

void PassProgress::begin_pass(double share) {
  begin_ = end_;
  end_ = begin_ + (1 - begin_) * std::clamp(share, 0.0, 1.0);
}

bool PassProgress::update(std::uint64_t done, std::uint64_t total) {
  if (!report_) return true;
  const double part = total == 0 ? 1.0 : static_cast<double>(done) / static_cast<double>(total);
  const double whole = std::min(begin_ + (end_ - begin_) * part, 1.0);
  // The last element is kept for the end: a stream may still have to be written.
  const std::uint64_t most = elems_ == 0 ? 0 : elems_ - 1;
  const double elems = whole * static_cast<double>(elems_);
  const std::uint64_t now = elems < static_cast<double>(most) ? static_cast<std::uint64_t>(elems) : most;
  reported_ = std::max(reported_, now);
  return report_(reported_, elems_);
}

ProgressCallback PassProgress::callback() {
  if (!report_) return {};
  return [this](std::uint64_t done, std::uint64_t total) { return update(done, total); };
}

bool ChunkProgress::begin_chunk() {
  if (!report_ || std::this_thread::get_id() != caller_) return true;
  const std::uint64_t done = done_.load(std::memory_order_relaxed);
  if (done == reported_) return true;
  reported_ = done;
  return report_(done, total_);
}

}  // namespace quern
