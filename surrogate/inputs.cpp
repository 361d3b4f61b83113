// The list of inputs, in its order.
#include "surrogate/inputs.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace quern::surrogate {
namespace {

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

/// Coding from coarse to fine, closed loop: the rate and the squared error of all levels together.
struct Levels {
  double bits = 0;
  double squared_error = 0;
};

/// Level by level from the coarsest: of 2^rank values one is coarser. A value whose code is 0 has its own residual as
/// error, and most of the error of its neighbours; any other has the quantizer's.
Levels code_levels(const std::array<Quantized, kPredictors>& q, Predictor finest, const Features& f, double uniform) {
  constexpr double kKept = 0.8;
  const double rest = exp2_of(-static_cast<double>(f.rank));
  Levels out{q[kValue].entropy, uniform};
  const Predictor order[] = {kCubic64, kCubic32, kCubic16, kCubic8, kCubic4, kCubic2, finest};
  for (const Predictor p : order) {
    if (f.residuals[p].counts.empty()) continue;
    const double zero = std::min(q[p].zero_share, 1.0);
    const double own = std::min(q[p].zero_error + kKept * out.squared_error, uniform);
    const double error = zero * own + (1 - zero) * uniform;
    out.bits = (1 - rest) * q[p].conditional + rest * out.bits;
    out.squared_error = (1 - rest) * error + rest * out.squared_error;
  }
  return out;
}

/// Distance of neighbouring numbers of the type near the largest magnitude.
double spacing(const Features& f) {
  if (!is_float(f.dtype)) return 1;
  const double digits = f.dtype == DType::f64 ? 53 : f.dtype == DType::f32 ? 24 : f.dtype == DType::f16 ? 11 : 8;
  return std::max(f.magnitude, 1e-300) * exp2_of(-digits);
}

/// Codecs cut large arrays into chunks: what a stream costs besides its values grows with them from there on.
double counted_elems(const Features& f) {
  return static_cast<double>(std::clamp<std::uint64_t>(f.shape.elems(), 1, UINT64_C(1) << 18));
}

/// How much of the array was read: the rest may be otherwise.
double counted_share(const Features& f) { return f.sampled == 0 ? 1 : share(f.sampled, f.shape.elems()); }

void add_array(const Features& f, double log_bound, std::vector<double>& out) {
  const double elems = counted_elems(f);
  const double bits = 8.0 * static_cast<double>(dtype_bytes(f.dtype));
  const double range = std::max(f.range, 1e-300);
  out.push_back(log_bound);
  out.push_back(log2_of(elems));
  out.push_back(f.rank == 1 ? 1 : 0);
  out.push_back(f.rank == 2 ? 1 : 0);
  out.push_back(f.rank == 3 ? 1 : 0);
  out.push_back(bits / 16);
  out.push_back(is_float(f.dtype) ? 0 : 1);
  out.push_back(is_float(f.dtype) ? 0 : std::clamp(log2_of(range) + log_bound, -4.0, 16.0));
  out.push_back(std::clamp(log2_of(range) + log_bound - log2_of(spacing(f)), -4.0, 10.0));
  out.push_back(std::clamp(log2_of(std::max(f.magnitude, 1e-300)) - log2_of(range), 0.0, 20.0));
  out.push_back(std::clamp(log2_of(counted_share(f)), -3.0, 0.0));
  out.push_back(share(f.specials, f.sampled));
  out.push_back(share(f.repeats, f.sampled));
  out.push_back(share(f.zeros, f.sampled));
  out.push_back(std::clamp(log2_of(1e-9 + share(f.repeats, f.sampled)), -12.0, 0.0));
  out.push_back(std::clamp(log2_of(1e-9 + share(f.specials, f.sampled)), -12.0, 0.0));
  for (const double v : f.variogram)
    out.push_back(std::clamp(0.5 * log2_of(v), -26.0, 2.0) - std::max(log_bound, -26.0));
}

/// The inputs, and which of them are of levels.
struct Listed {
  Inputs values;
  std::vector<bool> of_levels;

