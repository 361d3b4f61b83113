// Histogram and slice sums from runs of a few thousand elements.
#include "cli/report/error_survey.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace quern::report {
namespace {

constexpr std::uint64_t kRunElems = 8192;
constexpr std::uint64_t kBins = 101;  // odd: small errors of either sign share the middle bin
constexpr std::uint64_t kMaxGroups = 600;

/// Sums of squares of one slice, in units of the range so that squares stay in binary64.
struct SliceSum {
  double squares = 0.0;
  std::uint64_t valid = 0;
};

class Histogram {
 public:
  Histogram(double reach, bool relative, ErrorSurvey& survey) : reach_(reach), relative_(relative), survey_(survey) {
    if (!(reach > 0) || !std::isfinite(reach)) return;
    survey.counts.assign(kBins, 0);
    for (std::uint64_t i = 0; i <= kBins; ++i)
      survey.edges.push_back(reach * (2 * static_cast<double>(i) / static_cast<double>(kBins) - 1));
  }

  void add(double original, double error) {
    if (relative_ && original == 0) return;
    const double share = (relative_ ? error / std::fabs(original) : error) / reach_;
    if (survey_.counts.empty() || !(std::fabs(share) <= 1)) {
      ++survey_.beyond;
      return;
    }
    const auto bin = static_cast<std::uint64_t>((share + 1) / 2 * static_cast<double>(kBins));
    ++survey_.counts[std::min(bin, kBins - 1)];
  }

 private:
  double reach_;
  bool relative_;
  ErrorSurvey& survey_;
};

double psnr(const SliceSum& sum) {
  if (sum.valid == 0) return std::numeric_limits<double>::quiet_NaN();
  if (sum.squares == 0) return std::numeric_limits<double>::infinity();
  return -10 * std::log10(sum.squares / static_cast<double>(sum.valid));
}

/// The worst slice of each group of neighbours.
class SliceLine {
 public:
  SliceLine(std::uint64_t slices, ErrorSurvey& survey)
      : group_(std::max<std::uint64_t>(1, (slices + kMaxGroups - 1) / kMaxGroups)), survey_(survey) {}

  void add(std::uint64_t slice, const SliceSum& sum) {
    const double value = psnr(sum);
    survey_.slices_without_error += std::isinf(value) && value > 0;
    if (slice % group_ == 0) {
      survey_.slice_index.push_back(static_cast<double>(slice));
      survey_.slice_psnr.push_back(value);
    } else if (!(survey_.slice_psnr.back() <= value) && !std::isnan(value)) {
      survey_.slice_psnr.back() = value;
    }
  }

 private:
  std::uint64_t group_;
  ErrorSurvey& survey_;
};

}  // namespace

ErrorSurvey survey_errors(const PairReader& reader, const SurveyRequest& request) {
  ErrorSurvey survey;
  const Shape& shape = reader.shape();
  if (shape.elems() == 0) return survey;
  Histogram histogram(request.max_error, request.relative, survey);
  const std::uint64_t slices = shape.rank() == 0 ? 1 : shape[0];
  const std::uint64_t slice_elems = shape.elems() / slices;
  SliceLine line(slices, survey);
  PairRun run;
  SliceSum sum;
  std::uint64_t slice = 0;
  std::uint64_t left = slice_elems;
  for (std::uint64_t at = 0; at < shape.elems(); at += kRunElems) {
    const std::uint64_t n = std::min(kRunElems, shape.elems() - at);
    reader.read(at, n, 1, run);
    for (std::uint64_t i = 0; i < n; ++i) {
      if (!std::isnan(run.original[i])) {
        histogram.add(run.original[i], run.error[i]);
        const double scaled = run.error[i] / request.range;
        sum.squares += std::isnan(scaled) && run.error[i] == 0 ? 0.0 : scaled * scaled;
        ++sum.valid;
      }
      if (--left == 0) {
        line.add(slice++, sum);
        sum = {};
        left = slice_elems;
      }
    }
  }
  return survey;
}

}  // namespace quern::report
