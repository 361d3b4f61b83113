// From an element type and an enforced bound to the numbers the kernels work with, and their stored form. What is
// constexpr is for host and device code alike.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include <quern/array.h>
#include <quern/bound.h>
#include <quern/codec.h>
#include <quern/memory.h>
#include <quern/status.h>

#include "codecs/lorenzo/step.h"
#include "kernels/common/unroll.h"
#include "kernels/lorenzo/chunk_task.h"
#include "libcompress/core/element_of.h"
#include "libcompress/core/quantizer_rules.h"
#include "libcompress/core/rounding.h"
#include "libcompress/format/bytes.h"

namespace quern::codec::lorenzo {

/// How the array's axes become the three axes of the grid: [0, first) [first, second) [second, rank).
struct Layout {
  kernels::TileShape tile = kernels::TileShape::line;
  std::uint8_t first = 0;
  std::uint8_t second = 0;

  friend bool operator==(const Layout&, const Layout&) = default;
};

/// The grid of a layout: merged extents, and chunks of 4 (8-byte elements), 8 or 16 (1-byte) tiles.
constexpr ChunkGrid make_grid(const Shape& shape, const Layout& layout, DType dtype);

/// Quantizer for a bound: step, reciprocal and the largest error, all rounded so that the bound cannot be missed.
/// Falls back to exact codes where the working type has no step (bound 0, lossless, below the smallest number).
constexpr kernels::ChunkRules make_rules(DType dtype, const EnforcedBound& bound, const Layout& layout);

/// Whether rules want the largest magnitude of the sample: a step with slack (step.h) depends on it.
constexpr bool wants_peak(const kernels::ChunkRules& rules);
/// Gives them a step with slack for a sample of magnitudes up to `peak`, and the largest code it serves (`promised`).
constexpr void set_peak(double peak, kernels::ChunkRules& rules);

/// Codec parameters as stored; at most kMaxStoredRules bytes.
inline constexpr std::size_t kMaxStoredRules = 4 + kernels::kMaxLeb128Bytes;
constexpr void put_params(ByteWriter& out, const kernels::ChunkRules& rules, const Layout& layout);
Vector<std::uint8_t> write_params(const kernels::ChunkRules& rules, const Layout& layout);

/// What can be wrong with stored parameters.
enum class ParamsFault : std::uint8_t {
  none = 0,
  unreadable,    ///< the reader knows why
  unknown_kind,  ///< of quantizer or tile: the first two bytes
  merged_axes,   ///< the next two
  pointwise_integers,
  step,
  line_axes,
  plane_axes,
};
/// Reads them back; nothing may follow them.
constexpr ParamsFault get_params(ByteReader& in, DType dtype, const Shape& shape, kernels::ChunkRules& rules,
                                 Layout& layout);
/// The same; `corrupt` when they break a rule.
Status read_params(std::span<const std::uint8_t> bytes, DType dtype, const Shape& shape, kernels::ChunkRules& rules,
                   Layout& layout);

namespace detail {

inline constexpr std::uint8_t kMaxKind = 2;
inline constexpr std::uint8_t kMaxTile = 2;

/// Numbers of tiles along each axis of a chunk: doubled along x, y, z in turn while the grid has more to give. Axes are
/// constants, for an index that is not takes memory on a device.
constexpr std::array<std::uint64_t, 3> tiles_per_chunk(const std::array<std::uint64_t, 3>& extents,
                                                       kernels::TileShape tile, DType dtype) {
  std::size_t tiles = dtype_bytes(dtype) == 8 ? 4 : dtype_bytes(dtype) == 1 ? 16 : 8;
  const auto size = kernels::tile_extents(tile);
  std::array<std::uint64_t, 3> counts{1, 1, 1};
  for (bool grown = true; grown && tiles > 1;) {
    grown = false;
    kernels::unroll<3>([&](auto i) {
      constexpr std::size_t kAxis = 2 - decltype(i)::value;
      if (tiles == 1 || counts[kAxis] * size[kAxis] >= extents[kAxis]) return;
      counts[kAxis] *= 2;
      tiles /= 2;
      grown = true;
    });
  }
  return counts;
}

/// Whether the quantizer's step is a floating-point number.
constexpr bool has_float_step(const kernels::ChunkRules& rules) {
  return rules.quantizer == kernels::QuantizerKind::absolute && is_float(static_cast<DType>(rules.element));
}

}  // namespace detail

constexpr ChunkGrid make_grid(const Shape& shape, const Layout& layout, DType dtype) {
  ChunkGrid grid;
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
    if (axis < layout.first) {
      grid.extents[0] *= shape[axis];
    } else if (axis < layout.second) {
      grid.extents[1] *= shape[axis];
    } else {
      grid.extents[2] *= shape[axis];
    }
  }
  const auto counts = detail::tiles_per_chunk(grid.extents, layout.tile, dtype);
  const auto size = kernels::tile_extents(layout.tile);
  for (std::size_t a = 0; a < 3; ++a)
    grid.chunk[a] = std::min(counts[a] * size[a], std::max<std::uint64_t>(grid.extents[a], 1));
  return grid;
}

