// The page behind `quern estimate --html`.
#pragma once

#include <string>
#include <vector>

#include <quern/estimate.h>

namespace quern::report {

struct EstimatedArray {
  std::string name;
  std::string kind;  ///< shape and type, for people
  EstimateReport report;
};

/// A self-contained HTML page (UTF-8, well-formed as XML too): for each array PSNR against ratio, ratio against the bound
/// with its intervals, and all numbers in a table. O(estimates); the page takes about 250 bytes for each besides 8 kB.
std::string estimate_report_html(const std::vector<EstimatedArray>& arrays, const std::string& footer);

}  // namespace quern::report
