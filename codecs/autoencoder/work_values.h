// Values and magnitudes of codes of a chunk, as both ways build them up: with a halo of zeros before the first of each
// axis, so that neighbours are always there.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "codecs/autoencoder/blocks.h"
#include "libcompress/core/arena.h"

namespace quern::codec::autoencoder {

/// Larger magnitudes count as this in contexts.
inline constexpr std::uint32_t kMostContextMagnitude = (1u << 18) - 1;

/// Values stay below 2^52, so that binary64 holds them; those of hostile streams are cut.
constexpr std::int64_t cut_value(std::uint64_t v) { return static_cast<std::int64_t>(v << 11) >> 11; }

class WorkValues {
 public:
  WorkValues(Arena& arena, const Extents& chunk)
      : row_(static_cast<std::size_t>(chunk[2] + 1)),
        plane_(row_ * static_cast<std::size_t>(chunk[1] + 1)),
        elems_(plane_ * static_cast<std::size_t>(chunk[0] + 1)),
        values_(arena.take<std::int64_t>(elems_)),
        magnitudes_(arena.take<std::uint32_t>(elems_)) {}

  void clear() {
    std::fill_n(values_, elems_, 0);
    std::fill_n(magnitudes_, elems_, 0u);
  }

  std::size_t index(const Extents& at) const {
    return static_cast<std::size_t>(at[0] + 1) * plane_ + static_cast<std::size_t>(at[1] + 1) * row_ +
           static_cast<std::size_t>(at[2] + 1);
  }
  std::int64_t value(std::size_t i) const { return values_[i]; }
  void set(std::size_t i, std::int64_t value) { values_[i] = value; }
  void set_magnitude(std::size_t i, std::int64_t code) {
    magnitudes_[i] = static_cast<std::uint32_t>(std::min<std::int64_t>(code < 0 ? -code : code, kMostContextMagnitude));
  }
  /// What an element without a code counts as: the value before it in its row.
  std::int64_t repeated(std::size_t i) const { return values_[i - 1]; }

  /// The Lorenzo prediction: the alternating sum of the seven neighbours before (Ibarria et al., "Out-of-core
  /// compression and decompression of large n-dimensional scalar fields", 2003).
  std::int64_t lorenzo(std::size_t i) const {
    const auto v = [&](std::size_t back) { return static_cast<std::uint64_t>(values_[i - back]); };
    return cut_value(v(1) + v(row_) + v(plane_) - v(row_ + 1) - v(plane_ + 1) - v(plane_ + row_) +
                     v(plane_ + row_ + 1));
  }

  /// Context sum of an element in a block of that level, from the magnitudes around it.
  std::uint32_t context_sum(std::size_t i, unsigned level) const {
    const auto m = [&](std::size_t back) { return magnitudes_[i - back]; };
    return level_share(level) + kNear * (m(1) + m(row_) + m(plane_)) +
           kDiagonal * (m(row_ + 1) + m(plane_ + 1) + m(plane_ + row_));
  }

  /// Level of a block of that many codes, whose magnitudes have that sum: 0 where all are 0, else about two more than
  /// the logarithm of 64 times their mean.
  static unsigned level_of(std::uint64_t sum, std::uint64_t count) {
    return sum == 0 ? 0 : 1 + static_cast<unsigned>(std::bit_width(64 * sum / count));
  }
  static constexpr unsigned kMostLevel = 40;

 private:
  static constexpr std::uint32_t kNear = 200;
  static constexpr std::uint32_t kDiagonal = 80;

  /// About 1024 times the mean magnitude.
  static std::uint32_t level_share(unsigned level) { return 1u << std::min(level + 2, 28u); }

  std::size_t row_;
  std::size_t plane_;
  std::size_t elems_;
  std::int64_t* values_;
  std::uint32_t* magnitudes_;
};

}  // namespace quern::codec::autoencoder
