// Grids and stored parameters of the stencil codec.
#include "codecs/stencil/rules.h"

#include <algorithm>

#include "kernels/core/stencil_taps.h"
#include "libcompress/format/reader.h"

namespace quern::codec::stencil {
namespace {

// Third byte of the params; without it chunks are in raster order.
constexpr std::uint8_t kLevelsParam = 1;
constexpr std::uint8_t kSequentialParam = 2;
constexpr std::uint8_t kWaveletParam = 3;
constexpr std::uint64_t kSplitExtent = 8;  // shorter axes stay merged

}  // namespace

bool supports(DType dtype, BoundKind kind) {
  return kind == BoundKind::abs && dtype != DType::i64 && dtype != DType::u64;
}

ChunkGrid make_grid(const Shape& shape, const Layout& layout) {
  ChunkGrid grid;
  for (std::size_t axis = 0; axis < shape.rank(); ++axis)
    grid.extents[axis < layout.first ? 0 : axis < layout.second ? 1 : 2] *= shape[axis];
  for (std::size_t a = 0; a < 3; ++a) grid.chunk[a] = std::max<std::uint64_t>(grid.extents[a], 1);
  const bool line = grid.chunk[0] == 1 && grid.chunk[1] == 1;
  const std::uint64_t most = line ? kLineElems : kChunkElems;
  const auto too_large = [&] {
    if (grid.chunk[0] * grid.chunk[1] * grid.chunk[2] > most) return true;
    return kernels::PlaneGeometry::make(kernels::stencil_extents(grid.chunk), false).plane_elems > kPlaneElems;
  };
  while (too_large()) {
    auto& longest = *std::max_element(grid.chunk.begin(), grid.chunk.end());
    longest = (longest + 1) / 2;
  }
  return grid;
}

LevelsForm levels_form(const Shape& shape, const Layout& layout, const ChunkGrid& grid) {
  LevelsForm form;
  form.levels = layout.levels;
  form.wavelet = layout.wavelet;
  form.sequential = layout.sequential;
  const std::array<std::size_t, 4> ends{0, layout.first, layout.second, shape.rank()};
  for (std::size_t g = 0; g < 3; ++g) {
    if (ends[g + 1] - ends[g] < 2) continue;
    const std::uint64_t inner = shape[ends[g + 1] - 1];
    if (inner < kSplitExtent || grid.chunk[g] % inner != 0) break;
    form.split_axis = static_cast<std::uint8_t>(g);
    form.inner = inner;
    break;
  }
  return form;
}

Vector<std::uint8_t> write_params(const Layout& layout) {
  Vector<std::uint8_t> params{layout.first, layout.second};
  if (layout.levels) params.push_back(layout.sequential ? kSequentialParam : kLevelsParam);
  if (layout.wavelet) params.push_back(kWaveletParam);
  return params;
}

Result<Layout> read_params(std::span<const std::uint8_t> bytes, const Shape& shape) {
  Reader reader(bytes);
  Layout layout;
  QUERN_ASSIGN_OR_RETURN(layout.first, reader.u8());
  QUERN_ASSIGN_OR_RETURN(layout.second, reader.u8());
  if (layout.first > layout.second || layout.second > shape.rank())
    return Status(StatusCode::corrupt, "stencil: axes cannot be merged at {0} and {1}", layout.first, layout.second);
  if (reader.remaining() > 0) {
    QUERN_ASSIGN_OR_RETURN(const std::uint8_t order, reader.u8());
    if (order != kLevelsParam && order != kSequentialParam && order != kWaveletParam)
      return Status(StatusCode::corrupt, "stencil: chunks in an unknown order {0}", order);
    layout.levels = order != kWaveletParam;
    layout.wavelet = order == kWaveletParam;
    layout.sequential = order == kSequentialParam;
  }
  QUERN_RETURN_IF_ERROR(reader.expect_end());
  return layout;
}

}  // namespace quern::codec::stencil