  void add(double value, bool is_of_levels = false) {
    values.push_back(value);
    of_levels.push_back(is_of_levels);
  }
};

bool is_coarse(Predictor p) { return p == kCubic2 || p == kCubic4 || p >= kCubic8; }

/// Whether the codec of the run keeps every bit.
enum class Keeps { within_bound, all_bits };

/// Under a bound, the codec `lorenzo` goes on beyond the last bound that it was run at. What keeps every bit takes no more
/// for a smaller bound: there, the last point stands.
double lorenzo_bits(const Features& f, double log_bound, double element_bits, Keeps keeps) {
  const bool goes_on = is_float(f.dtype) && keeps == Keeps::within_bound;
  return exp2_of(log_bits_at(f.lorenzo, log_bound, goes_on ? std::optional(element_bits) : std::nullopt));
}

Listed list_at(const Features& f, int grid, Keeps keeps) {
  const int half = -grid;
  const double log_bound = 0.5 * half;
  std::array<Quantized, kPredictors> q;
  for (std::size_t p = 0; p < kPredictors; ++p) q[p] = quantize(f.residuals[p], half);
  // A predictor that does not fit the array stands for the one before it.
  for (std::size_t p = 1; p < kPredictors; ++p)
    if (f.residuals[p].counts.empty()) q[p] = q[p == kFitBetween ? kCubic1 : p - 1];
  const double uniform = exp2_of(2 * log_bound) / 3;
  const Levels plain = code_levels(q, kCubic1, f, uniform);
  const Levels fitted = code_levels(q, kFitBetween, f, uniform);
  const double levels = plain.bits;
  const double fitted_levels = fitted.bits;
  double raster = q[kLorenzo].conditional;
  for (const Predictor p : {kRow, kSlow, kLorenzoPlane, kFitFine, kFitMiddle, kFitCoarse, kValue})
    raster = std::min(raster, q[p].conditional);
  const double best = std::min({raster, levels, fitted_levels});
  const double all_bits = 8.0 * static_cast<double>(dtype_bytes(f.dtype));
  const double valid = 1 - share(f.specials, f.sampled);
  const double elems = counted_elems(f);
  const double fixed = 8 * 120 / elems;
  const double stencil = std::min(best * valid + fixed + 0.0005, all_bits);
  std::array<double, kGroupPredictors.size()> groups{};
  for (std::size_t g = 0; g < groups.size(); ++g)
    groups[g] = group_bits(f.groups[g], 1 + f.residuals[kGroupPredictors[g]].noise_gain, half);
  const double lorenzo =
      f.lorenzo.empty() ? std::min(*std::min_element(groups.begin(), groups.end()) * valid + fixed + 0.03, all_bits)
                        : lorenzo_bits(f, log_bound, all_bits, keeps);
  const double planes = f.byte_bits;
  const double lossless = std::min(planes + fixed, all_bits);
  const double error = std::clamp(levels < fitted_levels ? plain.squared_error : fitted.squared_error, 1e-30, uniform);
  Listed v;
  add_array(f, log_bound, v.values);
  v.of_levels.resize(v.values.size());
  for (std::size_t p = 0; p < kPredictors; ++p) v.add(q[p].conditional, is_coarse(static_cast<Predictor>(p)));
  for (const Predictor p : {kRow, kLorenzo, kCubic1, kFitMiddle}) v.add(q[p].entropy);
  for (const Predictor p :
       {kRow, kLorenzo, kCubic1, kCubic2, kCubic4, kCubic8, kCubic16, kFitMiddle, kFitCoarse, kFitBetween})
    v.add(log2_of(1.0001 - std::min(q[p].zero_share, 1.0)), is_coarse(p));
  for (const Predictor p : {kRow, kLorenzo, kCubic1, kCubic4, kFitMiddle, kFitCoarse, kFitBetween})
    v.add(0.5 * (log2_of(std::max(q[p].squared_error, 1e-30)) - log2_of(uniform)), is_coarse(p));
  for (const double bits : groups) v.add(bits);
  v.add(log2_of(raster + 1e-3));
  for (const double bits : {levels, fitted_levels, best}) v.add(log2_of(bits + 1e-3), true);
  v.add(0.5 * (log2_of(error) - log2_of(uniform)), true);
  v.add(planes / 8);
  v.add(log2_of(fixed + 1e-6));
  for (const double bits : {stencil, lorenzo, lossless}) v.add(log2_of(bits));
  v.add(-3.0102999566398120 * log2_of(error));
  v.add(log2_of(1 + kSsimFloor - similarity(f.deviations, error)));
  return v;
}

}  // namespace

Inputs inputs_at(const Features& features, int grid) { return list_at(features, grid, Keeps::within_bound).values; }

bool is_of_levels(std::size_t input) {
  static const std::vector<bool> known = list_at(Features(), 0, Keeps::within_bound).of_levels;
  return known[input];
}

std::size_t input_count() {
  static const std::size_t count = inputs_at(Features(), 0).size();
  return count;
}

double effective_bound(const Features& f, double relative_bound) {
  if (!(f.range > 0)) return relative_bound;
  if (!is_float(f.dtype)) {
    const double absolute = std::min(relative_bound * f.range, 0x1p62);
    return (static_cast<double>(static_cast<std::uint64_t>(absolute)) + 0.5) / f.range;
  }
  return std::max(relative_bound, 0.25 * spacing(f) / f.range);
}

double power_of_two_below(double bound) {
  int exponent = 0;
  std::frexp(bound, &exponent);
  return std::ldexp(0.5, exponent);
}

namespace {

Inputs inputs_between(const Features& features, double relative_bound, Keeps keeps) {
  const double place =
      std::clamp(-2 * log2_of(effective_bound(features, relative_bound)), 0.0, static_cast<double>(kGrid - 1));
  const int low = std::min(static_cast<int>(place), kGrid - 2);
  const double part = place - low;
  Inputs out = list_at(features, low, keeps).values;
  const Inputs next = list_at(features, low + 1, keeps).values;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] += part * (next[i] - out[i]);
  return out;
}

}  // namespace

Inputs inputs_for(const Features& features, double relative_bound) {
  return inputs_between(features, relative_bound, Keeps::within_bound);
}

Inputs lossless_inputs(const Features& features) { return inputs_between(features, kLosslessBound, Keeps::all_bits); }

Base rate_base(const std::string& codec) {
  if (codec == "lorenzo") return kBaseLorenzo;
  return codec == "lossless" ? kBaseLossless : kBaseStencil;
}

}  // namespace quern::surrogate
