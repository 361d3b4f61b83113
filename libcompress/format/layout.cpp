// Geometry of chunks, segments and bands.
#include "libcompress/format/layout.h"

#include <algorithm>

#include "libcompress/format/limits.h"

namespace quern {

SegmentLayout::SegmentLayout(const ChunkGrid& grid, DType dtype)
    : grid_(grid), dtype_(dtype), chunk_counts_(grid.counts()) {
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
  while (band_axis_ < 2 && grid_.extents[band_axis_] == 1) ++band_axis_;
}

Index3 SegmentLayout::segment_index(std::uint64_t segment) const {
  const std::uint64_t columns = segment_counts_[2];
  const std::uint64_t rows = segment_counts_[1];
  return {segment / columns / rows, segment / columns % rows, segment % columns};
}

GridBox SegmentLayout::chunks_of(std::uint64_t segment) const {
  const Index3 at = segment_index(segment);
  GridBox box;
  for (std::size_t a = 0; a < 3; ++a) {
    box.begin[a] = at[a] * per_segment_[a];
    box.extents[a] = std::min(per_segment_[a], chunk_counts_[a] - box.begin[a]);
  }
  return box;
}

GridBox SegmentLayout::segment_box(std::uint64_t segment) const {
  const GridBox chunks = chunks_of(segment);
  GridBox box;
  for (std::size_t a = 0; a < 3; ++a) {
    box.begin[a] = chunks.begin[a] * grid_.chunk[a];
    const std::uint64_t end = std::min(grid_.extents[a], (chunks.begin[a] + chunks.extents[a]) * grid_.chunk[a]);
    box.extents[a] = end - box.begin[a];
  }
  return box;
}

std::uint64_t SegmentLayout::segment_chunks(std::uint64_t segment) const { return chunks_of(segment).elems(); }

std::uint64_t SegmentLayout::first_chunk(std::uint64_t segment) const {
  const Index3 at = chunks_of(segment).begin;
  return (at[0] * chunk_counts_[1] + at[1]) * chunk_counts_[2] + at[2];
}

GridBox SegmentLayout::chunk_box(std::uint64_t segment, std::uint64_t k) const {
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

SegmentLayout::ChunkPlace SegmentLayout::place_of(const Index3& element) const {
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

std::uint64_t SegmentLayout::full_chunk_bytes() const {
  return grid_.chunk[0] * grid_.chunk[1] * grid_.chunk[2] * dtype_bytes(dtype_);
}

std::uint64_t SegmentLayout::max_segment_elems() const { return segments() == 0 ? 0 : segment_box(0).elems(); }

std::uint64_t SegmentLayout::band_segments() const {
  std::uint64_t n = 1;
  for (std::size_t a = band_axis_ + 1; a < 3; ++a) n *= segment_counts_[a];
  return n;
}

std::uint64_t SegmentLayout::band_begin(std::uint64_t band) const {
  Index3 at{};
  at[band_axis_] = std::min(band * per_segment_[band_axis_] * grid_.chunk[band_axis_], grid_.extents[band_axis_]);
  return flat(at);
}

}  // namespace quern
