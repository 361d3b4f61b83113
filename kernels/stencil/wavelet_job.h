// A chunk under the wavelet transform of the stencil codec, taken apart by a host and checked, as level_job.h is
// for chunks in levels. Axes are four here, too, with those that a chunk lacks in front.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/stencil/level_job.h"

namespace quern::kernels {

/// A magnitude that the context of a code looks at: along axis a that of index (i >> shift[a]) + by[a] of a band, if
/// there is one.
struct WaveletTap {
  std::uint32_t start = 0;  ///< place of the band's first coefficient
  std::uint32_t extents[kLevelAxes] = {1, 1, 1, 1};
  std::uint32_t weight = 0;
  std::int8_t by[kLevelAxes] = {0, 0, 0, 0};
  std::uint8_t shift[kLevelAxes] = {0, 0, 0, 0};
};

/// A band of coefficients; or all corrections, which are coded like one.
struct WaveletBandPlan {
  std::uint32_t start = 0;
  std::uint32_t extents[kLevelAxes] = {1, 1, 1, 1};
  std::uint32_t rows = 0;
  std::uint32_t rows_before = 0;  ///< of bands that were coded before
  std::uint32_t codes_before = 0;
  std::uint32_t constant = 0;
  std::uint32_t taps = 0;  ///< number of the first in the table: those at complete bands, then those at the band itself
  std::uint32_t known_taps = 0;
  std::uint32_t own_taps = 0;
  std::uint32_t near[2] = {0, 0};  ///< weights of the two columns before
  std::int64_t step = 1;           ///< of coefficients
};

/// One level along one axis of a box, back from coefficients.
struct WaveletLift {
  std::uint32_t box[kLevelAxes] = {1, 1, 1, 1};
  std::uint32_t axis = 0;
};

struct WaveletJob {
  JobHead head{JobKind::wavelet};
  Element element = Element::f32;
  bool masked = false;  ///< some elements are special
  std::uint32_t extents[kLevelAxes] = {1, 1, 1, 1};
  std::uint32_t places[kLevelAxes] = {1, 1, 1, 1};           ///< strides of coefficients
  std::uint64_t strides[kLevelAxes] = {0, 0, 0, 0};          ///< of elements
  std::uint64_t special_strides[kLevelAxes] = {0, 0, 0, 0};  ///< of their classes
  double base = 0;
  double unit = 0;
  JobLattice lattice;
  double correction = 0;  ///< what a correction of one adds; 0: there are none
  std::int32_t offsets[2] = {0, 0};
  std::uint32_t band_count = 0;  ///< the corrections, if there are any, follow the bands
  std::uint32_t lift_count = 0;
  std::uint32_t table_count = 0;
  std::uint32_t exception_count = 0;
  std::uint8_t serving[kContextBins] = {};  ///< which table serves a context bin
  StreamSection lanes;
  /// Bytes from the job's begin to its tables.
  std::uint32_t bands = 0;
  std::uint32_t taps = 0;
  std::uint32_t lifts = 0;
  std::uint32_t starts = 0;
  std::uint32_t exceptions = 0;
  std::uint32_t words = 0;
  /// The same of the memory that lanes work in.
  std::uint32_t values = 0;
  std::uint32_t room = 0;  ///< as many values
  std::uint32_t magnitudes = 0;
  std::uint32_t corrections = 0;  ///< their magnitudes
};

}  // namespace quern::kernels
