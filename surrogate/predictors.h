// The linear predictors whose residuals stage 1 counts, as lists of taps, and the residuals of one block.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "surrogate/sample_blocks.h"

namespace quern::surrogate {

/// One neighbour and its weight; offsets in elements along the three axes, slowest first.
struct Tap {
  std::array<int, 3> offset{};
  double weight = 0;
};
using Taps = std::vector<Tap>;

enum Predictor : std::size_t {
  kValue,         ///< nothing is predicted: distance from the middle of the range
  kRow,           ///< the element before in the row
  kSlow,          ///< the element before along the slowest axis (one axis: second order)
  kLorenzo,       ///< Lorenzo of first order over all axes
  kLorenzoPlane,  ///< over the two fastest axes (two axes: second order along the row; one: third order)
  kCubic1,        ///< mean over the axes of the cubic between neighbours 1 and 3 away
  kCubic2,        ///< the same 2 and 6 away
  kCubic4,        ///< 4 and 12 away
  kCubicRow,      ///< cubic along the fastest axis
  kFitFine,       ///< causal neighbours, weights fitted for a bound of 2^-16 of the range
  kFitMiddle,     ///< of 2^-11
  kFitCoarse,     ///< of 2^-7
  kFitBetween,    ///< neighbours on both sides, fitted for 2^-10
  kCubic8,        ///< as kCubic1, from single places all over the array: blocks are too small
  kCubic16,
  kCubic32,
  kCubic64,
  kPredictors
};

/// The taps of every predictor that needs no fit, for blocks of these extents. A predictor that does not fit into the
/// block has no taps, but kValue.
std::array<Taps, kPredictors> fixed_taps(unsigned rank, const Triple& block);
/// Neighbours whose weights are fitted: before the element in raster order, or on both sides.
Taps causal_neighbours(unsigned rank, const Triple& block);
Taps neighbours_between(unsigned rank, const Triple& block);

/// Sum of the squares of the weights: how much of the variance of its neighbours' errors a prediction has.
double noise_gain(const Taps& taps);

/// A box of a block, half-open.
struct Inner {
  Triple begin{};
  Triple end{};
  bool empty() const { return begin[0] >= end[0] || begin[1] >= end[1] || begin[2] >= end[2]; }
};
/// Where all taps lie inside the block.
Inner inner_box(const Taps& taps, const Triple& block);

/// Writes element minus prediction for the inner box into `out`, which has the block's extents.
void residuals(const SampleBlock& block, const Taps& taps, const Inner& inner, std::vector<double>& out);

}  // namespace quern::surrogate
