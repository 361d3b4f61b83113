// What a model is given for one array and one bound, and the closed-form predictions it corrects.
#pragma once

#include <string>
#include <vector>

#include "surrogate/closed_form.h"

namespace quern::surrogate {

/// Changes when the list of inputs does: a model that was made for another list is refused.
inline constexpr unsigned kInputsVersion = 2;
/// Bounds are read on a grid of half octaves of the range: 2^(-g / 2), g from 0 to kGrid - 1.
inline constexpr int kGrid = 53;

/// Where a codec that keeps every bit is read.
inline constexpr double kLosslessBound = 1e-7;

/// The closed form's predictions, the last inputs.
enum Base : std::size_t {
  kBaseStencil,  ///< log2 of bits a value
  kBaseLorenzo,
  kBaseLossless,
  kBasePsnr,  ///< dB
  kBaseSsim,  ///< log2(1 - SSIM + kSsimFloor)
  kBases
};
inline constexpr double kSsimFloor = 1e-4;

using Inputs = std::vector<double>;

inline double base_of(const Inputs& inputs, Base which) { return inputs[inputs.size() - kBases + which]; }
/// The closed form for the rate of a codec; of codecs it does not know, that of the stencil.
Base rate_base(const std::string& codec);

/// How many values there are.
std::size_t input_count();
/// Whether an input comes from levels coarser than the finest: from neighbours more than one element away on both sides.
bool is_of_levels(std::size_t input);
/// At the bound 2^(-grid / 2) times the range.
Inputs inputs_at(const Features& features, int grid);
/// The relative half-width of the quantizer's steps under a bound: of integers a whole number and a half, of floating
/// point no less than a quarter of the distance of neighbouring numbers.
double effective_bound(const Features& features, double relative_bound);
/// The largest power of two that is no larger than a bound: what zfp makes of a tolerance. The bound is finite and above
/// 0.
double power_of_two_below(double bound);
/// At any relative bound above 0: linear between the grid's points on a logarithmic scale.
Inputs inputs_for(const Features& features, double relative_bound);
/// Of a codec that keeps every bit.
Inputs lossless_inputs(const Features& features);

}  // namespace quern::surrogate
