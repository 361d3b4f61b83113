// Entry points of the kernels for byte planes on the CPU: elements to planes and back, differences to a reference, and
// the rANS coder of a plane. One set for each instruction set; all give the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/cpu/isa.h"
#include "kernels/entropy/rans_lanes.h"

namespace quern::kernels {

inline constexpr std::size_t kMostPlanes = 8;
inline constexpr std::size_t kLaneWindow = 64;  ///< symbols whose tables fit into registers

/// One part of a coded plane while it is written: words go downwards and take at most one for each symbol. 16 bytes
/// below `words` may be written beyond those that count.
struct LaneSink {
  std::uint16_t* words = nullptr;
  std::uint32_t states[kRansLanes];
};

/// One part while it is read.
struct LaneSource {
  const std::uint8_t* at = nullptr;
  const std::uint8_t* end = nullptr;
  std::uint32_t states[kRansLanes];
};

struct LaneEncodeJob {
  const std::uint8_t* symbols = nullptr;
  std::size_t count = 0;
  const LaneEncodeTable* tables = nullptr;
  LaneContext source = LaneContext::none;
  /// The table of each group of 32 (previous) or of each symbol (given).
  const std::uint8_t* contexts = nullptr;
  LaneSink* parts = nullptr;  ///< lane_parts(count) of them, states kLaneFloor
  /// Where most symbols lie within kLaneWindow neighbours: the lowest of those, at most 256 - kLaneWindow. They are
  /// coded faster; the bytes are the same.
  bool windowed = false;
  std::uint8_t window = 0;
};

struct LaneDecodeJob {
  std::uint8_t* symbols = nullptr;
  std::size_t count = 0;
  const LaneDecodeTable* tables = nullptr;
  LaneContext source = LaneContext::none;
  const std::uint8_t* contexts = nullptr;  ///< given: the table of each symbol
  /// previous: the context is how many of these are not above the sum; 0xffff where there are fewer contexts.
  std::uint16_t thresholds[kMostLaneContexts] = {};
  LaneSource* parts = nullptr;
  const std::uint8_t* readable_end = nullptr;  ///< memory behind the parts that may be read, if not used
};

/// How the difference to a reference is taken.
struct Reference {
  /// Of 4-byte floats: a reference of magnitude 2^-111 to the largest counts for its product with this; 1: as it is.
  float scale = 1.0f;
};

/// Bytes that `bits` bits of each symbol take.
[[gnu::always_inline]] constexpr std::size_t packed_bytes(std::size_t count, unsigned bits) {
  return (count * bits + 7) / 8;
}

struct PlaneKernels {
  /// planes[k][i] = byte k, counted from the lowest, of element i, its bits first rotated left by one if `rotate`.
  void (*split)(const std::uint8_t* elements, std::size_t count, unsigned width, bool rotate,
                std::uint8_t* const* planes);
  void (*join)(const std::uint8_t* const* planes, std::size_t count, unsigned width, bool rotate,
               std::uint8_t* elements);
  /// Zigzagged differences, modulo 2^(8 width), of elements and reference, into `out` of count * width bytes.
  void (*subtract)(const std::uint8_t* elements, const std::uint8_t* reference, std::size_t count, unsigned width,
                   Reference rule, std::uint8_t* out);
  /// The inverse; `elements` holds differences and receives elements.
  void (*add)(std::uint8_t* elements, const std::uint8_t* reference, std::size_t count, unsigned width, Reference rule);
  /// out[i] = how many of the thresholds are not above bits shift..shift+7 of element i of width 2, 4 or 8.
  void (*classify)(const std::uint8_t* elements, std::size_t count, unsigned width, unsigned shift,
                   const std::uint8_t* thresholds, std::size_t threshold_count, std::uint8_t* out);
  /// The bits of `mask` of each symbol, packed lowest first: 8 symbols in popcount(mask) bytes, the last byte filled up
  /// with zeros. Returns the end; 8 bytes behind it may be written.
  std::uint8_t* (*pack)(const std::uint8_t* symbols, std::size_t count, std::uint8_t mask, std::uint8_t* out);
  /// The inverse, the other bits as in `fixed`; reads packed_bytes() at `in`.
  void (*unpack)(const std::uint8_t* in, std::size_t count, std::uint8_t mask, std::uint8_t fixed,
                 std::uint8_t* symbols);
  /// Bits that are not the same in all of count > 0 symbols.
  std::uint8_t (*varying_bits)(const std::uint8_t* symbols, std::size_t count);
  /// sums[g] = sum of symbols 32g..32g+31.
  void (*group_sums)(const std::uint8_t* symbols, std::size_t groups, std::uint16_t* sums);
  /// Symbols last to first, so that a decoder finds them first to last.
  void (*encode)(const LaneEncodeJob& job);
  /// False on bytes that no encoder writes, `symbols` being partly written then.
  bool (*decode)(const LaneDecodeJob& job);
};

/// The kernels of an available level.
const PlaneKernels& plane_kernels(IsaLevel level);

}  // namespace quern::kernels
