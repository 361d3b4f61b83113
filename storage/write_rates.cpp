#include "storage/write_rates.h"

#include <algorithm>

namespace quern::storage {
namespace {

constexpr std::size_t kProbeBlocks = 8;
constexpr double kLongProbe = 0.25;  // seconds

/// Bytes that neither a file system nor a device packs, the same in each run.
void fill(std::span<std::uint8_t> block, std::uint64_t& state) {
  for (std::size_t i = 0; i + 8 <= block.size(); i += 8) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    const std::uint64_t mixed = state ^ state >> 29;
    for (std::size_t b = 0; b < 8; ++b) block[i + b] = static_cast<std::uint8_t>(mixed >> (8 * b));
  }
}

Status write_probe(WriteQueue& queue, const std::function<bool(std::size_t)>& turn) {
  std::uint64_t state = 1;
  for (std::size_t i = 0; i < kProbeBlocks; ++i) {
    if (!turn(kQueueBlock)) return Status(StatusCode::cancelled, "it was stopped");
    QUERN_ASSIGN_OR_RETURN(const auto block, queue.block());
    fill(block, state);
    QUERN_RETURN_IF_ERROR(queue.write(block.size()));
  }
  return queue.finish();
}

}  // namespace

void WriteRates::add(unsigned depth, std::uint64_t bytes, double seconds) {
  const auto at = std::find(kDepths.begin(), kDepths.end(), depth);
  if (at != kDepths.end()) rates_[static_cast<std::size_t>(at - kDepths.begin())].add(bytes, seconds);
}

std::size_t WriteRates::best() const {
  double most = 0;
  for (const MovingRate& rate : rates_) most = std::max(most, rate.per_second());
  std::size_t at = 0;
  if (!(most > 0)) return 2;
  while (rates_[at].per_second() < 0.9 * most) ++at;
  return at;
}

unsigned WriteRates::next_depth() {
  const std::size_t at = best();
  if (++calls_ % 16 != 0) return kDepths[at];
  const bool up = calls_ % 32 == 0;
  if (up) return kDepths[std::min(at + 1, kDepths.size() - 1)];
  return kDepths[at == 0 ? 0 : at - 1];
}

Status probe_writes(FileSystem& files, const String& path, const Seconds& now,
                    const std::function<bool(std::size_t)>& turn, WriteRates& rates, Report& report) {
  double start = -1;
  for (const unsigned depth : WriteRates::kDepths) {
    const double begin = now();
    if (start < 0) start = begin;
    auto queue = files.create_queue(path, depth);
    if (!queue.ok()) return fail_file(report, path, "create it", queue.status());
    const Status written = write_probe(**queue, turn);
    queue = Status(StatusCode::internal, "closed");
    const double end = now();
    const Status removed = files.remove(path);
    if (!written.ok()) return fail_file(report, path, "write it", written);
    if (!removed.ok()) return fail_file(report, path, "remove it", removed);
    rates.add(depth, kProbeBlocks * kQueueBlock, end - begin);
    if (end - start > kLongProbe) break;
  }
  return {};
}

}  // namespace quern::storage
