// Writing the codes of a tile back as elements, for a warp, over an execution model X. Twin of cpu/tile_io.h. Templates
// are over the element's width.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/common/bits.h"
#include "kernels/lorenzo/chunk_task.h"
#include "kernels/lorenzo/packs.h"
#include "kernels/lorenzo/warp/decode_area.h"
#include "kernels/lorenzo/warp/tile.h"

namespace quern::kernels {

/// How the cells of a decoded tile give codes: `narrow` says that they hold distances of 32 bits from the seed.
template <class Word>
struct CellCodes {
  const std::uint32_t* cells = nullptr;
  Word seed = 0;
  bool narrow = false;

  /// N codes of a run, from a multiple of N on.
  template <class X, unsigned N>
  [[gnu::always_inline]] constexpr LanePack<Word, N> load(unsigned cell, std::size_t lane) const {
    using Words = LanePack<std::uint32_t, N>;
    const auto low = X::load(reinterpret_cast<const Words*>(cells + cell), lane);
    if constexpr (sizeof(Word) == 4) {
      return low;
    } else {
      LanePack<Word, N> codes;
      Words high{};
      if (!narrow) high = X::load(reinterpret_cast<const Words*>(cells + kCodeCells + cell), lane);
      unroll<N>([&](auto k) {
        const auto distance = static_cast<Word>(static_cast<std::int64_t>(static_cast<std::int32_t>(low.at[k])));
        codes.at[k] = narrow ? seed + distance : low.at[k] | static_cast<Word>(high.at[k]) << 32;
      });
      return codes;
    }
  }
};

/// Elements that a lane writes at once where a tile is whole: up to 16 bytes.
template <class Bits>
inline constexpr unsigned kPackElems = pack_elems(sizeof(Bits));

/// A whole tile without signs, a pack at a time: as many runs at once as a pack has elements. `Straight`: code without
/// a loop, for what is decoded most. store(at, lane, pack) stores a pack.
template <class X, TileShape S, bool Straight, class Q, class Bits, class Store>
constexpr void write_packs(const Q& quantizer, const CellCodes<CodeWord<Bits>>& codes, const LanePlace& place,
                           Bits* tile, const Store& store) {
  constexpr unsigned kElems = kPackElems<Bits>;
  constexpr unsigned kPacksOfRun = kLanes / kElems;
  using Pack = LanePack<Bits, kElems>;
  X::lanes([&](auto lane) {
    const unsigned run = static_cast<unsigned>(lane) / kPacksOfRun;
    const unsigned element = kElems * (static_cast<unsigned>(lane) % kPacksOfRun);
    const std::uint64_t step = kElems * run_step<S>(place);
    const std::uint64_t group = group_offset<S>(place, 1);
    Bits* at = tile + run * run_step<S>(place) + element;
    const auto write_group = [&](auto g) {
      Bits* to = at;
      unroll<kGroupRows / kElems>([&](auto k) {
        const unsigned first = kGroupRows * static_cast<unsigned>(g) + kElems * static_cast<unsigned>(k);
        const auto words = codes.template load<X, kElems>(code_cell(first + run, element), lane);
        Pack elements;
        unroll<kElems>([&](auto e) { elements.at[e] = quantizer.decode(words.at[e], false); });
        store(reinterpret_cast<Pack*>(to), lane, elements);
        to += step;
      });
      at += group;
    };
    if constexpr (Straight) {
      unroll<kGroups>(write_group);
    } else {
      rolled(0, kGroups, write_group);
    }
  });
}

/// Any tile, an element at a time; bit i of lane l: whether (run i, element l) exists, and its sign.
template <class X, TileShape S, class Q, class Bits>
constexpr void write_elements(const Q& quantizer, const CellCodes<CodeWord<Bits>>& codes,
                              const typename X::template vec<std::uint32_t>& exists,
                              const typename X::template vec<std::uint32_t>& minus, const LanePlace& place,
                              Bits* tile) {
  constexpr unsigned kSteps = 4;
  X::lanes([&](auto lane) {
    const std::uint32_t own = X::get(exists, lane);
    const std::uint32_t negative = Q::kHasSign ? X::get(minus, lane) : 0;
    rolled(0, kRows / kSteps, [&](unsigned i) {
      const unsigned first = kSteps * i;
      Bits* at = tile + run_offset<S>(place, first) + lane;
      unroll<kSteps>([&](auto step) {
        const unsigned run = first + static_cast<unsigned>(step);
        const auto word = codes.template load<X, 1>(code_cell(run, static_cast<unsigned>(lane)), lane);
        const Bits element = quantizer.decode(word.at[0], (negative >> run & 1) != 0);
        if ((own >> run & 1) != 0) *at = element;
        at += run_step<S>(place);
      });
    });
  });
}

/// Writes codes as elements; bit i of lane l of `minus` is the sign of (run i, element l), all 0 unless `has_minus`.
/// `packs`: the tile is whole and packs_aligned(); `store` as in write_packs.
template <class X, TileShape S, bool Straight, class Bits, class Store>
constexpr void write_lanes(Element element, QuantizerKind kind, const QuantizerParams& params,
                           const CellCodes<CodeWord<Bits>>& codes, const typename X::template vec<std::uint32_t>& minus,
                           bool has_minus, const LanePlace& place, bool packs, Bits* tile, const Store& store) {
  typename X::template vec<std::uint32_t> exists;
  X::lanes([&](auto lane) { X::set(exists, lane, 0xffffffffu); });
  if (!place.full) existing_runs<X, S>(place, exists);
  with_quantizer(element, kind, [&]<class Q, class Exact>() {
    if constexpr (std::is_same_v<typename Q::Bits, Bits>) {
      const Q quantizer = make_quantizer<Q>(params);
      if (packs && !has_minus) {
        write_packs<X, S, Straight>(quantizer, codes, place, tile, store);
      } else {
        write_elements<X, S>(quantizer, codes, exists, minus, place, tile);
      }
    }
  });
}

}  // namespace quern::kernels
