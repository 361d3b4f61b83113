// Runs are numbered as the axes before them count.
#include "checkpoint/store/box_runs.h"

#include <algorithm>
#include <cstring>

namespace quern::checkpoint {
namespace {

std::uint64_t extent(const Box& box, std::size_t axis) { return box.end[axis] - box.begin[axis]; }

/// The axis from which on elements of `part` follow each other in `box`.
std::size_t outer_axis(const Box& part, const Box& box) {
  std::size_t outer = part.rank == 0 ? 0 : part.rank - 1;
  while (outer > 0 && extent(part, outer) == extent(box, outer)) --outer;
  return outer;
}

}  // namespace

Box intersection(const Box& a, const Box& b) {
  Box out;
  out.rank = a.rank;
  for (std::size_t i = 0; i < a.rank; ++i) {
    out.begin[i] = std::max(a.begin[i], b.begin[i]);
    out.end[i] = std::max(out.begin[i], std::min(a.end[i], b.end[i]));
  }
  return out;
}

bool overlap(const Box& a, const Box& b) {
  const Box shared = intersection(a, b);
  for (std::size_t i = 0; i < shared.rank; ++i)
    if (shared.begin[i] == shared.end[i]) return false;
  return true;
}

BoxRuns::BoxRuns(std::size_t element, const Box& part, const Box& from)
    : element_(element), part_(part), from_(from), outer_(outer_axis(part, from)), bytes_(element) {
  for (std::size_t a = outer_; a < part.rank; ++a) bytes_ *= extent(part, a);
  for (std::size_t a = 0; a < outer_; ++a) count_ *= extent(part, a);
}

std::uint64_t BoxRuns::begin(std::uint64_t index) const {
  std::array<std::uint64_t, kMaxRank> at = part_.begin;
  for (std::size_t a = outer_; a-- > 0;) {
    at[a] += index % extent(part_, a);
    index /= extent(part_, a);
  }
  std::uint64_t element = 0;
  for (std::size_t a = 0; a < part_.rank; ++a) element = element * extent(from_, a) + (at[a] - from_.begin[a]);
  return element * element_;
}

std::uint64_t BoxRuns::first_behind(std::uint64_t byte) const {
  std::uint64_t low = 0;
  std::uint64_t high = count_;
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (begin(middle) + bytes_ > byte) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

bool BoxRuns::meets(std::uint64_t from, std::uint64_t to) const {
  const std::uint64_t run = first_behind(from);
  return run < count_ && begin(run) < to;
}

void copy_runs(std::size_t element, const Box& part, const Box& from, std::uint64_t first,
               std::span<const std::uint8_t> values, const Box& to, std::span<std::uint8_t> target) {
  // Runs of both boxes: what is one run in `from` may be many in `to`. The axis further in numbers them.
  const BoxRuns there(element, part, to);
  const BoxRuns here(element, part, from);
  const std::uint64_t bytes = std::min(there.bytes(), here.bytes());
  const std::uint64_t each_here = here.bytes() / bytes;
  const std::uint64_t each_there = there.bytes() / bytes;
  const std::uint64_t last = first + values.size();
  std::uint64_t run = here.first_behind(first);
  if (run >= here.count()) return;
  const std::uint64_t begin = here.begin(run);
  run *= each_here;
  if (first > begin) run += (first - begin) / bytes;
  for (; run < here.count() * each_here; ++run) {
    const std::uint64_t at = here.begin(run / each_here) + run % each_here * bytes;
    if (at >= last) return;
    const std::uint64_t skip = first > at ? first - at : 0;
    const std::uint64_t count = std::min(at + bytes, last) - (at + skip);
    const std::uint64_t to_at = there.begin(run / each_there) + run % each_there * bytes;
    std::memcpy(target.data() + static_cast<std::size_t>(to_at + skip),
                values.data() + static_cast<std::size_t>(at + skip - first), static_cast<std::size_t>(count));
  }
}

}  // namespace quern::checkpoint
