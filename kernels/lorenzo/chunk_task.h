// What a chunk kernel is told: plain data shared by every execution model.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/common/element_type.h"
#include "kernels/lorenzo/quantize.h"
#include "kernels/lorenzo/tile.h"

namespace quern::kernels {

/// How elements become codes.
enum class QuantizerKind : std::uint8_t { absolute = 0, pointwise = 1, exact = 2 };

inline constexpr std::size_t kMaxCandidates = 4;

/// Everything about an array that its chunks share.
struct ChunkRules {
  Element element = Element::f32;
  QuantizerKind quantizer = QuantizerKind::absolute;
  TileShape tile = TileShape::plane;
  std::array<Predictor, kMaxCandidates>
      candidates{};           ///< tried by the encoder in this order; the first of the cheapest wins
  std::uint8_t reserved = 0;  ///< rules are copied as words: no byte of them is left undefined
  std::size_t candidate_count = 0;
  QuantizerParams params;
};

/// A chunk inside an array: extents slowest axis first, strides of axes 0 and 1 in elements, last axis contiguous.
struct ChunkBox {
  std::array<std::uint64_t, 3> extents{1, 1, 1};
  std::array<std::uint64_t, 2> strides{0, 0};
};

/// Tiles a chunk is cut into along each axis.
[[gnu::always_inline]] constexpr std::array<std::uint64_t, 3> tile_counts(const ChunkBox& box, TileShape shape) {
  const auto t = tile_extents(shape);
  return {(box.extents[0] + t[0] - 1) / t[0], (box.extents[1] + t[1] - 1) / t[1], (box.extents[2] + t[2] - 1) / t[2]};
}

/// Largest stored form of a chunk of that many tiles, slack included.
[[gnu::always_inline]] constexpr std::size_t max_lorenzo_chunk_bytes(Element element, std::size_t tiles) {
  const std::size_t word_bits = element_bytes(element) == 8 ? 64 : 32;
  const std::size_t signs = 1 + 128;
  const std::size_t exceptions = 4 + 128 + 256 * element_bytes(element);
  return 1 + tiles * (16 + signs + exceptions + word_bits * 128) + 128;
}

/// Calls f.template operator()<Q, Exact>() with the quantizer for an element type and kind, and the exact quantizer for
/// tiles where Q does not pay. Point-wise bounds exist for floating-point types alone (returns false otherwise).
template <class F>
constexpr bool with_quantizer(Element e, QuantizerKind kind, F&& f) {
  const auto pick = [&]<class Abs, class Pointwise, class Exact>() {
    if (kind == QuantizerKind::exact) {
      f.template operator()<Exact, Exact>();
    } else if (kind == QuantizerKind::absolute) {
      f.template operator()<Abs, Exact>();
    } else if constexpr (!std::is_void_v<Pointwise>) {
      f.template operator()<Pointwise, Exact>();
    } else {
      return false;
    }
    return true;
  };
  using std::uint16_t, std::uint32_t, std::uint64_t, std::uint8_t;
  switch (e) {
    case Element::f16:
      return pick.template
      operator()<AbsQuantizer32<Binary16>, PointwiseQuantizer<uint16_t, 10>, ExactQuantizer<uint16_t, true, true>>();
    case Element::bf16:
      return pick.template
      operator()<AbsQuantizer32<Bfloat16>, PointwiseQuantizer<uint16_t, 7>, ExactQuantizer<uint16_t, true, true>>();
    case Element::f32:
      return pick.template
      operator()<AbsQuantizer32<Binary32>, PointwiseQuantizer<uint32_t, 23>, ExactQuantizer<uint32_t, true, true>>();
    case Element::f64:
      return pick.template
      operator()<AbsQuantizer64, PointwiseQuantizer<uint64_t, 52>, ExactQuantizer<uint64_t, true, true>>();
    case Element::i8:
      return pick.template operator()<IntQuantizer<std::int8_t>, void, ExactQuantizer<uint8_t, false, true>>();
    case Element::i16:
      return pick.template operator()<IntQuantizer<std::int16_t>, void, ExactQuantizer<uint16_t, false, true>>();
    case Element::i32:
      return pick.template operator()<IntQuantizer<std::int32_t>, void, ExactQuantizer<uint32_t, false, true>>();
    case Element::i64:
      return pick.template operator()<IntQuantizer<std::int64_t>, void, ExactQuantizer<uint64_t, false, true>>();
    case Element::u8:
      return pick.template operator()<IntQuantizer<uint8_t>, void, ExactQuantizer<uint8_t, false, false>>();
    case Element::u16:
      return pick.template operator()<IntQuantizer<uint16_t>, void, ExactQuantizer<uint16_t, false, false>>();
    case Element::u32:
      return pick.template operator()<IntQuantizer<uint32_t>, void, ExactQuantizer<uint32_t, false, false>>();
    case Element::u64:
      return pick.template operator()<IntQuantizer<uint64_t>, void, ExactQuantizer<uint64_t, false, false>>();
  }
  return false;
}

/// ExactQuantizer takes no parameters; this makes any quantizer from them.
template <class Q>
[[gnu::always_inline]] constexpr Q make_quantizer(const QuantizerParams& p) {
  if constexpr (std::is_constructible_v<Q, const QuantizerParams&>) {
    return Q(p);
  } else {
    return Q{};
  }
}

}  // namespace quern::kernels
