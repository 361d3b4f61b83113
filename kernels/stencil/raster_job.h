// A chunk in raster order of the stencil codec, taken apart by a host and checked, as level_job.h is for chunks in
// levels. A chunk of several planes is worked on plane after plane; one whose planes are single rows as one plane of
// these rows, so that its taps into planes before are taps into rows before.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/stencil/level_job.h"
#include "kernels/stencil/rules.h"

namespace quern::kernels {

inline constexpr std::uint32_t kRasterNearTaps = 8;

/// A neighbour: planes and rows back (or, in earlier planes, forth), columns. `mean`: in the mean of earlier planes.
template <class Weight>
struct RasterTap {
  Weight weight = 0;
  std::int8_t plane = 0;
  std::int8_t row = 0;
  std::int8_t column = 0;
  bool mean = false;
};

/// A list in the table of taps.
struct RasterList {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

/// How rows of a class are predicted: from the row itself, from rows of its plane, from what lies in planes before.
struct RasterClass {
  std::int64_t near[kRasterNearTaps] = {};
  std::uint32_t near_count = 0;
  RasterList rows;
  RasterList before;
};

struct RasterJob {
  JobHead head{JobKind::raster};
  Element element = Element::f32;
  bool masked = false;  ///< some elements are special
  bool mean = false;    ///< there are taps into the mean
  std::uint32_t planes = 1;
  std::uint32_t rows = 1;
  std::uint32_t columns = 1;
  std::uint64_t plane_stride = 0;  ///< of elements
  std::uint64_t row_stride = 0;
  std::uint64_t special_plane_stride = 0;  ///< of their classes
  std::uint64_t special_row_stride = 0;
  double base = 0;
  double unit = 0;
  JobLattice lattice;
  std::uint32_t weight_bits = 0;
  std::uint32_t fraction_bits = 0;
  std::uint32_t context_constant = 0;
  std::uint32_t near_context[2] = {0, 0};
  RasterList context_rows;
  RasterList context_before;
  RasterClass classes[kRowClasses];
  std::uint32_t table_count = 0;
  std::uint32_t exception_count = 0;
  std::uint8_t serving[kContextBins] = {};  ///< which table serves a context bin
  StreamSection lanes;
  /// Bytes from the job's begin to its tables.
  std::uint32_t taps = 0;
  std::uint32_t context_taps = 0;
  std::uint32_t starts = 0;
  std::uint32_t exceptions = 0;
  std::uint32_t words = 0;
  /// The same of the memory that lanes work in.
  std::uint32_t values = 0;
  std::uint32_t magnitudes = 0;
  std::uint32_t means = 0;  ///< of one plane; of each row in a chunk of a single plane
};

}  // namespace quern::kernels
