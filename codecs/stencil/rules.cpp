// Grids and stored parameters of the stencil codec.
#include "codecs/stencil/rules.h"

#include <algorithm>
#include <array>

#include "kernels/stencil/taps.h"
#include "libcompress/format/reader.h"
#include "libcompress/format/writer.h"

namespace quern::codec::stencil {
namespace {

// Third byte of the params; without it chunks are in raster order.
constexpr std::uint8_t kLevelsParam = 1;
constexpr std::uint8_t kSequentialParam = 2;
constexpr std::uint8_t kWaveletParam = 3;
constexpr std::uint8_t kEdgesParam = 4;    // added to the first two: chunks may have groups that are not linear
constexpr std::uint8_t kRasterParam = 0;   // only where a reference follows
constexpr std::uint8_t kModelParam = 0;    // behind it, where a reference has its depth: a model follows
constexpr std::uint64_t kSplitExtent = 8;  // shorter axes stay merged
// Chunks in levels begin at multiples of it along axes that levels coarsen: up to five levels of chunks side by side
// make one grid.
constexpr std::uint64_t kChunkStep = 32;

/// An axis of the grid that is two in levels, if chunks let it; inner is 1 when there is none.
struct SplitAxis {
  std::size_t axis = 0;
  std::uint64_t inner = 1;

