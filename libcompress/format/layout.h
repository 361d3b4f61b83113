// Where chunks and segments lie. A segment is a box of at most kMaxSegmentChunks chunks; both are numbered in raster
// order of the chunk grid, so that a segment's chunks have consecutive numbers. Depends on the array's grid alone.
#pragma once

#include <array>
#include <cstdint>

#include <quern/codec.h>
#include <quern/dtype.h>

namespace quern {

using Index3 = std::array<std::uint64_t, 3>;

/// A box of elements of the grid.
struct GridBox {
  Index3 begin{};
  Index3 extents{};

  std::uint64_t elems() const { return extents[0] * extents[1] * extents[2]; }
};

class SegmentLayout {
 public:
  SegmentLayout() = default;
  /// `grid` must have passed check_grid.
  SegmentLayout(const ChunkGrid& grid, DType dtype);

  const ChunkGrid& grid() const { return grid_; }
  DType dtype() const { return dtype_; }
  std::uint64_t chunks() const { return chunk_counts_[0] * chunk_counts_[1] * chunk_counts_[2]; }
  std::uint64_t segments() const { return segment_counts_[0] * segment_counts_[1] * segment_counts_[2]; }

  GridBox segment_box(std::uint64_t segment) const;
  std::uint64_t segment_chunks(std::uint64_t segment) const;
  /// Number, within the stream, of the segment's first chunk.
  std::uint64_t first_chunk(std::uint64_t segment) const;
  /// Box of the `k`-th chunk of a segment, in elements of the grid.
  GridBox chunk_box(std::uint64_t segment, std::uint64_t k) const;
  /// Segment and position in it of the chunk that holds an element.
  struct ChunkPlace {
    std::uint64_t segment = 0;
    std::uint64_t k = 0;
  };
  ChunkPlace place_of(const Index3& element) const;

  /// Bytes of a full chunk's values.
  std::uint64_t full_chunk_bytes() const;
  /// Elements of the largest segment.
  std::uint64_t max_segment_elems() const;

  /// Bands: runs of whole segments whose elements are consecutive in C order.
  std::uint64_t bands() const { return segment_counts_[band_axis_]; }
  std::uint64_t band_segments() const;
  /// First element, in C order, of a band; band == bands() gives the number of elements.
  std::uint64_t band_begin(std::uint64_t band) const;

  /// Flat C order index of an element of the grid.
  std::uint64_t flat(const Index3& at) const { return (at[0] * grid_.extents[1] + at[1]) * grid_.extents[2] + at[2]; }

 private:
  Index3 segment_index(std::uint64_t segment) const;
  /// Chunk coordinates of a segment's first chunk and its extents in chunks.
  GridBox chunks_of(std::uint64_t segment) const;

  ChunkGrid grid_;
  DType dtype_ = DType::f32;
  Index3 chunk_counts_{};
  Index3 per_segment_{1, 1, 1};  // chunks of a full segment along each axis
  Index3 segment_counts_{};
  std::size_t band_axis_ = 0;  // first axis with more than one element
};

}  // namespace quern
