// Where chunks and segments lie. A segment is a box of at most kMaxSegmentChunks chunks; both are numbered in raster
// order of the chunk grid, so that a segment's chunks have consecutive numbers. Depends on the array's grid alone. Host
// and device code use it alike.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <quern/codec.h>
#include <quern/dtype.h>

#include "libcompress/format/grid/limits.h"

namespace quern {

using Index3 = std::array<std::uint64_t, 3>;

/// A box of elements of the grid.
struct GridBox {
  Index3 begin{};
  Index3 extents{};

  constexpr std::uint64_t elems() const { return extents[0] * extents[1] * extents[2]; }
};

class SegmentLayout {
 public:
  constexpr SegmentLayout() = default;
  /// `grid` must have passed check_grid.
  constexpr SegmentLayout(const ChunkGrid& grid, DType dtype, bool level_tables = false);

  constexpr const ChunkGrid& grid() const { return grid_; }
  constexpr DType dtype() const { return dtype_; }
  /// True when segments have a level table.
  constexpr bool has_level_tables() const { return level_tables_; }
  constexpr std::uint64_t chunks() const { return chunk_counts_[0] * chunk_counts_[1] * chunk_counts_[2]; }
  constexpr std::uint64_t segments() const { return segment_counts_[0] * segment_counts_[1] * segment_counts_[2]; }

  constexpr GridBox segment_box(std::uint64_t segment) const;
  constexpr std::uint64_t segment_chunks(std::uint64_t segment) const;
  /// Number, within the stream, of the segment's first chunk.
  constexpr std::uint64_t first_chunk(std::uint64_t segment) const;
  /// Box of the `k`-th chunk of a segment, in elements of the grid.
  constexpr GridBox chunk_box(std::uint64_t segment, std::uint64_t k) const;
  /// Segment and position in it of the chunk that holds an element.
  struct ChunkPlace {
    std::uint64_t segment = 0;
    std::uint64_t k = 0;
  };
  constexpr ChunkPlace place_of(const Index3& element) const;

  /// Bytes of a full chunk's values.
  constexpr std::uint64_t full_chunk_bytes() const;
  /// Elements of the largest segment.
  constexpr std::uint64_t max_segment_elems() const;

  /// Bands: runs of whole segments whose elements are consecutive in C order.
  constexpr std::uint64_t bands() const { return segment_counts_[band_axis_]; }
  constexpr std::uint64_t band_segments() const;
  /// First element, in C order, of a band; band == bands() gives the number of elements.
  constexpr std::uint64_t band_begin(std::uint64_t band) const;

  /// Flat C order index of an element of the grid.
  constexpr std::uint64_t flat(const Index3& at) const {
    return (at[0] * grid_.extents[1] + at[1]) * grid_.extents[2] + at[2];
  }

 private:
  constexpr Index3 segment_index(std::uint64_t segment) const;
  /// Chunk coordinates of a segment's first chunk and its extents in chunks.
  constexpr GridBox chunks_of(std::uint64_t segment) const;

