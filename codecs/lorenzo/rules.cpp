// Quantizer numbers, grids and stored parameters of the lorenzo codec.
#include "codecs/lorenzo/rules.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "libcompress/format/reader.h"
#include "libcompress/format/writer.h"

namespace quern::codec::lorenzo {
namespace {

using kernels::ChunkRules;
using kernels::QuantizerKind;
using kernels::TileShape;

unsigned fraction_bits(DType dtype) {
  switch (dtype) {
    case DType::f16: return 10;
    case DType::bf16: return 7;
    case DType::f32: return 23;
    default: return 52;
  }
}

unsigned word_bits(DType dtype) { return dtype_bytes(dtype) == 8 ? 64 : 32; }

/// Largest number of type F that is not above `bound`.
template <class F>
F round_down(double bound) {
  F f = static_cast<F>(bound);
  if (static_cast<double>(f) > bound) f = std::nextafter(f, F{0});
  return f;
}

/// Step 2E and its reciprocal in the working type; false when there is no usable step.
template <class F>
bool set_float_step(double bound, kernels::QuantizerParams& params) {
  const F largest_error = std::min(round_down<F>(bound), std::numeric_limits<F>::max() / 2);
  const F step = 2 * largest_error;
  const F reciprocal = 1 / step;
  if (!(step > 0) || !std::isfinite(reciprocal)) return false;
  params.bound = bound;
  params.strict = largest_error;
  params.step = step;
  params.reciprocal = reciprocal;
  return true;
}

void set_int_step(std::uint64_t half, DType dtype, kernels::QuantizerParams& params) {
  params.int_half = half;
  params.int_step = 2 * half + 1;
  const std::uint64_t top = word_bits(dtype) == 64 ? ~UINT64_C(0) : UINT64_C(0xffffffff);
  params.int_reciprocal = top / params.int_step;
}

/// Largest half-width whose step 2*half + 1 fits the word.
std::uint64_t largest_half(DType dtype) { return (word_bits(dtype) == 64 ? ~UINT64_C(0) : UINT64_C(0xffffffff)) >> 1; }

std::uint64_t floor_to_u64(double v) { return v >= 0x1p63 ? ~UINT64_C(0) : static_cast<std::uint64_t>(v); }

/// Numbers of tiles along each axis of a chunk: doubled along x, y, z in turn while the grid has more to give.
std::array<std::uint64_t, 3> tiles_per_chunk(const std::array<std::uint64_t, 3>& extents, TileShape tile, DType dtype) {
  std::size_t tiles = dtype_bytes(dtype) == 8 ? 4 : dtype_bytes(dtype) == 1 ? 16 : 8;
  const auto size = kernels::tile_extents(tile);
  std::array<std::uint64_t, 3> counts{1, 1, 1};
  std::size_t axis = 2;
  for (unsigned idle = 0; tiles > 1 && idle < 3; axis = axis == 0 ? 2 : axis - 1) {
    if (counts[axis] * size[axis] < extents[axis]) {
      counts[axis] *= 2;
      tiles /= 2;
      idle = 0;
    } else {
      ++idle;
    }
  }
  return counts;
}

constexpr std::uint8_t kMaxKind = 2;
constexpr std::uint8_t kMaxTile = 2;

}  // namespace

ChunkGrid make_grid(const Shape& shape, const Layout& layout, DType dtype) {
  ChunkGrid grid;
  for (std::size_t axis = 0; axis < shape.rank(); ++axis)
    grid.extents[axis < layout.first ? 0 : axis < layout.second ? 1 : 2] *= shape[axis];
  const auto counts = tiles_per_chunk(grid.extents, layout.tile, dtype);
  const auto size = kernels::tile_extents(layout.tile);
  for (std::size_t a = 0; a < 3; ++a)
    grid.chunk[a] = std::min(counts[a] * size[a], std::max<std::uint64_t>(grid.extents[a], 1));
  return grid;
}

ChunkRules make_rules(DType dtype, const EnforcedBound& bound, const Layout& layout) {
  ChunkRules rules;
  rules.element = static_cast<kernels::Element>(dtype);
  rules.tile = layout.tile;
  rules.quantizer = QuantizerKind::exact;
  if (bound.kind == BoundKind::pwrel) {
    rules.quantizer = QuantizerKind::pointwise;
    set_int_step(floor_to_u64(std::ldexp(bound.value, static_cast<int>(fraction_bits(dtype)))), dtype, rules.params);
  } else if (bound.kind == BoundKind::abs && is_integer(dtype)) {
    rules.quantizer = QuantizerKind::absolute;
    set_int_step(std::min(floor_to_u64(bound.value), largest_half(dtype)), dtype, rules.params);
  } else if (bound.kind == BoundKind::abs) {
    const bool usable = dtype == DType::f64 ? set_float_step<double>(bound.value, rules.params)
                                            : set_float_step<float>(bound.value, rules.params);
    if (usable) rules.quantizer = QuantizerKind::absolute;
  }
  return rules;
}

Vector<std::uint8_t> write_params(const ChunkRules& rules, const Layout& layout) {
  Vector<std::uint8_t> bytes;
  Writer writer(bytes);
  writer.u8(static_cast<std::uint8_t>(rules.quantizer));
  writer.u8(static_cast<std::uint8_t>(layout.tile));
  writer.u8(layout.first);
  writer.u8(layout.second);
  if (rules.quantizer == QuantizerKind::absolute && is_float(static_cast<DType>(rules.element))) {
    writer.f64(rules.params.step);
  } else if (rules.quantizer != QuantizerKind::exact) {
    writer.varint(rules.params.int_half);
  }
  return bytes;
}

Status read_params(std::span<const std::uint8_t> bytes, DType dtype, const Shape& shape, ChunkRules& rules,
                   Layout& layout) {
  Reader reader(bytes);
  QUERN_ASSIGN_OR_RETURN(const std::uint8_t kind, reader.u8());
  QUERN_ASSIGN_OR_RETURN(const std::uint8_t tile, reader.u8());
  QUERN_ASSIGN_OR_RETURN(layout.first, reader.u8());
  QUERN_ASSIGN_OR_RETURN(layout.second, reader.u8());
  if (kind > kMaxKind || tile > kMaxTile)
    return Status(StatusCode::corrupt, "lorenzo: quantizer {0} or tile {1} is unknown", kind, tile);
  if (layout.first > layout.second || layout.second > shape.rank())
    return Status(StatusCode::corrupt, "lorenzo: axes cannot be merged at {0} and {1}", layout.first, layout.second);
  layout.tile = static_cast<TileShape>(tile);
  rules = ChunkRules{};
  rules.element = static_cast<kernels::Element>(dtype);
  rules.tile = layout.tile;
  rules.quantizer = static_cast<QuantizerKind>(kind);
  if (rules.quantizer == QuantizerKind::pointwise && is_integer(dtype))
    return Status(StatusCode::corrupt, "lorenzo: a point-wise bound on integers");
  if (rules.quantizer == QuantizerKind::absolute && is_float(dtype)) {
    QUERN_ASSIGN_OR_RETURN(rules.params.step, reader.f64());
    const bool in_type =
        dtype == DType::f64 || static_cast<double>(static_cast<float>(rules.params.step)) == rules.params.step;
    if (!(rules.params.step > 0) || !std::isfinite(rules.params.step) || !in_type)
      return Status(StatusCode::corrupt, "lorenzo: the step is not a positive number of the working type");
  } else if (rules.quantizer != QuantizerKind::exact) {
    QUERN_ASSIGN_OR_RETURN(const std::uint64_t half, reader.varint(largest_half(dtype)));
    set_int_step(half, dtype, rules.params);
  }
  if (layout.tile == TileShape::line && layout.second != 0)
    return Status(StatusCode::corrupt, "lorenzo: line tiles on more than one axis");
  if (layout.tile == TileShape::plane && layout.first != 0)
    return Status(StatusCode::corrupt, "lorenzo: plane tiles on more than two axes");
  return reader.expect_end();
}

}  // namespace quern::codec::lorenzo
