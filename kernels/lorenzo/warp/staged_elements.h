// Codes of a staged tile of any element type, for a warp, over an execution model X: quantized run by run to memory that
// the lanes share, then read in columns. A code is a word that orders as codes do, kZeroWord for code 0; codes of 64-bit
// words are counted from the tile's first one. Point-wise quantizers are left out: their tiles have signs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/quantizers.h"
#include "kernels/lorenzo/warp/elements.h"
#include "kernels/lorenzo/warp/staged_codes.h"
#include "kernels/lorenzo/warp/staged_encode.h"

namespace quern::kernels {

inline constexpr std::uint32_t kZeroWord = 0x80000000u;

/// What an encoder of staged tiles of any element type needs of ChunkRules.
struct ElementRules : StagedRules {
  Element element = Element::f32;
  QuantizerKind quantizer = QuantizerKind::exact;
  QuantizerParams params;

  [[gnu::always_inline]] static constexpr ElementRules of(const ChunkRules& rules) {
    ElementRules out;
    static_cast<StagedRules&>(out) = StagedRules::of(rules);
    out.element = rules.element;
    out.quantizer = rules.quantizer;
    out.params = rules.params;
    return out;
  }
};

/// Quantizes the elements in `stage`, run after run, to `words`, laid out as a stage. False: some element may be an
/// exception, or a code is too far from the first, which is `base` where codes have 64 bits.
template <class X, TileShape S, class Q>
constexpr bool quantize_staged(const Q& quantizer, const typename Q::Bits* stage, std::uint32_t* words,
                               std::uint64_t& base) {
  using Word = typename Q::Word;
  Word first = 0;
  if constexpr (sizeof(Word) == 8) {
    quantizer.encode(X::load_same(stage), first);
    base = first;
  }
  typename X::template vec<bool> refused;
  X::lanes([&](auto lane) { X::set(refused, lane, false); });
  rolled(0, kGroups, [&](unsigned g) {
    X::lanes([&](auto lane) {
      bool good = true;
      unroll<kGroupRows>([&](auto j) {
        const unsigned run = kGroupRows * g + static_cast<unsigned>(j);
        Word code = 0;
        good = quantizer.encode(X::load(stage + kLanes * run + static_cast<unsigned>(lane), lane), code) & good;
        const auto distance = static_cast<std::uint32_t>(code - first);
        if constexpr (sizeof(Word) == 8)
          good = (static_cast<std::int64_t>(code - first) == static_cast<std::int32_t>(distance)) & good;
        X::store(words + stage_cell<S>(run, static_cast<unsigned>(lane)), lane, distance ^ kZeroWord);
      });
      X::set(refused, lane, X::get(refused, lane) || !good);
    });
  });
  return !X::any(refused);
}

/// The same for an element type and a quantizer that are known at run time.
template <class X, TileShape S>
constexpr bool quantize_staged(const ElementRules& rules, const void* stage, std::uint32_t* words,
                               std::uint64_t& base) {
  bool accepted = false;
  with_quantizer(rules.element, rules.quantizer, [&]<class Q, class Exact>() {
    if constexpr (!Q::kHasSign)
      accepted = quantize_staged<X, S>(make_quantizer<Q>(rules.params), static_cast<const typename Q::Bits*>(stage),
                                       words, base);
  });
  return accepted;
}

/// First step, twin of read_staged: codes to registers, by way of `words`, a tile's worth of them. After the next sync
/// neither the staged values nor the words are needed any more.
template <class X, TileShape S>
constexpr void read_elements(const ElementRules& rules, const void* stage, std::uint32_t* words, StagedTile<X>& tile) {
  using V = typename X::template vec<std::uint32_t>;
  const bool accepted = quantize_staged<X, S>(rules, stage, words, tile.base);
  X::sync();
  tile.codes.zero = kZeroWord;
  load_column<X, S>(words, tile.codes.rows);
  V low, high;
  X::lanes([&](auto lane) {
    std::uint32_t least = 0xffffffffu, greatest = 0;
    unroll<kRows / 2>([&](auto i) {
      const std::uint32_t a = X::get(tile.codes.rows[2 * i], lane);
      const std::uint32_t b = X::get(tile.codes.rows[2 * i + 1], lane);
      least = X::least(least, a, b);
      greatest = X::greatest(greatest, a, b);
    });
    X::set(low, lane, least);
    X::set(high, lane, greatest);
  });
  tile.range = {X::reduce_min(low), X::reduce_max(high)};
  tile.spread = accepted ? tile.range.spread() : CodeSpread::refused;
}

/// What the tile adds to the scan of its segment: its equal pairs, and whether it has a value of its own kind that
/// codes tell nothing of. `phase` as in scan_pairs.
template <class X>
constexpr void scan_elements(const ElementRules& rules, const void* stage, std::uint32_t phase, const LaneFills& fills,
                             std::uint32_t& pairs, bool& special) {
  with_element_words(rules.element, [&](auto w) {
    using W = decltype(w);
    const auto* const values = static_cast<const typename W::Word*>(stage);
    pairs = count_staged_pairs<X, TileShape::plane>(values, phase);
    special = fills.count != 0 && has_staged_fill<X, W>(values, fills);
    // An absolute quantizer refuses them.
    if constexpr (W::kFloat)
      special = special || (rules.quantizer != QuantizerKind::absolute && has_staged_special<X, W>(values));
  });
}

}  // namespace quern::kernels
