// How a non-negative residual becomes an 8-bit token and raw low bits, and how tokens that are already known form the
// context of the next ones. Shared by the section's encoder and decoder so that they cannot disagree.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "codecs/lossless/bits.h"
#include "codecs/lossless/rans.h"

namespace quern::codec::lossless {

/// Rows of values: `planes` x `rows` x `width`, the last contiguous.
struct RowGrid {
  std::size_t planes = 1;
  std::size_t rows = 1;
  std::size_t width = 1;

  std::size_t row_count() const { return planes * rows; }
  std::size_t elems() const { return planes * rows * width; }
};

/// Values below 16 are their own token; above, a token is the bit width and the two bits below the leading one.
template <class U>
inline std::uint8_t token_of(U value, unsigned& raw_bits) {
  const auto width = static_cast<unsigned>(std::bit_width(value));
  raw_bits = value < 16 ? 0 : width - 3;
  const auto coarse = static_cast<unsigned>(value >> raw_bits);
  return static_cast<std::uint8_t>(value < 16 ? coarse : 4 * width - 4 + (coarse & 3));
}

inline unsigned raw_bits_of(std::uint8_t token) { return token < 16 ? 0u : (token >> 2) - 2u; }

/// Smallest value of a token; the raw bits are added to it.
template <class U>
inline U token_base(std::uint8_t token) {
  return token < 16 ? static_cast<U>(token) : static_cast<U>(static_cast<U>(4 | (token & 3)) << raw_bits_of(token));
}

/// The largest token of a value of `bits` bits.
inline unsigned last_token(unsigned bits) { return bits <= 4 ? (1u << bits) - 1 : 4 * bits - 1; }

inline constexpr std::size_t kActivityBins = 511;  ///< values of activity_bin
inline constexpr std::size_t kMaxContexts = 16;
inline constexpr std::size_t kTokenPad = 8;  ///< tokens repeated at either end of a row

/// Tokens with a margin on both sides of each row.
class TokenPlane {
 public:
  TokenPlane(std::uint8_t* memory, const RowGrid& grid) : memory_(memory), grid_(grid) {}
  static std::size_t bytes(const RowGrid& grid) { return grid.row_count() * (grid.width + 2 * kTokenPad); }

  std::uint8_t* row(std::size_t index) const { return memory_ + index * (grid_.width + 2 * kTokenPad) + kTokenPad; }
  /// Repeats the first and last token of a finished row in its margins.
  void close_row(std::size_t index) const {
    std::uint8_t* tokens = row(index);
    std::memset(tokens - kTokenPad, tokens[0], kTokenPad);
    std::memset(tokens + grid_.width, tokens[grid_.width - 1], kTokenPad);
  }
  /// The row above, or before the chunk's second row of a plane the one in the previous plane; the row in the previous
  /// plane, or in the first plane the one above. Both null for the very first row.
  void neighbours(std::size_t index, const std::uint8_t*& above, const std::uint8_t*& behind) const {
    above = behind = nullptr;
    if (index % grid_.rows > 0) above = row(index - 1);
    if (index >= grid_.rows) behind = row(index - grid_.rows);
    if (above == nullptr) above = behind;
    if (behind == nullptr) behind = above;
  }

 private:
  std::uint8_t* memory_;
  RowGrid grid_;
};

/// The share of the activity that comes from other rows; `above` and `behind` may be null (both).
inline void row_activity(const std::uint8_t* above, const std::uint8_t* behind, std::size_t width,
                         std::uint16_t* activity) {
  if (above == nullptr) {
    std::memset(activity, 0, width * sizeof(*activity));
    return;
  }
  for (std::size_t x = 0; x < width; ++x) {
    activity[x] = static_cast<std::uint16_t>(*(above + x - 1) + 2 * above[x] + above[x + 1] + 2 * behind[x]);
  }
}

/// Sum of the kStates tokens at `tokens`.
inline unsigned block_sum(const std::uint8_t* tokens) {
  const auto eight = load_le<std::uint64_t>(tokens);
  constexpr std::uint64_t kEven = 0x00ff00ff00ff00ffULL;
  const std::uint64_t pairs = (eight & kEven) + (eight >> 8 & kEven);
  return static_cast<unsigned>(pairs * 0x0001000100010001ULL >> 48);
}

/// The share that comes from the previous block of kStates tokens in the row (in a row's first block: of the row
/// above).
inline unsigned block_activity(const std::uint8_t* row, std::size_t block_begin, const std::uint8_t* above) {
  if (above == nullptr) return block_begin == 0 ? 0 : block_sum(row + block_begin - kStates);
  return block_sum(block_begin == 0 ? above : row + block_begin - kStates) >> 2;
}

inline unsigned activity_bin(unsigned row_part, unsigned block_part) { return (row_part + block_part) >> 2; }

}  // namespace quern::codec::lossless
