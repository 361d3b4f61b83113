// The header of a scan's stream: what it is, and a table of the parts that follow.
//
//   version u8 | mode, type, flags u8 | numbers | blocks | other parts | check u64 | parts, one after another
//
// The check covers what stands before it; each part has a check of its own in the table.
#pragma once

#include <cstdint>
#include <span>

#include <quern/memory.h>
#include <quern/status.h>

#include "codecs/lidar/geometry/blocks.h"
#include "codecs/lidar/geometry/fixed_point.h"

namespace quern::codec::lidar {

/// Of scans without a prediction, and of predicted ones that former builds wrote; of those with weights.
inline constexpr std::uint8_t kScanVersion = 1;
inline constexpr std::uint8_t kWeighedScanVersion = 2;
inline constexpr std::uint8_t kKnowingScanVersion = 3;
inline constexpr std::uint64_t kMostBlocks = UINT64_C(1) << 24;

/// Bytes of a part, and the low half of their checksum64.
struct PartEntry {
  std::uint64_t bytes = 0;
  std::uint32_t check = 0;
};

struct BlockEntry {
  Site origin{};
  unsigned depth = 0;
  std::uint64_t cubes = 0;
  std::uint64_t points = 0;  ///< as counted; 0 in mode `set`
  PartEntry part;
};

struct ColumnEntry {
  std::uint8_t element_bytes = 1;
  PartEntry part;
};

struct ScanHeader {
  Mode mode = Mode::set;
  Scale scale;
  Lattice lattice;
  bool rays = false;         ///< by tool R, in the part `order`; without blocks
  bool predicted = false;    ///< blocks are coded with a prediction, whose check follows the numbers
  bool weighed = false;      ///< and with the weights of its points: version 2
  bool knowing = false;      ///< and with points of weight 0, too: version 3
  bool whole_units = false;  ///< mode `exact`: residuals are of units, else of bit patterns
  std::uint32_t max_error = 0;
  std::uint32_t achieved_error = 0;
  std::uint64_t source_points = 0;
  std::uint64_t points = 0;
  std::uint64_t dropped = 0;
  std::uint64_t verbatim = 0;
  std::uint32_t prediction_check = 0;
  Vector<BlockEntry> blocks;
  PartEntry order;
  PartEntry residuals;
  PartEntry verbatim_part;
  Vector<ColumnEntry> columns;
  std::uint64_t header_bytes = 0;  ///< set by parsing

  bool counted() const { return mode != Mode::set; }
};

/// The stored form. May throw std::bad_alloc.
Vector<std::uint8_t> serialize_scan_header(const ScanHeader& header);

/// Reads a header from the start of a stream and checks it against the stream's length. Any bytes are safe. May throw
/// std::bad_alloc; allocates in proportion to the bytes.
Result<ScanHeader> parse_scan_header(std::span<const std::uint8_t> stream);

PartEntry entry_of(std::span<const std::uint8_t> part);

}  // namespace quern::codec::lidar
