// Grids and stored parameters of the stencil codec.
#include "codecs/stencil/rules.h"

#include <algorithm>

#include "kernels/core/stencil_taps.h"
#include "libcompress/format/reader.h"

namespace quern::codec::stencil {
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

Vector<std::uint8_t> write_params(const Layout& layout) { return {layout.first, layout.second}; }

Result<Layout> read_params(std::span<const std::uint8_t> bytes, const Shape& shape) {
  Reader reader(bytes);
  Layout layout;
  QUERN_ASSIGN_OR_RETURN(layout.first, reader.u8());
  QUERN_ASSIGN_OR_RETURN(layout.second, reader.u8());
  if (layout.first > layout.second || layout.second > shape.rank())
    return Status(StatusCode::corrupt, "stencil: axes cannot be merged at {0} and {1}", layout.first, layout.second);
  QUERN_RETURN_IF_ERROR(reader.expect_end());
  return layout;
}

}  // namespace quern::codec::stencil
