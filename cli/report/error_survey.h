// One walk over both arrays for the pictures that need every element: the error's histogram and the PSNR of slices.
#pragma once

#include <cstdint>
#include <vector>

#include "cli/report/pair_reader.h"

namespace quern::report {

struct SurveyRequest {
  double range = 0.0;      ///< max - min of the original, for the PSNR
  double max_error = 0.0;  ///< the histogram reaches from -max_error to max_error
  bool relative = false;   ///< histogram of (x - x') / |x| instead, over x != 0
};

struct ErrorSurvey {
  std::vector<double> edges;  ///< of the histogram's bins, one more than there are bins; empty without a finite error
  std::vector<std::uint64_t> counts;
  std::uint64_t beyond = 0;  ///< errors that are not finite or outside of the histogram
  /// One for each index of axis 0, or for each group of indices when there are many (the worst of the group); NaN where
  /// a slice has no valid element, infinity where it has no error.
  std::vector<double> slice_psnr;
  std::vector<double> slice_index;  ///< first index of each group
  std::uint64_t slices_without_error = 0;
};

/// O(elements) time, a few thousand values of memory.
ErrorSurvey survey_errors(const PairReader& reader, const SurveyRequest& request);

}  // namespace quern::report
