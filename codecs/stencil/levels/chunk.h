// A chunk in levels to bytes and back. The stored form is specified in docs/format-stencil.md.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include <quern/codec.h>
#include <quern/memory.h>
#include <quern/status.h>

#include "codecs/stencil/chunk.h"
#include "codecs/stencil/levels/model.h"
#include "codecs/stencil/range.h"

namespace quern::codec::stencil {

/// A full chunk without elements: what sizes depend on.
inline MutableBox3 full_box(const ChunkSpec& spec) {
  return {nullptr, spec.most, {spec.most[1] * spec.most[2], spec.most[2]}};
}

/// Leaves room for points beyond the border, which are up to five times as large as those inside: sums of weights times
/// values stay below 2^51.
inline void leave_room(const ChunkRange& range, LevelsValueFormat& format) {
  const double most = farthest(range, format);
  int bits = 1;
  while (std::ldexp(1.0, bits - 1) * format.step < most) ++bits;
  const int left = 44 - static_cast<int>(format.weight_bits) - bits;
  if (left >= static_cast<int>(format.fraction_bits)) return;
  const double twice_error = twice_error_of(format);
  format.fraction_bits = static_cast<unsigned>(std::max(left, 0));
  format.step = step_of(twice_error, format.fraction_bits);
}
/// Values in binary64 up to here, and what lies beyond the border, have exact sums below 2^51. Five times is a point two
/// places beyond along one axis, and the mean of the two points of a group at a corner of two axes, (3^2 + 1) / 2. At a
/// corner of three axes it is up to (3^3 + 1) / 2 = 14: sums there may pass 2^51, where magnitudes of the weights sum to
/// more than 4 * 5 / 14, but not 2^53.
inline double most_exact(const LevelsValueFormat& format) {
  constexpr double kBeyondBorder = 5;
  return std::ldexp(1.0, 51 - static_cast<int>(format.weight_bits + kLevelWeightSumBits)) / kBeyondBorder;
}

/// The format of a chunk in levels whose values are kept within its range.
inline LevelsValueFormat limited_levels_format(const ChunkRange& range, const PredictionFormat& plain, bool masked) {
  LevelsValueFormat format(plain);
  leave_room(range, format);
  format.masked = masked;
  const double unit = format.unit();
  format.low = static_cast<std::int64_t>(nearest((range.low - format.base) / unit));
  format.high = static_cast<std::int64_t>(nearest((range.high - format.base) / unit));
  return format;
}

std::size_t levels_encode_scratch_bytes(const EncodeSpec& spec);
/// Whether values of a chunk in units are small enough for 32-bit integers, and magnitudes of its codes for 16 bits,
/// but for what predictions may do.
inline bool narrow_values(const ChunkRange& range, const LevelsValueFormat& format, std::uint8_t tightening) {
  const double most = farthest(range, format);
  const std::int64_t least_quantum = level_quantum(format.fraction_bits, tightening, kMaxLevels);
  const std::int64_t limit = std::min(kernels::kMostNarrow, kernels::kMostMagnitudes * least_quantum);
  return 2 * most < static_cast<double>(limit) * format.unit();
}
/// The elements of a chunk in the order of coding.
struct SortedChunk {
  bool sorted = false;
  std::array<ConstBox3, 2> parts;  ///< all levels but the finest, and that one
};
/// Sorts them if each has 4 bytes, none is special and the layout allows it. They lie in the scratch memory, which
/// nobody may write to until encode_levels is called.
SortedChunk sort_chunk(const EncodeSpec& spec, const ConstBox3& in, std::span<std::uint8_t> scratch);
/// Writes mode and content of a chunk whose format and limits are in `format`, `narrow`: narrow_values; 0 when that
/// would be no smaller than the elements themselves. `sorted`: sort_chunk has been. `out` has max_chunk_bytes. May
/// throw std::bad_alloc.
Result<std::size_t> encode_levels(const EncodeSpec& spec, const ConstBox3& in, const LevelsValueFormat& format,
                                  bool narrow, bool sorted, std::span<std::uint8_t> out,
                                  std::span<std::uint8_t> scratch);
/// The same beside a reference of the same extents, whose elements are a plane before the chunk's; without the mode.
/// `format` has limits, whether elements are masked or not. Needs levels_after_encode_scratch_bytes.
Result<std::size_t> encode_levels_after(const EncodeSpec& spec, const ConstBox3& in, const ConstBox3& reference,
                                        const LevelsValueFormat& format, bool narrow, std::span<std::uint8_t> out,
                                        std::span<std::uint8_t> scratch);
std::size_t levels_after_encode_scratch_bytes(const EncodeSpec& spec);
Result<ChunkCost> estimate_levels(const EncodeSpec& spec, const ConstBox3& in, const LevelsValueFormat& format,
                                  bool narrow, std::span<std::uint8_t> scratch);

std::size_t levels_decode_scratch_bytes(const ChunkSpec& spec);
/// Whether that first byte of a chunk says that it is in levels, not beside a reference.
constexpr bool is_in_levels(std::uint8_t mode) {
  return mode == static_cast<std::uint8_t>(Mode::levels) || mode == static_cast<std::uint8_t>(Mode::levels_edges);
}
/// Decodes what follows the mode, which is levels_edges if `edges`, else levels.
Status decode_levels(const ChunkSpec& spec, std::span<const std::uint8_t> in, bool edges, const MutableBox3& out,
                     std::span<std::uint8_t> scratch);

std::size_t levels_after_decode_scratch_bytes(const ChunkSpec& spec);
/// Decodes what encode_levels_after has written beside the same reference.
Status decode_levels_after(const ChunkSpec& spec, std::span<const std::uint8_t> in, const ConstBox3& reference,
                           const MutableBox3& out, std::span<std::uint8_t> scratch);

/// The same to a level of the array: see decode_coarse in coarse_chunk.h.
Status decode_levels_coarse(const ChunkSpec& spec, std::span<const std::uint8_t> in, bool edges,
                            const MutableBox3& chunk, const LevelForm& form, unsigned level, const MutableBox3& out,
                            std::span<std::uint8_t> scratch);
/// How many of a chunk's first bytes hold levels n and coarser, ..., 1 and coarser; none when it has to be whole.
/// `form` is the array at any level from 1 on. May throw std::bad_alloc.
Result<Vector<std::uint64_t>> level_cuts(const ChunkSpec& spec, std::span<const std::uint8_t> chunk,
                                         const std::array<std::uint64_t, 3>& extents, const LevelForm& form);

}  // namespace quern::codec::stencil