  SplitAxis(const Shape& shape, const Layout& layout) {
    const std::array<std::size_t, 4> ends{0, layout.first, layout.second, shape.rank()};
    for (std::size_t g = 0; g < 3; ++g) {
      if (ends[g + 1] - ends[g] < 2) continue;
      const std::uint64_t fastest = shape[ends[g + 1] - 1];
      axis = g;
      inner = fastest >= kSplitExtent ? fastest : 1;
      return;
    }
  }
};

/// What extents of chunks along an axis are multiples of, when `half` of a longer one is to be taken.
std::uint64_t chunk_unit(const ChunkGrid& grid, const Layout& layout, const SplitAxis& split, std::size_t axis,
                         std::uint64_t half) {
  if (!layout.levels) return 1;
  if (split.inner > 1 && split.axis == axis && half >= split.inner) return split.inner;
  // The first of several axes of a chunk may be walked in sequence, and levels keep all of it.
  const auto is_long = [&](std::size_t a) { return grid.extents[a] > 1; };
  const bool first = (axis < 1 || !is_long(0)) && (axis < 2 || !is_long(1));
  const bool alone = !is_long((axis + 1) % 3) && !is_long((axis + 2) % 3);
  return layout.sequential && first && !alone ? 1 : kChunkStep;
}

}  // namespace

bool supports(DType dtype, BoundKind kind) {
  return kind == BoundKind::abs && dtype != DType::i64 && dtype != DType::u64;
}

ChunkGrid merged_grid(const Shape& shape, const Layout& layout) {
  ChunkGrid grid;
  for (std::size_t axis = 0; axis < shape.rank(); ++axis)
    grid.extents[axis < layout.first ? 0 : axis < layout.second ? 1 : 2] *= shape[axis];
  for (std::size_t a = 0; a < 3; ++a) grid.chunk[a] = std::max<std::uint64_t>(grid.extents[a], 1);
  return grid;
}

ChunkGrid make_grid(const Shape& shape, const Layout& layout) {
  ChunkGrid grid = merged_grid(shape, layout);
  const bool line = grid.chunk[0] == 1 && grid.chunk[1] == 1;
  const std::uint64_t most = line ? kLineElems : kChunkElems;
  const auto too_large = [&] {
    if (grid.chunk[0] * grid.chunk[1] * grid.chunk[2] > most) return true;
    return kernels::PlaneGeometry::make(kernels::stencil_extents(grid.chunk), false).plane_elems > kPlaneElems;
  };
  const SplitAxis split(shape, layout);
  while (too_large()) {
    const auto longest = std::max_element(grid.chunk.begin(), grid.chunk.end());
    const std::uint64_t half = (*longest + 1) / 2;
    const auto axis = static_cast<std::size_t>(longest - grid.chunk.begin());
    const std::uint64_t unit = chunk_unit(grid, layout, split, axis, half);
    *longest = (half + unit - 1) / unit * unit;
  }
  return grid;
}

ConstBox3 chunk_of_array(const ChunkGrid& grid, std::uint64_t i, const std::uint8_t* data, std::size_t width,
                         const std::uint8_t* special) {
  const std::array<std::uint64_t, 2> strides{grid.extents[1] * grid.extents[2], grid.extents[2]};
  const auto counts = grid.counts();
  const std::array<std::uint64_t, 3> place{i / (counts[1] * counts[2]), i / counts[2] % counts[1], i % counts[2]};
  std::array<std::uint64_t, 3> extents{};
  std::uint64_t first = 0;
  for (std::size_t a = 0; a < 3; ++a) {
    const std::uint64_t begin = place[a] * grid.chunk[a];
    extents[a] = std::min(grid.chunk[a], grid.extents[a] - begin);
    first += begin * (a < 2 ? strides[a] : 1);
  }
  return {data + first * width, extents, strides, special != nullptr ? special + first : nullptr, strides};
}

LevelsForm levels_form(const Shape& shape, const Layout& layout, const ChunkGrid& grid) {
  LevelsForm form;
  form.levels = layout.levels;
  form.wavelet = layout.wavelet;
  form.sequential = layout.sequential;
  form.edges = layout.edges;
  const SplitAxis split(shape, layout);
  if (split.inner == 1 || grid.chunk[split.axis] % split.inner != 0) return form;
  form.split_axis = static_cast<std::uint8_t>(split.axis);
  form.inner = split.inner;
  return form;
}

std::uint8_t order_number(const Layout& layout) {
  if (layout.wavelet) return kWaveletParam;
  if (!layout.levels) return kRasterParam;
  return layout.sequential ? kSequentialParam : kLevelsParam;
}

bool set_order(std::uint8_t number, Layout& layout) {
  if (number > kWaveletParam) return false;
  layout.levels = number == kLevelsParam || number == kSequentialParam;
  layout.wavelet = number == kWaveletParam;
  layout.sequential = number == kSequentialParam;
  return true;
}

void write_reference(const ReferenceId& reference, Writer& writer) {
  writer.u8(reference.depth);
  writer.u64(reference.hash);
}

Result<ReferenceId> read_reference(Reader& reader) {
  ReferenceId reference;
  QUERN_ASSIGN_OR_RETURN(reference.depth, reader.u8());
  QUERN_ASSIGN_OR_RETURN(reference.hash, reader.u64());
  if (reference.depth == 0) return Status(StatusCode::corrupt, "stencil: a reference that is no step away");
  return reference;
}

Vector<std::uint8_t> write_params(const Layout& layout) {
  Vector<std::uint8_t> params{layout.first, layout.second};
  const auto order = static_cast<std::uint8_t>(order_number(layout) + (layout.edges ? kEdgesParam : 0));
  if (order != kRasterParam || layout.reference) params.push_back(order);
  Writer writer(params);
  if (layout.reference) write_reference(*layout.reference, writer);
  return params;
}

Vector<std::uint8_t> write_params(const Layout& layout, std::span<const std::uint8_t> reference) {
  Vector<std::uint8_t> params = write_params(layout);
  params.push_back(kModelParam);
  params.insert(params.end(), reference.begin(), reference.end());
  return params;
}

Result<StoredParams> read_params(std::span<const std::uint8_t> bytes, const Shape& shape) {
  Reader reader(bytes);
  StoredParams stored;
  Layout& layout = stored.layout;
  QUERN_ASSIGN_OR_RETURN(layout.first, reader.u8());
  QUERN_ASSIGN_OR_RETURN(layout.second, reader.u8());
  if (layout.first > layout.second || layout.second > shape.rank())
    return Status(StatusCode::corrupt, "stencil: axes cannot be merged at {0} and {1}", layout.first, layout.second);
  if (reader.remaining() > 0) {
    QUERN_ASSIGN_OR_RETURN(std::uint8_t order, reader.u8());
    const bool alone = reader.remaining() == 0 || bytes[reader.position()] == kModelParam;
    layout.edges = alone && (order == kEdgesParam + kLevelsParam || order == kEdgesParam + kSequentialParam);
    if (layout.edges) order = static_cast<std::uint8_t>(order - kEdgesParam);
    const bool lone_raster = order == kRasterParam && reader.remaining() == 0;
    if (lone_raster || !set_order(order, layout))
      return Status(StatusCode::corrupt, "stencil: chunks in an unknown order {0}", order);
  }
  const std::size_t place = reader.position();
  if (reader.remaining() > 0 && bytes[place] == kModelParam) {
    if (order_number(layout) != kLevelsParam)
      return Status(StatusCode::corrupt, "stencil: networks for chunks that are not in levels");
    QUERN_RETURN_IF_ERROR(reader.skip(1));
    QUERN_ASSIGN_OR_RETURN(stored.model, models::read_model_reference(reader));
    return stored;
  }
  if (reader.remaining() > 0) {
    QUERN_ASSIGN_OR_RETURN(layout.reference, read_reference(reader));
  }
  QUERN_RETURN_IF_ERROR(reader.expect_end());
  return stored;
}

}  // namespace quern::codec::stencil