constexpr kernels::ChunkRules make_rules(DType dtype, const EnforcedBound& bound, const Layout& layout) {
  kernels::ChunkRules rules;
  rules.element = element_of(dtype);
  rules.tile = layout.tile;
  const QuantizerRules quantizer = quantizer_rules(dtype, bound);
  rules.quantizer = quantizer.kind;
  rules.params = quantizer.params;
  return rules;
}

constexpr bool wants_peak(const kernels::ChunkRules& rules) {
  return rules.quantizer == kernels::QuantizerKind::absolute && rules.element == kernels::Element::f32;
}

constexpr void set_peak(double peak, kernels::ChunkRules& rules) {
  take_slack(served_code(peak, rules.params.strict), rules.params);
}

constexpr void put_params(ByteWriter& out, const kernels::ChunkRules& rules, const Layout& layout) {
  out.u8(static_cast<std::uint8_t>(rules.quantizer));
  out.u8(static_cast<std::uint8_t>(layout.tile));
  out.u8(layout.first);
  out.u8(layout.second);
  if (detail::has_float_step(rules)) {
    out.f64(rules.params.step);
  } else if (rules.quantizer != kernels::QuantizerKind::exact) {
    out.varint(rules.params.int_half);
  }
}

constexpr ParamsFault get_params(ByteReader& in, DType dtype, const Shape& shape, kernels::ChunkRules& rules,
                                 Layout& layout) {
  using kernels::QuantizerKind, kernels::TileShape;
  const std::uint8_t kind = in.u8();
  const std::uint8_t tile = in.u8();
  layout.first = in.u8();
  layout.second = in.u8();
  if (!in.ok()) return ParamsFault::unreadable;
  if (kind > detail::kMaxKind || tile > detail::kMaxTile) return ParamsFault::unknown_kind;
  if (layout.first > layout.second || layout.second > shape.rank()) return ParamsFault::merged_axes;
  layout.tile = static_cast<TileShape>(tile);
  rules = kernels::ChunkRules{};
  rules.element = element_of(dtype);
  rules.tile = layout.tile;
  rules.quantizer = static_cast<QuantizerKind>(kind);
  if (rules.quantizer == QuantizerKind::pointwise && is_integer(dtype)) return ParamsFault::pointwise_integers;
  if (detail::has_float_step(rules)) {
    const double step = in.f64();
    if (!in.ok()) return ParamsFault::unreadable;
    rules.params.step = step;
    if (!is_float_step(dtype, step)) return ParamsFault::step;
  } else if (rules.quantizer != QuantizerKind::exact) {
    const std::uint64_t half = in.varint(largest_half(dtype));
    if (!in.ok()) return ParamsFault::unreadable;
    set_int_step(half, dtype, rules.params);
  }
  if (layout.tile == TileShape::line && layout.second != 0) return ParamsFault::line_axes;
  if (layout.tile == TileShape::plane && layout.first != 0) return ParamsFault::plane_axes;
  in.expect_end();
  return in.ok() ? ParamsFault::none : ParamsFault::unreadable;
}

}  // namespace quern::codec::lorenzo
