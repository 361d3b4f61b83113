// Counts of the magnitudes of residuals, in half octaves of the range.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "surrogate/numbers.h"
#include "surrogate/predictors.h"
#include "surrogate/sample_blocks.h"

namespace quern::surrogate {

using Counts = std::array<std::uint32_t, kBins>;

/// Residuals of one predictor: how many have a magnitude in bin `r` where the residuals around have one in octave `a`.
struct JointCounts {
  static constexpr int kOctaves = kBins / 2;
  std::vector<std::uint32_t> counts;  ///< kOctaves x kBins; empty: the predictor does not fit the array
  double noise_gain = 0;

  std::uint32_t& at(int octave, int bin) { return counts[static_cast<std::size_t>(octave * kBins + bin)]; }
  std::uint32_t at(int octave, int bin) const { return counts[static_cast<std::size_t>(octave * kBins + bin)]; }
  void make_room() { counts.resize(static_cast<std::size_t>(kOctaves) * kBins); }
  void add(const JointCounts& other);

  /// Made by add_up() of the counts, for who reads them at many bounds: of each bin the counts of an octave and all below
  /// it, and the bins of an octave that have any, half-open.
  struct BinRange {
    int begin = 0;
    int end = 0;
  };
  std::vector<Counts> up_to;
  std::vector<BinRange> bins;
  void add_up();
};

/// Magnitudes of a block's residuals in the box where they are known. `out` has the block's extents.
void take_magnitudes(const std::vector<double>& residual, const Triple& extents, const Inner& inner,
                     std::vector<float>& out);

/// Adds those of the block's valid elements in the box. Activities are means of the magnitudes before the element in its
/// row, and in the row and the plane before, where the box has them.
void count_residuals(const SampleBlock& block, const std::vector<float>& magnitude, const Inner& inner,
                     JointCounts& joint);

/// Adds the largest magnitude of each run of 32 along the rows of the box.
void count_groups(const SampleBlock& block, const std::vector<float>& magnitude, const Inner& inner, Counts& counts);

}  // namespace quern::surrogate
