// Prediction by differences: along each axis of a chunk the keys are differenced 0, 1 or 2 times, modulo a power of
// two, with zeros outside the chunk. Order 1 along two or three axes is the Lorenzo predictor. Exact and separable:
// undoing it is adding up.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "codecs/lossless/tokens.h"

namespace quern::codec::lossless {

/// How often each axis is differenced, slowest first; each 0..2.
struct Orders {
  std::array<std::uint8_t, 3> of{0, 0, 0};

  std::uint8_t packed() const { return static_cast<std::uint8_t>(of[0] << 4 | of[1] << 2 | of[2]); }
  static constexpr bool valid(std::uint8_t packed) {
    return packed < 0x30 && (packed >> 2 & 3) < 3 && (packed & 3) < 3;
  }
  static Orders unpack(std::uint8_t packed) {
    return {{static_cast<std::uint8_t>(packed >> 4 & 3), static_cast<std::uint8_t>(packed >> 2 & 3),
             static_cast<std::uint8_t>(packed & 3)}};
  }
};

/// Coefficient of the `step`-th previous element in a difference of that order.
constexpr int difference_coefficient(unsigned order, unsigned step) {
  constexpr int kTable[3][3] = {{1, 0, 0}, {1, -1, 0}, {1, -2, 1}};
  return kTable[order][step];
}

template <class U>
inline void add_multiple(U* to, const U* from, std::size_t count, int factor) {
  switch (factor) {
    case 1:
      for (std::size_t x = 0; x < count; ++x) to[x] += from[x];
      break;
    case -1:
      for (std::size_t x = 0; x < count; ++x) to[x] -= from[x];
      break;
    default: {
      const auto multiplier = static_cast<U>(factor);
      for (std::size_t x = 0; x < count; ++x) to[x] += multiplier * from[x];
    }
  }
}

/// Adds to `to` the part of the difference (or, negated, takes away) that previous rows contribute at elements
/// [begin, begin + count) of row (z, y).
template <class U>
void add_previous_rows(const U* keys, const RowGrid& grid, std::size_t z, std::size_t y, const Orders& orders,
                       bool negate, std::size_t begin, std::size_t count, U* to) {
  for (unsigned i = 0; i <= orders.of[0] && i <= z; ++i) {
    for (unsigned j = 0; j <= orders.of[1] && j <= y; ++j) {
      if (i == 0 && j == 0) continue;
      const int factor = difference_coefficient(orders.of[0], i) * difference_coefficient(orders.of[1], j);
      const U* from = keys + ((z - i) * grid.rows + (y - j)) * grid.width + begin;
      add_multiple(to, from, count, negate ? -factor : factor);
    }
  }
}

/// Differences a row along itself once; `to` and `from` may not overlap. `before` is the element before the first.
template <class U>
inline void difference_row(const U* from, std::size_t count, U before, U* to) {
  to[0] = from[0] - before;
  for (std::size_t x = 1; x < count; ++x) to[x] = from[x] - from[x - 1];
}

/// Reads the low `bits` bits as a signed number and folds its sign into the lowest bit.
template <class U>
inline U fold_sign(U difference, unsigned bits) {
  using S = std::make_signed_t<U>;
  constexpr unsigned kWidth = 8 * sizeof(U);
  const S value = static_cast<S>(difference << (kWidth - bits)) >> (kWidth - bits);
  return (static_cast<U>(value) << 1) ^ static_cast<U>(value >> (kWidth - 1));
}

template <class U>
inline U unfold_sign(U folded) {
  return (folded >> 1) ^ (U{0} - (folded & 1));
}

/// Folded differences of all keys into `folded` (another buffer of as many elements); `row` is scratch of two rows.
template <class U>
void difference_all(const U* keys, const RowGrid& grid, const Orders& orders, unsigned bits, U* row, U* folded) {
  for (std::size_t z = 0; z < grid.planes; ++z) {
    for (std::size_t y = 0; y < grid.rows; ++y) {
      U* to = folded + (z * grid.rows + y) * grid.width;
      U* current = row;
      U* other = row + grid.width;
      std::memcpy(current, keys + (z * grid.rows + y) * grid.width, grid.width * sizeof(U));
      add_previous_rows(keys, grid, z, y, orders, false, 0, grid.width, current);
      for (unsigned k = 0; k < orders.of[2]; ++k) {
        difference_row(current, grid.width, U{0}, other);
        std::swap(current, other);
      }
      for (std::size_t x = 0; x < grid.width; ++x) to[x] = fold_sign(current[x], bits);
    }
  }
}

/// Turns the folded differences in row (z, y) of `keys` into keys; the rows before it are keys already.
template <class U>
void restore_row(U* keys, const RowGrid& grid, std::size_t z, std::size_t y, const Orders& orders, U mask) {
  U* row = keys + (z * grid.rows + y) * grid.width;
  for (std::size_t x = 0; x < grid.width; ++x) row[x] = unfold_sign(row[x]);
  for (unsigned k = 0; k < orders.of[2]; ++k) {
    U sum = 0;
    for (std::size_t x = 0; x < grid.width; ++x) row[x] = sum += row[x];
  }
  add_previous_rows(keys, grid, z, y, orders, true, 0, grid.width, row);
  for (std::size_t x = 0; x < grid.width; ++x) row[x] &= mask;
}

struct OrdersChoice {
  Orders orders;
  std::uint64_t sampled = 0;  ///< elements looked at, at least 1
  std::uint64_t cost = 0;     ///< bits of their folded differences
};

/// The orders with the smallest sum of bit widths on a fixed sample of rows, about one element in `thinning`; ties go
/// to the lowest packed value. `scratch` holds 3 * (grid.width + 2) elements.
template <class U>
OrdersChoice choose_orders(const U* keys, const RowGrid& grid, unsigned bits, unsigned thinning, U* scratch);

extern template OrdersChoice choose_orders<std::uint32_t>(const std::uint32_t*, const RowGrid&, unsigned, unsigned,
                                                          std::uint32_t*);
extern template OrdersChoice choose_orders<std::uint64_t>(const std::uint64_t*, const RowGrid&, unsigned, unsigned,
                                                          std::uint64_t*);

}  // namespace quern::codec::lossless