  ChunkGrid grid_;
  DType dtype_ = DType::f32;
  bool level_tables_ = false;
  Index3 chunk_counts_{};
  Index3 per_segment_{1, 1, 1};  // chunks of a full segment along each axis
  Index3 segment_counts_{};
  std::size_t band_axis_ = 0;  // first axis with more than one element
};

static_assert(std::is_trivially_copyable_v<SegmentLayout>);

constexpr SegmentLayout::SegmentLayout(const ChunkGrid& grid, DType dtype, bool level_tables)
    : grid_(grid), dtype_(dtype), level_tables_(level_tables), chunk_counts_(grid.counts()) {
  const std::uint64_t rows = chunk_counts_[1];
  const std::uint64_t columns = chunk_counts_[2];
  if (rows <= kMaxSegmentChunks && columns <= kMaxSegmentChunks && rows * columns <= kMaxSegmentChunks) {
    per_segment_ = {kMaxSegmentChunks / std::max<std::uint64_t>(rows * columns, 1), rows, columns};
  } else if (columns <= kMaxSegmentChunks) {
    per_segment_ = {1, kMaxSegmentChunks / std::max<std::uint64_t>(columns, 1), columns};
  } else {
    per_segment_ = {1, 1, kMaxSegmentChunks};
  }
  for (std::size_t a = 0; a < 3; ++a) {
    per_segment_[a] = std::max<std::uint64_t>(1, std::min(per_segment_[a], chunk_counts_[a]));
    segment_counts_[a] = (chunk_counts_[a] + per_segment_[a] - 1) / per_segment_[a];
  }
  band_axis_ = grid_.extents[0] != 1 ? 0 : grid_.extents[1] != 1 ? 1 : 2;
}

constexpr Index3 SegmentLayout::segment_index(std::uint64_t segment) const {
  const std::uint64_t columns = segment_counts_[2];
  const std::uint64_t rows = segment_counts_[1];
  return {segment / columns / rows, segment / columns % rows, segment % columns};
}

constexpr GridBox SegmentLayout::chunks_of(std::uint64_t segment) const {
  const Index3 at = segment_index(segment);
  GridBox box;
  for (std::size_t a = 0; a < 3; ++a) {
    box.begin[a] = at[a] * per_segment_[a];
    box.extents[a] = std::min(per_segment_[a], chunk_counts_[a] - box.begin[a]);
  }
  return box;
}

constexpr GridBox SegmentLayout::segment_box(std::uint64_t segment) const {
  const GridBox chunks = chunks_of(segment);
  GridBox box;
  for (std::size_t a = 0; a < 3; ++a) {
    box.begin[a] = chunks.begin[a] * grid_.chunk[a];
    const std::uint64_t end = std::min(grid_.extents[a], (chunks.begin[a] + chunks.extents[a]) * grid_.chunk[a]);
    box.extents[a] = end - box.begin[a];
  }
  return box;
}

constexpr std::uint64_t SegmentLayout::segment_chunks(std::uint64_t segment) const {
  return chunks_of(segment).elems();
}

constexpr std::uint64_t SegmentLayout::first_chunk(std::uint64_t segment) const {
  const Index3 at = chunks_of(segment).begin;
  return (at[0] * chunk_counts_[1] + at[1]) * chunk_counts_[2] + at[2];
}

constexpr GridBox SegmentLayout::chunk_box(std::uint64_t segment, std::uint64_t k) const {
  const GridBox chunks = chunks_of(segment);
  const std::uint64_t columns = chunks.extents[2];
  const std::uint64_t rows = chunks.extents[1];
  const Index3 at{chunks.begin[0] + k / columns / rows, chunks.begin[1] + k / columns % rows,
                  chunks.begin[2] + k % columns};
  GridBox box;
  for (std::size_t a = 0; a < 3; ++a) {
    box.begin[a] = at[a] * grid_.chunk[a];
    box.extents[a] = std::min(grid_.chunk[a], grid_.extents[a] - box.begin[a]);
  }
  return box;
}

constexpr SegmentLayout::ChunkPlace SegmentLayout::place_of(const Index3& element) const {
  Index3 segment{};
  Index3 inside{};
  for (std::size_t a = 0; a < 3; ++a) {
    const std::uint64_t chunk = element[a] / grid_.chunk[a];
    segment[a] = chunk / per_segment_[a];
    inside[a] = chunk % per_segment_[a];
  }
  ChunkPlace place;
  place.segment = (segment[0] * segment_counts_[1] + segment[1]) * segment_counts_[2] + segment[2];
  const Index3 extents = chunks_of(place.segment).extents;
  place.k = (inside[0] * extents[1] + inside[1]) * extents[2] + inside[2];
  return place;
}

constexpr std::uint64_t SegmentLayout::full_chunk_bytes() const {
  return grid_.chunk[0] * grid_.chunk[1] * grid_.chunk[2] * dtype_bytes(dtype_);
}

constexpr std::uint64_t SegmentLayout::max_segment_elems() const {
  return segments() == 0 ? 0 : segment_box(0).elems();
}

constexpr std::uint64_t SegmentLayout::band_segments() const {
  std::uint64_t n = 1;
  for (std::size_t a = band_axis_ + 1; a < 3; ++a) n *= segment_counts_[a];
  return n;
}

constexpr std::uint64_t SegmentLayout::band_begin(std::uint64_t band) const {
  Index3 at{};
  at[band_axis_] = std::min(band * per_segment_[band_axis_] * grid_.chunk[band_axis_], grid_.extents[band_axis_]);
  return flat(at);
}

}  // namespace quern
