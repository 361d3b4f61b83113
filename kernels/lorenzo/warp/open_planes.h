// The bit planes of a tile from staged bytes to residuals in registers, for a warp, over an execution model X, in code
// without loops over planes: one copy for up to 8, 16 and 24 planes. Where plane_decode.h learns from each pair of
// sparse planes where the next one begins, here every lane reads all counts, and four planes are filled at a time. The
// bytes are hostile: every count is compared with what is left before it is used.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/bits.h"
#include "kernels/lorenzo/tile_code.h"
#include "kernels/lorenzo/warp/decode_area.h"
#include "kernels/lorenzo/warp/plane_decode.h"
#include "kernels/lorenzo/warp/tile.h"

namespace quern::kernels {

/// Planes of a payload in memory that the lanes share.
struct StagedPlanes {
  const std::uint32_t* words = nullptr;
  std::uint32_t first = 0;  ///< place of the first byte; below 16
  std::uint32_t bytes = 0;
  std::uint32_t planes = 0;
  std::uint32_t dense = 0;

  /// The four bytes from place i on, the same in all lanes. Two words are read.
  template <class X>
  [[gnu::always_inline]] constexpr std::uint32_t same_word(std::uint32_t i) const {
    const std::uint32_t* const at = words + i / 4;
    return X::funnel_right(X::load_same(at), X::load_same(at + 1), 8 * i);
  }
  template <class X>
  [[gnu::always_inline]] constexpr std::uint32_t word(std::uint32_t i, std::size_t lane) const {
    const std::uint32_t* const at = words + i / 4;
    return X::funnel_right(X::load(at, lane), X::load(at + 1, lane), 8 * i);
  }
};

/// The selectors of all masks of four bits, that of mask l % 16 in lane l.
template <class X>
constexpr void lane_gap_selectors(typename X::template vec<std::uint32_t>& selectors) {
  X::lanes([&](auto lane) { X::set(selectors, lane, gap_selector(static_cast<std::uint32_t>(lane) & 15)); });
}

/// Sparse planes, slot s for the s-th of them; false when they are not exactly the bytes behind the dense ones.
template <class X>
constexpr bool fill_sparse_planes(const StagedPlanes& in, const typename X::template vec<std::uint32_t>& selectors,
                                  std::uint32_t* slots) {
  using V32 = typename X::template vec<std::uint32_t>;
  constexpr unsigned kTogether = 2;  // pairs of planes
  const std::uint32_t sparse = in.planes - in.dense;
  const std::uint32_t level2 = in.first + static_cast<std::uint32_t>(kPlaneBytes) * in.dense;
  const std::uint32_t end = in.first + in.bytes;
  const auto of_pair = [&](std::uint32_t pair, std::uint32_t both) {
    return 2 * pair + 1 < sparse ? both : 2 * pair < sparse ? both & 0xffffu : 0u;
  };
  std::uint32_t level1 = level2 + 2 * sparse;
  V32 listed;
  X::lanes([&](auto lane) {
    const auto pair = static_cast<std::uint32_t>(lane);
    X::set(listed, lane,
           2 * pair < sparse ? popcount(of_pair(pair, in.template word<X>(level2 + 4 * pair, lane))) : 0u);
  });
  const std::uint32_t all = X::reduce_add(listed);
  if (end - level1 < all) return false;
  std::uint32_t next = level1 + all;
  typename X::template vec<bool> broken;
  X::lanes([&](auto lane) { X::set(broken, lane, false); });
  rolled(0, (sparse + 2 * kTogether - 1) / (2 * kTogether), [&](unsigned turn) {
    V32 bytes[kTogether], sums, low[kTogether], high[kTogether], selector[2 * kTogether];
    X::lanes([&](auto lane) { X::set(sums, lane, 0u); });
    unroll<kTogether>([&](auto k) {
      const std::uint32_t pair = kTogether * turn + static_cast<std::uint32_t>(k);
      // Behind the last pair the bytes are others, and none of them counts.
      const std::uint32_t tops = of_pair(pair, in.template same_word<X>(level2 + 4 * pair));
      X::lanes([&](auto lane) {
        std::uint32_t byte = 0;
        if ((tops >> lane & 1) != 0) {
          byte = X::load(reinterpret_cast<const std::uint8_t*>(in.words) + level1 + popcount(tops & bits_below(lane)),
                         lane);
          X::set(broken, lane, X::get(broken, lane) || byte == 0);
        }
        X::set(bytes[k], lane, byte);
        X::set(sums, lane, X::get(sums, lane) | popcount(byte) << (16 * k));
        X::set(selector[2 * k], lane, byte & 15);
        X::set(selector[2 * k + 1], lane, byte >> 4);
      });
      level1 += popcount(tops);
    });
    X::inclusive_scan(sums);
    const std::uint32_t total = X::broadcast(sums, kLanes - 1);
    X::lanes([&](auto lane) {
      unroll<kTogether>([&](auto k) {
        const std::uint32_t byte = X::get(bytes[k], lane);
        const std::uint32_t before = (X::get(sums, lane) >> (16 * k) & 0xffffu) - popcount(byte);
        const std::uint32_t here = next + (k == 0 ? 0 : total & 0xffffu) + before;
        const std::uint32_t i = here < end ? here : end;
        const std::uint32_t* const at = in.words + i / 4;
        const std::uint32_t middle = X::load(at + 1, lane);
        const std::uint32_t first = X::funnel_right(X::load(at, lane), middle, 8 * i);
        const std::uint32_t second = X::funnel_right(middle, X::load(at + 2, lane), 8 * i);
        X::set(low[k], lane, first);
        X::set(high[k], lane, X::permute_bytes(first, second, 0x3210u + 0x1111u * popcount(byte & 15)));
      });
    });
    next += (total & 0xffffu) + (total >> 16);
    unroll<2 * kTogether>([&](auto k) { X::shuffle(selector[k], selectors, selector[k]); });
    X::lanes([&](auto lane) {
      unroll<kTogether>([&](auto k) {
        const LanePack<std::uint32_t, 2> words{
            {X::permute_bytes(X::get(low[k], lane), 0, X::get(selector[2 * k], lane)),
             X::permute_bytes(X::get(high[k], lane), 0, X::get(selector[2 * k + 1], lane))}};
        auto* const to = reinterpret_cast<LanePack<std::uint32_t, 2>*>(slots + 2 * kLanes * (kTogether * turn + k));
        X::store(to + lane, lane, words);
      });
    });
  });
  const bool good = !X::any(broken) && next == end;
  X::sync();
  return good;
}

/// Words of up to 8 * Groups planes, 0 for those that the tile has not, all of them set whatever the bytes are; false on
/// bytes no encoder writes. Sparse planes pass through `slots`. Any word of so many dense planes may be read.
template <class X, unsigned Groups>
constexpr bool open_planes(const StagedPlanes& in, const typename X::template vec<std::uint32_t>& selectors,
                           std::uint32_t* slots, typename X::template vec<std::uint32_t> (&words)[8 * Groups]) {
  const std::uint32_t sparse = in.planes - in.dense;
  const std::uint32_t dense_bytes = static_cast<std::uint32_t>(kPlaneBytes) * in.dense;
  bool good = in.bytes >= dense_bytes + 2 * sparse;
  X::lanes([&](auto lane) {
    const std::uint32_t* const at = in.words + in.first / 4 + lane;
    unroll<8 * Groups>([&](auto p) {
      const std::uint32_t word =
          X::funnel_right(X::load(at + kLanes * p, lane), X::load(at + kLanes * p + 1, lane), 8 * in.first);
      X::set(words[p], lane, p < in.dense ? word : 0u);
    });
  });
  if (sparse == 0) return in.bytes == dense_bytes;
  if (good) good = fill_sparse_planes<X>(in, selectors, slots);
  X::lanes([&](auto lane) {
    const std::uint32_t* const from = slots + lane - kLanes * in.dense;
    unroll<8 * Groups>([&](auto p) {
      if (p >= in.dense && p < in.planes) X::set(words[p], lane, X::load(from + kLanes * p, lane));
    });
  });
  return good;
}

/// Planes to residuals, row r in rows[r]. Bit i of a residual is plane i + 1, or not if plane 0 says minus; the bits
/// above repeat its sign.
template <class X, unsigned Groups>
constexpr void planes_to_rows(const typename X::template vec<std::uint32_t> (&planes)[8 * Groups],
                              typename X::template vec<std::uint32_t> (&rows)[kRows]) {
  static_assert(Groups >= 1 && Groups <= 3);
  X::lanes([&](auto lane) {
    const std::uint32_t minus = X::get(planes[0], lane);
    std::uint32_t a[Groups][8];
    unroll<Groups>([&](auto g) {
      unroll<8>([&](auto j) {
        constexpr std::size_t kPlane = 8 * g + j + 1;
        if constexpr (kPlane < 8 * Groups) {
          a[g][j] = X::get(planes[kPlane], lane) ^ minus;
        } else {
          a[g][j] = minus;
        }
      });
      transpose_planes(a[g]);
    });
    // Word by word, so that registers of words become those of rows.
    unroll<8>([&](auto j) {
      unroll<4>([&](auto k) {
        constexpr auto K = static_cast<std::uint32_t>(k);
        std::uint32_t row = 0;
        if constexpr (Groups == 1) {
          row = X::permute_bytes(a[0][j], 0, 0x8880u + 0x1111u * K);
        } else if constexpr (Groups == 2) {
          row = X::permute_bytes(a[0][j], a[1][j], 0xcc40u + 0x1111u * K);
        } else {
          // Two bytes, the third, and the sign of that.
          const std::uint32_t low = X::permute_bytes(a[0][j], a[1][j], 0x0040u + 0x0011u * K);
          row = X::permute_bytes(low, a[2][j], 0xc410u + 0x1100u * K);
        }
        X::set(rows[8 * k + j], lane, row);
      });
    });
  });
}

}  // namespace quern::kernels
