// Reading the bit planes of a tile, for a warp, over an execution model X: planes get their zero bytes back in memory
// that the lanes share, a group of eight at a time, and become residuals in registers. The bytes are hostile: every
// count is compared with what is left before it is used.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/bits.h"
#include "kernels/lorenzo/tile_code.h"
#include "kernels/lorenzo/warp/decode_area.h"
#include "kernels/lorenzo/warp/stage.h"
#include "kernels/lorenzo/warp/tile.h"

namespace quern::kernels {

/// Selector of permute_bytes, 16 bits, that puts the next bytes where the low four bits of `mask` are set, zeros
/// elsewhere.
[[gnu::always_inline]] constexpr std::uint32_t gap_selector(std::uint32_t mask) {
  std::uint32_t selector = 0;
  std::uint32_t next = 0;
  unroll<4>([&](auto k) {
    const std::uint32_t here = mask >> k & 1;
    selector |= (here != 0 ? next : 4u) << (4 * k);
    next += here;
  });
  return selector;
}

/// Bits of a under mask << shift and bits of b under mask change places.
template <unsigned Shift>
[[gnu::always_inline]] constexpr void swap_bits(std::uint32_t& a, std::uint32_t& b, std::uint32_t mask) {
  const std::uint32_t up = b << Shift;
  const std::uint32_t down = a >> Shift;
  a = (a & mask) | (up & ~mask);
  b = (down & mask) | (b & ~mask);
}
/// In every byte column, bit j of word i and bit i of word j change places.
[[gnu::always_inline]] constexpr void transpose_planes(std::uint32_t (&a)[8]) {
  unroll<4>([&](auto i) { swap_bits<4>(a[i], a[i + 4], 0x0f0f0f0fu); });
  unroll<4>([&](auto i) { swap_bits<2>(a[i + i / 2 * 2], a[i + i / 2 * 2 + 2], 0x33333333u); });
  unroll<4>([&](auto i) { swap_bits<1>(a[2 * i], a[2 * i + 1], 0x55555555u); });
}

/// Reads the planes of a payload in order from Source, one of those in kernels/lorenzo/warp/stage.h. Every lane knows
/// of two sparse planes where their parts begin. Positions that lead out of the payload are held at its end, and
/// finished() says so.
template <class X, class Source>
class PlaneReader {
  using V32 = typename X::template vec<std::uint32_t>;

 public:
  /// `bytes` bytes hold the planes, of which the first `dense` are dense; false when level 2 promises more than there
  /// is.
  constexpr bool open(const Source& source, std::uint32_t bytes, std::uint32_t planes, std::uint32_t dense) {
    source_ = source;
    planes_ = planes;
    dense_ = dense;
    const std::uint32_t dense_bytes = static_cast<std::uint32_t>(kPlaneBytes) * dense;
    const std::uint32_t sparse = planes - dense;
    if (bytes < dense_bytes || bytes - dense_bytes < 2 * sparse) return false;
    const std::uint32_t level2 = source.first + dense_bytes;
    const std::uint32_t level1 = level2 + 2 * sparse;
    V32 listed;
    X::lanes([&](auto lane) {
      const auto l = static_cast<std::uint32_t>(lane);
      const std::uint32_t mine = sparse > 2 * l ? sparse - 2 * l : 0;
      const std::uint32_t tops = mine != 0 ? source.template halves<X>(level2 + 4 * l, mine < 2 ? 1 : 2, lane) : 0u;
      X::set(tops_, lane, tops);
      X::set(listed, lane, popcount(tops));
    });
    V32 before = listed;
    X::inclusive_scan(before);
    const std::uint32_t all = X::broadcast(before, kLanes - 1);
    X::lanes([&](auto lane) {
      const std::uint32_t place = level1 + X::get(before, lane) - X::get(listed, lane);
      X::set(lookup_, lane, gap_selector(static_cast<std::uint32_t>(lane)) | place << 16);
    });
    next_ = level1 + all;
    end_ = source.first + bytes;
    return end_ - level1 >= all;
  }

  /// Planes from .. to-1, plane p to slot p - base, of sparse ones those that no call before has read; perhaps one
  /// more.
  constexpr void expand(std::uint32_t from, std::uint32_t to, std::uint32_t base, std::uint32_t* slots) {
    rolled(from, to < dense_ ? to : dense_, [&](std::uint32_t p) {
      X::lanes([&](auto lane) { X::store(slots + kLanes * (p - base) + lane, lane, dense_word(p, lane)); });
    });
    rolled(pairs_below(from), pairs_below(to),
           [&](std::uint32_t pair) { expand_pair(pair, slots + kLanes * (dense_ + 2 * pair - base)); });
  }

