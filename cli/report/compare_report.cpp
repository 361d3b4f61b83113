// The page from top to bottom: heading, headline figures, pictures, table of all metrics.
#include "cli/report/compare_report.h"

#include <cmath>

#include "cli/report/error_survey.h"
#include "cli/report/html.h"
#include "cli/report/pair_reader.h"
#include "cli/report/pictures.h"

namespace quern::report {
namespace {

std::string decibels(const Quality& quality) {
  if (quality.valid == 0) return "none";
  return quality.psnr_db ? number(*quality.psnr_db, 5) + " dB" : "∞ (no error)";
}

std::string optional_number(const std::optional<double>& value, int digits) {
  return value ? number(*value, digits) : "none";
}

/// The largest error that the bound is about.
double bounded_error(const Quality& quality, const EnforcedBound& bound) {
  return bound.kind == BoundKind::pwrel ? quality.max_pointwise_rel : quality.max_error;
}

std::string bound_text(const EnforcedBound& bound, const std::string& units) {
  if (bound.kind == BoundKind::lossless) return "lossless";
  if (bound.kind == BoundKind::pwrel) return number(bound.value, 9) + " · |value|";
  return number(bound.value, 9) + (units.empty() ? "" : " " + units);
}

std::string index_text(std::uint64_t index, const Shape& shape) {
  std::string out;
  for (std::size_t a = shape.rank(); a-- > 0;) {
    out.insert(0, std::to_string(index % shape[a]) + (out.empty() ? "" : ", "));
    index /= shape[a];
  }
  return "[" + out + "]";
}

std::string tile(const std::string& name, const std::string& value, bool bad = false) {
  return std::string("<div class=\"tile") + (bad ? " bad" : "") + "\"><b>" + escape(value) + "</b><span>" +
         escape(name) + "</span></div>\n";
}

std::string tiles(const Quality& quality, const ReportOptions& options) {
  std::string out = "<div class=\"tiles\">\n";
  out += tile("PSNR", decibels(quality));
  if (quality.ssim) out += tile("SSIM", number(*quality.ssim, 5));
  out += tile("largest error", number(quality.max_error, 4) + (options.units.empty() ? "" : " " + options.units));
  if (options.bound && options.bound->value > 0) {
    const double share = bounded_error(quality, *options.bound) / options.bound->value;
    out += tile("largest error / bound", number(share, 6), share > 1);
  }
  out += tile("special values changed", count(quality.specials_lost), quality.specials_lost != 0);
  return out + "</div>\n";
}

std::string metrics_section(const Quality& quality, const ArrayView& array, const ReportOptions& options) {
  std::vector<TableRow> rows;
  for (const auto& [name, value] : options.facts) rows.push_back({name, value, ""});
  if (options.bound) rows.push_back({"Bound", bound_text(*options.bound, options.units), ""});
  rows.push_back({"Elements", count(quality.elems), ""});
  rows.push_back({"Valid elements", count(quality.valid), "finite and not a fill value; all figures are over these"});
  rows.push_back({"Special values changed", count(quality.specials_lost),
                  "NaN, infinity, fill values and signs of zero that did not come back bit for bit"});
  if (quality.valid != 0) {
    rows.push_back({"Smallest value", number(quality.min, 9), options.units});
    rows.push_back({"Largest value", number(quality.max, 9), options.units});
    const std::string where = quality.max_error == 0 ? "" : "at " + index_text(quality.max_error_index, array.shape);
    rows.push_back({"Largest error", number(quality.max_error, 9), where});
    rows.push_back({"Largest relative error", number(quality.max_pointwise_rel, 9), "|x − x′| / |x| over x ≠ 0"});
    if (is_float(array.dtype)) rows.push_back({"Largest distance", count(quality.max_ulp), "units in the last place"});
    rows.push_back({"Mean squared error", number(quality.mse, 9), ""});
    rows.push_back({"PSNR", decibels(quality), "20 log₁₀(range) − 10 log₁₀(mean squared error)"});
    rows.push_back({"NRMSE", optional_number(quality.nrmse, 9), "root mean squared error / range"});
    rows.push_back({"SSIM", optional_number(quality.ssim, 9), "mean over windows of 7 elements an axis"});
  }
  const std::size_t lags = quality.valid == 0 || quality.max_error == 0 ? 0 : quality.error_autocorrelation.size();
  for (std::size_t i = 0; i < lags; ++i)
    rows.push_back({i == 0 ? "Autocorrelation of the error" : "", number(quality.error_autocorrelation[i], 4),
                    "lag " + std::to_string(i + 1)});
  return "<section id=\"metrics\">\n<h2>All figures</h2>\n" + table(rows) + "</section>\n";
}

ErrorSurvey survey(const PairReader& reader, const Quality& quality, const ReportOptions& options) {
  SurveyRequest request;
  request.range = quality.max - quality.min;
  request.relative = options.bound && options.bound->kind == BoundKind::pwrel;
  request.max_error = request.relative ? quality.max_pointwise_rel : quality.max_error;
  return survey_errors(reader, request);
}

}  // namespace

std::string compare_report_html(const ArrayView& original, const ArrayView& reconstructed, const Quality& quality,
                                const ReportOptions& options) {
  const PairReader reader(original, reconstructed, options.fill_bits);
  const std::string title = options.reconstructed_name + " against " + options.original_name;
  const std::string heading = options.variable.empty() ? "Comparison" : options.variable;
  std::string out = page_head(title);
  out += "<header>\n<h1>" + escape(heading) + "</h1>\n<p class=\"soft\">" + escape(title) + " · " +
         escape(original.shape.text()) + " · " + dtype_name(original.dtype) + "</p>\n</header>\n";
  out += tiles(quality, options);
  if (original.elems() == 0) {
    out += "<section><p>The arrays have no elements.</p></section>\n";
  } else if (quality.valid == 0) {
    out += "<section><p>No element of the original is valid: there is nothing to measure.</p></section>\n";
  }
  const ErrorSurvey errors = survey(reader, quality, options);
  out += slices_section(reader, options) + curve_section(reader, options);
  if (quality.valid != 0)
    out += "<div class=\"pair\">\n" + histogram_section(errors, options) + slice_psnr_section(errors, original.shape) +
           spectrum_section(reader, options) + autocorrelation_section(quality) + "</div>\n";
  out += metrics_section(quality, original, options);
  if (!options.footer.empty()) out += "<p class=\"note\">" + escape(options.footer) + "</p>\n";
  return out + page_foot();
}

}  // namespace quern::report
