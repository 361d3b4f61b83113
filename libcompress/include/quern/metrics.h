// Quality of a reconstruction, and the independent bound check. Shares no code with any encoder.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <quern/array.h>
#include <quern/bound.h>
#include <quern/execution.h>
#include <quern/memory.h>
#include <quern/status.h>

namespace quern {

/// Which elements count: everything finite in the original that is not one of these bit patterns (compared by value).
struct ValidityRule {
  Vector<std::uint64_t> fill_bits;
};

struct Quality {
  std::uint64_t elems = 0;
  std::uint64_t valid = 0;
  std::uint64_t specials_lost = 0;  ///< NaN, Inf, fill or zero signs that did not come back bit for bit
  double min = 0.0, max = 0.0;      ///< of the original, valid values
  double max_error = 0.0;           ///< max |x - x'| in binary64 over valid values; infinity if x' is not finite
  std::uint64_t max_error_index = 0;
  double max_pointwise_rel = 0.0;  ///< max |x - x'| / |x| over valid x != 0
  double mse = 0.0;
  std::optional<double> psnr_db;  ///< 20 log10(range) - 10 log10(MSE); nothing when MSE is 0
  std::optional<double> nrmse;    ///< RMSE / range; nothing when the range is 0
  std::optional<double> ssim;     ///< mean structural similarity, 2-D and 3-D windows; see ssim.cpp for the definition
  Vector<double> error_autocorrelation;  ///< lags 1..n of x - x' along the fastest axis, valid pairs
  std::uint64_t max_ulp = 0;             ///< largest distance in units in the last place (floating point)
};

struct QualityOptions {
  ValidityRule validity;
  bool with_ssim = true;
  unsigned autocorrelation_lags = 10;
};

/// Arrays of equal dtype and shape. O(elements); no copies of the arrays.
Result<Quality> measure_quality(const ArrayView& original, const ArrayView& reconstructed,
                                const QualityOptions& options, const Execution& execution);

/// One element that misses its bound.
struct Violation {
  std::uint64_t index = 0;
  double original = 0.0;
  double reconstructed = 0.0;
  double error = 0.0;
  std::uint64_t ulps = 0;
};

struct BoundCheck {
  std::uint64_t violations = 0;  ///< finite elements over the bound + specials that changed
  std::uint64_t specials_lost = 0;
  Vector<Violation> first;  ///< at most 16, lowest indices
};

/// Checks every element against an enforced bound, exactly: floats by error-free differences (products for pwrel),
/// integers by their exact distance; NaN, Inf, -0.0 and fill values bit for bit; lossless means all bits.
Result<BoundCheck> check_bound(const ArrayView& original, const ArrayView& reconstructed, const EnforcedBound& bound,
                               const ValidityRule& validity, const Execution& execution);

}  // namespace quern
