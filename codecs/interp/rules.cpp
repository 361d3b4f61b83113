// Grids and stored parameters of the interp codec.
#include "codecs/interp/rules.h"

#include <algorithm>

#include "libcompress/format/reader.h"
#include "libcompress/format/writer.h"

namespace quern::codec::interp {
namespace {

using kernels::InterpKind;

constexpr unsigned kAxesBits = 3;  ///< of a predictor's byte; the kind is above them

}  // namespace

bool supports(DType dtype, BoundKind kind) {
  return kind == BoundKind::abs && dtype != DType::i64 && dtype != DType::u64;
}

ChunkGrid make_grid(const Shape& shape, const Layout& layout) {
  ChunkGrid grid;
  for (std::size_t axis = 0; axis < shape.rank(); ++axis)
    grid.extents[axis < layout.first ? 0 : axis < layout.second ? 1 : 2] *= shape[axis];
  std::array<std::uint64_t, 3> tiles{1, 1, 1};  // in a chunk
  std::array<std::uint64_t, 3> most{};
  const auto extent = [&](std::size_t a) { return std::max<std::uint64_t>(grid.extents[a], 1); };
  for (std::size_t a = 0; a < 3; ++a) most[a] = ((extent(a) - 1) >> layout.tile.logs[a]) + 1;
  const auto elems = [&] {
    std::uint64_t n = 1;
    for (std::size_t a = 0; a < 3; ++a) n *= std::min(tiles[a] << layout.tile.logs[a], extent(a));
    return n;
  };
  for (bool grown = true; grown;) {
    grown = false;
    for (std::size_t a = 3; a-- > 0;) {
      if (tiles[a] >= most[a]) continue;
      tiles[a] *= 2;
      const bool fits = elems() <= kChunkElems;
      if (!fits) tiles[a] /= 2;
      grown = grown || fits;
    }
  }
  for (std::size_t a = 0; a < 3; ++a) {
    const std::uint64_t chunks = (most[a] - 1) / tiles[a] + 1;
    const std::uint64_t even = (most[a] - 1) / chunks + 1;
    grid.chunk[a] = std::min(even << layout.tile.logs[a], extent(a));
  }
  return grid;
}

Vector<std::uint8_t> write_params(const Layout& layout, const Predictors& predictors) {
  Vector<std::uint8_t> params{layout.first, layout.second};
  for (const std::uint8_t log : layout.tile.logs) params.push_back(log);
  for_classes(layout.tile, [&](unsigned level, unsigned c) {
    const kernels::InterpPredictor& predictor = predictors[level][c - 1];
    params.push_back(static_cast<std::uint8_t>(predictor.axes | static_cast<unsigned>(predictor.kind) << kAxesBits));
  });
  return params;
}

Status read_params(std::span<const std::uint8_t> bytes, const Shape& shape, Layout& layout, Predictors& predictors) {
  Reader reader(bytes);
  QUERN_ASSIGN_OR_RETURN(layout.first, reader.u8());
  QUERN_ASSIGN_OR_RETURN(layout.second, reader.u8());
  if (layout.first > layout.second || layout.second > shape.rank())
    return Status(StatusCode::corrupt, "interp: merged axes do not fit the shape");
  unsigned sum = 0;
  for (std::uint8_t& log : layout.tile.logs) {
    QUERN_ASSIGN_OR_RETURN(log, reader.u8());
    sum += log;
  }
  if (sum == 0 || sum > kernels::kInterpMaxTileLog) return Status(StatusCode::corrupt, "interp: tiles of a wrong size");
  bool known = true;
  Status status;
  for_classes(layout.tile, [&](unsigned level, unsigned c) {
    const Result<std::uint8_t> byte = reader.u8();
    if (!byte.ok()) {
      status = byte.status();
      return;
    }
    const unsigned axes = *byte & ((1u << kAxesBits) - 1);
    const unsigned kind = *byte >> kAxesBits;
    known = known && axes != 0 && (axes & ~c) == 0 && kind < kernels::kInterpKinds;
    predictors[level][c - 1] = {static_cast<std::uint8_t>(axes), static_cast<InterpKind>(kind)};
  });
  QUERN_RETURN_IF_ERROR(status);
  if (!known) return Status(StatusCode::corrupt, "interp: a predictor that its class cannot have");
  return reader.expect_end();
}

}  // namespace quern::codec::interp
