// The geometry of a scan from its parts, for the decoder and for the encoder's own check.
#pragma once

#include <cstdint>
#include <span>

#include <quern/execution.h>
#include <quern/memory.h>
#include <quern/status.h>

#include "codecs/lidar/scan_header.h"

namespace quern::codec::lidar {

/// Hands out the parts of a stream, in their order, and checks each.
class PartReader {
 public:
  explicit PartReader(std::span<const std::uint8_t> parts) : rest_(parts) {}
  /// Fails with `checksum_mismatch`, or `truncated` where too few bytes are left.
  Result<std::span<const std::uint8_t>> next(const PartEntry& entry);

 private:
  std::span<const std::uint8_t> rest_;
};

/// Words of all points, those kept verbatim in their places. Moves `parts` to the first column. Any bytes are safe.
/// Fails with `invalid_argument` where the prediction is not the encoder's. May throw std::bad_alloc.
Result<Vector<std::uint32_t>> decode_geometry(const ScanHeader& header, PartReader& parts, Prediction prediction,
                                              TaskRunner& runner);

}  // namespace quern::codec::lidar
