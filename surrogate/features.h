// Stage 1: what one array is like, from whole mini-blocks of about 2^17 values, or from all of at most 2^18. Depends on no bound and no codec.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include <quern/array.h>
#include <quern/compress.h>
#include <quern/execution.h>

#include "surrogate/codec_curve.h"
#include "surrogate/predictors.h"
#include "surrogate/residual_counts.h"

namespace quern::surrogate {

/// The largest magnitudes in runs of 32 residuals along the row, of three predictors.
inline constexpr std::array<Predictor, 3> kGroupPredictors{kRow, kLorenzo, kLorenzoPlane};

struct Features {
  DType dtype = DType::f32;
  Shape shape;
  unsigned rank = 1;
  double range = 0;           ///< of all valid values
  double magnitude = 0;       ///< the larger of |min| and |max|
  std::uint64_t sampled = 0;  ///< values of the mini-blocks; what lorenzo_curve() copies is not among them
  std::uint64_t specials = 0, repeats = 0, zeros = 0;  ///< of the sample
  std::array<JointCounts, kPredictors> residuals;
  std::array<Counts, kGroupPredictors.size()> groups{};
  Counts deviations{};                ///< standard deviations of windows of 7 elements along each axis
  std::array<double, 4> variogram{};  ///< mean squared differences along the row at lags 1, 2, 4, 8
  std::vector<CurvePoint> lorenzo;    ///< of the codec `lorenzo`; empty where it was not run
  double byte_bits = 0;               ///< byte_entropy() of `bytes`
  std::vector<std::uint32_t> bytes;   ///< 8 x 256: values of each byte of the elements' bits, lowest byte first

  /// No valid values, or all of them equal.
  bool is_constant() const { return !(range > 0); }
};

/// Reads some 2^17 values of an array, all where it has at most 2^18. `range` is of its valid values: finite and no fill
/// value. The result does not depend on the number of threads. Memory: about 6 MB a thread. The codec `lorenzo` is that of
/// `registry`.
Result<Features> extract_features(const ArrayView& array, const std::optional<ValueRange>& range,
                                  std::span<const std::uint64_t> fill_bits, const Registry& registry,
                                  const Execution& execution);

}  // namespace quern::surrogate
