// Rate and error at any bound in closed form, from the counts of stage 1.
#pragma once

#include <array>

#include "surrogate/features.h"

namespace quern::surrogate {

/// What a quantizer of half-width `bound` makes of the residuals of one predictor, in units of the range.
struct Quantized {
  double entropy = 0;      ///< bits a value, order 0
  double conditional = 0;  ///< bits a value where the activity around is known
  double zero_share = 0;   ///< of values whose code is 0
  double squared_error = 0;
  double zero_error = 0;  ///< mean square of the residuals whose code is 0
};

/// Quantized at the bound 2^(half_octaves / 2) times the range. Neighbours carry the error of the bound, added as
/// normal noise; activities below half the bound are one class, since a decoder cannot tell them apart.
Quantized quantize(const JointCounts& joint, int half_octaves);

/// Bits a value of words of 32 residuals with the planes that the largest of them needs.
double group_bits(const Counts& groups, double noise_gain, int half_octaves);

/// Mean structural similarity when the error has this mean square (units of the range) and is independent of the
/// values.
double similarity(const Counts& deviations, double squared_error);

/// Sum over the bytes of an element of the order-0 entropy of each, in bits.
double byte_entropy(const Features& features);

}  // namespace quern::surrogate
