// The page behind `quern compare --html`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <quern/array.h>
#include <quern/bound.h>
#include <quern/metrics.h>

namespace quern::report {

struct ReportOptions {
  std::string original_name = "original";
  std::string reconstructed_name = "reconstruction";
  std::string variable;                                    ///< what the values are, for labels; may be empty
  std::string units;                                       ///< of the values; may be empty
  std::optional<EnforcedBound> bound;                      ///< marked in the histogram and compared in the table
  Vector<std::uint64_t> fill_bits;                         ///< shown as gaps
  std::vector<std::pair<std::string, std::string>> facts;  ///< more rows for the table, e.g. codec and ratio
  std::string footer;                                      ///< e.g. the program and its version
};

/// A self-contained HTML page (UTF-8, well-formed as XML too): metrics, slices or curves, histogram of the error, PSNR
/// along the slowest axis, spectra, autocorrelation. Arrays of equal dtype and shape, of any rank and size, also empty;
/// `quality` was measured on them. Two passes over the arrays; memory and size of the page do not grow with them beyond
/// about 4 MB. Throws std::bad_alloc alone.
std::string compare_report_html(const ArrayView& original, const ArrayView& reconstructed, const Quality& quality,
                                const ReportOptions& options);

}  // namespace quern::report
