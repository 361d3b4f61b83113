// Running tasks of parts within a memory limit: how many may run before their memory is needed again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <quern/execution.h>
#include <quern/status.h>

namespace quern {

/// The longest run of parts from `first` on that fits: `needs` says how many bytes each part holds until the run is
/// over. Fails when not even one fits.
inline Result<std::size_t> parts_that_fit(std::span<const std::uint64_t> needs, std::size_t first,
                                          std::uint64_t memory) {
  std::uint64_t held = 0;
  std::size_t end = first;
  while (end < needs.size() && needs[end] <= memory - held) held += needs[end++];
  if (end > first || first == needs.size()) return end;
  return Status(StatusCode::memory_limit, "{0} bytes are needed at least; the limit is {1}",
                static_cast<std::int64_t>(needs[first]), static_cast<std::int64_t>(memory));
}

}  // namespace quern
