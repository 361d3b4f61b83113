// What of an array in host memory travels with a run of its segments.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include <quern/execution.h>

#include "libcompress/format/grid/layout.h"

namespace quern::cuda {

/// A run of elements in C order.
struct ElementSpan {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t elems() const { return end - begin; }
};

/// The shortest one that holds the boxes of segments [first, first + count).
inline ElementSpan span_of(const SegmentLayout& layout, std::uint64_t first, std::uint64_t count) {
  ElementSpan span{~UINT64_C(0), 0};
  for (std::uint64_t s = first; s < first + count; ++s) {
    const GridBox box = layout.segment_box(s);
    Index3 last = box.begin;
    for (std::size_t a = 0; a < 3; ++a) last[a] += box.extents[a] - 1;
    span.begin = std::min(span.begin, layout.flat(box.begin));
    span.end = std::max(span.end, layout.flat(last) + 1);
  }
  return span;
}

/// Elements of the longest one that any `count` segments in a row take. O(segments * count).
inline std::uint64_t largest_span(const SegmentLayout& layout, std::uint64_t count) {
  std::uint64_t largest = 0;
  for (std::uint64_t s = 0; s < layout.segments(); ++s)
    largest = std::max(largest, span_of(layout, s, std::min(count, layout.segments() - s)).elems());
  return largest;
}

/// Copies on all threads of the runner.
inline void copy_in_pieces(TaskRunner& runner, std::uint8_t* to, const std::uint8_t* from, std::uint64_t bytes) {
  constexpr std::uint64_t kPiece = UINT64_C(1) << 20;
  runner.run(static_cast<std::size_t>((bytes + kPiece - 1) / kPiece), [&](std::size_t i) {
    const std::uint64_t at = i * kPiece;
    std::memcpy(to + at, from + at, static_cast<std::size_t>(bytes - at < kPiece ? bytes - at : kPiece));
  });
}

}  // namespace quern::cuda
