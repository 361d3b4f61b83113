// What the registry's estimator expects of codecs under every bound of an array: where a search for a PSNR or a ratio
// begins, and which codecs it can leave out. Numbers are rounded to a coarse grid, so that the streams that come of
// them are the same on every machine; speeds have no part in it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "libcompress/pipeline/exact_range.h"
#include "libcompress/pipeline/search/trials.h"

namespace quern {

/// What is expected of a codec where it meets a target.
struct Expected {
  double place = 0;       ///< log2 of the absolute bound
  double psnr_slope = 0;  ///< dB lost in an octave of the bound there; above 0
  double rate_slope = 0;  ///< octaves of ratio won in an octave of the bound there; above 0
  double ratio = 0;
  double most_ratio = 0;  ///< the 90 % quantile
};

class Forecast {
 public:
  /// Knows nothing: without an estimator, and of arrays that the estimator does not know.
  Forecast() = default;
  /// `range` is that of the valid values. Fails only for want of memory and when it is cancelled.
  static Result<Forecast> of(const Trials& trials, const ValueRange& range);

  bool empty() const { return curves_.empty(); }
  /// Where the codec's PSNR falls to `psnr_db`; nothing beyond the bounds that the estimator knows.
  std::optional<Expected> at_psnr(std::string_view codec, double psnr_db) const;
  /// Where the codec's ratio rises to `ratio`; with `hopeful`, where its 90 % quantile does.
  std::optional<Expected> at_ratio(std::string_view codec, double ratio, bool hopeful = false) const;
  /// The 90 % quantile of the ratio of a codec that keeps every bit.
  std::optional<double> most_exact_ratio(std::string_view codec) const;

 private:
  struct Point {
    double place = 0;  ///< log2 of the absolute bound
    double ratio = 0;  ///< log2
    double most_ratio = 0;
    double psnr_db = 0;
  };
  struct Curve {
    std::string codec;
    bool exact = false;
    Vector<Point> points;  ///< the largest bound first
  };

  const Curve* find(std::string_view codec, bool exact) const;
  static std::optional<Expected> crossing(const Curve& curve, double Point::*what, double target, double sign);

  Vector<Curve> curves_;
};

}  // namespace quern