  /// Residuals of half `half` of the tile's words, unzigzagged: row r in z[r].
  constexpr void read_rows(unsigned half, std::uint32_t* slots, V32 (&z)[kRows]) {
    X::lanes([&](auto lane) { unroll<kRows>([&](auto row) { X::set(z[row], lane, 0u); }); });
    const std::uint32_t first = 32 * half;
    const std::uint32_t left = planes_ > first ? planes_ - first : 1;
    rolled(0, left < 32 ? (left + 7) / 8 : 4, [&](unsigned b) {
      // Bit i of a residual is plane i + 1, or not if plane 0 says minus. Slot 0 keeps plane 0.
      const std::uint32_t base = first + 8 * b;
      V32 planes[8];
      if (base + 9 <= dense_) {
        X::lanes([&](auto lane) {
          if (base == 0) X::store(slots + lane, lane, dense_word(0, lane));
          unroll<8>([&](auto j) { X::set(planes[j], lane, dense_word(base + 1 + static_cast<unsigned>(j), lane)); });
        });
      } else {
        // The last pair before may have reached the first plane of these.
        X::lanes([&](auto lane) {
          if (base != 0 && dense_ + 2 * pairs_below(base + 1) == base + 2)
            X::store(slots + kLanes + lane, lane, X::load(slots + 9 * kLanes + lane, lane));
        });
        X::sync();
        expand(base == 0 ? 0 : base + 1, base + 9 < planes_ ? base + 9 : planes_, base, slots);
        X::sync();
        X::lanes([&](auto lane) {
          unroll<8>([&](auto j) {
            const bool is = base + 1 + static_cast<unsigned>(j) < planes_;
            X::set(planes[j], lane, is ? X::load(slots + kLanes * (1 + j) + lane, lane) : 0u);
          });
        });
      }
      X::lanes([&](auto lane) {
        const std::uint32_t minus = planes_ > 0 ? X::load(slots + lane, lane) : 0u;
        std::uint32_t a[8];
        unroll<8>([&](auto j) { a[j] = X::get(planes[j], lane) ^ minus; });
        transpose_planes(a);
        insert_bytes(a, b, lane, z);
      });
    });
    X::sync();
  }

  /// Bytes read.
  constexpr std::uint32_t used() const { return next_ - source_.first; }
  /// Whether all planes were well formed; used() is past the end unless they were.
  constexpr bool sound() const { return next_ <= end_; }
  /// The same, and nothing is left.
  constexpr bool finished() const { return next_ == end_; }

 private:
  /// What a byte of level 1 that is 0 adds to the position.
  static constexpr std::uint32_t kBroken = 1u << 20;

  /// Pairs of sparse planes that bring all below plane `plane`.
  [[gnu::always_inline]] constexpr std::uint32_t pairs_below(std::uint32_t plane) const {
    return plane > dense_ ? (plane - dense_ + 1) / 2 : 0;
  }

  template <class Lane>
  [[gnu::always_inline]] constexpr std::uint32_t dense_word(std::uint32_t plane, Lane lane) const {
    const auto at = static_cast<std::uint32_t>(kPlaneBytes) * plane + 4 * static_cast<std::uint32_t>(lane);
    return source_.template word<X>(source_.first + at, lane);
  }

  /// The next two sparse planes; a lane has the 8 bytes that one byte of level 1 describes.
  constexpr void expand_pair(std::uint32_t pair, std::uint32_t* slots) {
    const std::uint32_t tops = X::broadcast(tops_, pair);
    const std::uint32_t level1 = X::broadcast(lookup_, pair) >> 16;
    V32 map, rank, low, high, low_selector, high_selector;
    X::lanes([&](auto lane) {
      std::uint32_t byte = 0;
      std::uint32_t count = 0;
      if ((tops >> lane & 1) != 0) {
        byte = source_.template byte<X>(level1 + popcount(tops & bits_below(lane)), lane);
        count = byte != 0 ? popcount(byte) : kBroken;
      }
      X::set(map, lane, byte);
      X::set(rank, lane, count);
    });
    X::inclusive_scan(rank);
    const std::uint32_t total = X::broadcast(rank, kLanes - 1);
    X::lanes([&](auto lane) {
      const std::uint32_t byte = X::get(map, lane);
      const std::uint32_t own = popcount(byte);
      const std::uint32_t here = next_ + X::get(rank, lane) - own;
      const std::uint32_t at = here < end_ ? here : end_;
      const std::uint64_t eight = source_.template eight<X>(at, end_ - at < own ? 0 : own, lane);
      X::set(low, lane, static_cast<std::uint32_t>(eight));
      X::set(high, lane, static_cast<std::uint32_t>(eight >> (8 * popcount(byte & 15))));
      X::set(low_selector, lane, byte & 15);
      X::set(high_selector, lane, byte >> 4);
    });
    X::shuffle(low_selector, lookup_, low_selector);
    X::shuffle(high_selector, lookup_, high_selector);
    X::lanes([&](auto lane) {
      const LanePack<std::uint32_t, 2> words{{X::permute_bytes(X::get(low, lane), 0, X::get(low_selector, lane)),
                                              X::permute_bytes(X::get(high, lane), 0, X::get(high_selector, lane))}};
      X::store(reinterpret_cast<LanePack<std::uint32_t, 2>*>(slots + 2 * lane), lane, words);
    });
    next_ += total;
  }

  /// Byte b of all rows; the bytes above repeat its sign.
  template <class Lane>
  [[gnu::always_inline]] static constexpr void insert_bytes(const std::uint32_t (&a)[8], unsigned b, Lane lane,
                                                            V32 (&z)[kRows]) {
    const std::uint32_t kept = (1u << (4 * b)) - 1;
    const std::uint32_t selector = (0xccc4u << (4 * b) & 0xffffu) | (0x3210u & kept);
    const std::uint32_t step = 0x1111u & ~kept;
    unroll<kRows>([&](auto row) {
      X::set(z[row], lane,
             X::permute_bytes(X::get(z[row], lane), a[row % 8], selector + static_cast<std::uint32_t>(row / 8) * step));
    });
  }

  Source source_;
  std::uint32_t planes_ = 0;
  std::uint32_t dense_ = 0;
  std::uint32_t next_ = 0;  ///< place of the next plane byte
  std::uint32_t end_ = 0;
  V32 tops_;    ///< in lane i: level 2 of pair i
  V32 lookup_;  ///< in lane i: place of its level 1, which is below 2^16, and in the low half the selector of mask i
};

}  // namespace quern::kernels
