// The report's sections of plots.
#include <algorithm>
#include <cmath>
#include <limits>

#include "cli/report/html.h"
#include "cli/report/pictures.h"
#include "cli/report/plot.h"
#include "cli/report/spectrum.h"

namespace quern::report {
namespace {

constexpr std::uint64_t kCurvePoints = 800;

std::string with_units(const std::string& name, const std::string& units) {
  return units.empty() ? name : name + " [" + units + "]";
}

std::string section(const std::string& id, const std::string& title, const std::string& note, const std::string& body) {
  return "<section id=\"" + id + "\">\n<h2>" + escape(title) + "</h2>\n<p class=\"note\">" + escape(note) + "</p>\n" +
         body + "</section>\n";
}

struct Curves {
  Series original{"original", {}, {}, 0, false, false};
  Series reconstructed{"reconstruction", {}, {}, 1, true, false};
  Series error{"error", {}, {}, 2, false, false};
};

/// Lowest and highest of each stretch, in the order in which they occur: peaks survive the reduction.
void add_extremes(const std::vector<double>& values, std::uint64_t first, Series& series) {
  std::size_t low = 0;
  std::size_t high = 0;
  bool any = false;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) continue;
    if (!any || values[i] < values[low]) low = i;
    if (!any || values[i] > values[high]) high = i;
    any = true;
  }
  const double nothing = std::numeric_limits<double>::quiet_NaN();
  for (const std::size_t i : {std::min(low, high), std::max(low, high)}) {
    series.x.push_back(static_cast<double>(first + i));
    series.y.push_back(any ? values[i] : nothing);
    if (low == high) break;
  }
}

Curves read_curves(const PairReader& reader) {
  Curves curves;
  const std::uint64_t elems = reader.shape().elems();
  const std::uint64_t stretches = std::min(elems, kCurvePoints);
  PairRun run;
  for (std::uint64_t s = 0; s < stretches; ++s) {
    // The order of operations keeps the product in 64 bits for any length.
    const std::uint64_t begin = elems / stretches * s + elems % stretches * s / stretches;
    const std::uint64_t end = elems / stretches * (s + 1) + elems % stretches * (s + 1) / stretches;
    reader.read(begin, end - begin, 1, run);
    add_extremes(run.original, begin, curves.original);
    add_extremes(run.reconstructed, begin, curves.reconstructed);
    add_extremes(run.error, begin, curves.error);
  }
  return curves;
}

}  // namespace

std::string value_label(const ReportOptions& options) {
  return with_units(options.variable.empty() ? "Value" : options.variable, options.units);
}

std::string curve_section(const PairReader& reader, const ReportOptions& options) {
  if (reader.shape().rank() > 1 || reader.shape().elems() == 0) return "";
  const Curves curves = read_curves(reader);
  Plot values;
  values.title = "Original and reconstruction";
  values.wide = true;
  values.x_label = "Index";
  values.y_label = value_label(options);
  values.series = {curves.original, curves.reconstructed};
  Plot errors;
  errors.title = "Error";
  errors.wide = true;
  errors.x_label = "Index";
  errors.y_label = with_units("Error", options.units);
  errors.series = {curves.error};
  const std::string reduced = reader.shape().elems() > kCurvePoints
                                  ? " Long arrays are drawn by the lowest and highest value of each stretch."
                                  : "";
  return section("values", "Values", "Both arrays, one over the other." + reduced, render(values)) +
         section("errors", "Error along the array", "Original − reconstruction." + reduced, render(errors));
}

std::string histogram_section(const ErrorSurvey& survey, const ReportOptions& options) {
  if (survey.counts.empty()) return "";
  const bool relative = options.bound && options.bound->kind == BoundKind::pwrel;
  Plot plot;
  plot.title = "Histogram of the error";
  plot.x_label = relative ? "Error / |original|" : with_units("Error", options.units);
  plot.y_label = "Elements";
  plot.log_y = true;
  plot.from_zero = true;
  Series bars;
  bars.bars = true;
  bars.x = survey.edges;
  for (const std::uint64_t n : survey.counts) bars.y.push_back(static_cast<double>(n));
  plot.series = {bars};
  if (options.bound && options.bound->kind != BoundKind::lossless)
    plot.marks = {{-options.bound->value, "−bound"}, {options.bound->value, "+bound"}};
  std::string note = "Original − reconstruction over valid elements, counts on a logarithmic scale.";
  if (survey.beyond != 0) note.append(" ").append(count(survey.beyond)).append(" elements lie outside of the picture.");
  return section("histogram", "Distribution of the error", note, render(plot));
}

std::string slice_psnr_section(const ErrorSurvey& survey, const Shape& shape) {
  const auto& psnr = survey.slice_psnr;
  if (shape.rank() < 2 || psnr.size() < 2) return "";
  if (std::none_of(psnr.begin(), psnr.end(), [](double value) { return std::isfinite(value); })) return "";
  Plot plot;
  plot.title = "PSNR of slices";
  plot.x_label = "Index along axis 0";
  plot.y_label = "PSNR [dB]";
  Series line;
  line.x = survey.slice_index;
  line.y = survey.slice_psnr;
  plot.series = {line};
  std::string note = "Each slice against the range of the whole array.";
  if (survey.slice_psnr.size() < shape[0]) note += " Neighbouring slices are grouped; the worst is shown.";
  if (survey.slices_without_error != 0)
    note.append(" ").append(count(survey.slices_without_error)).append(" slices have no error and no point.");
  return section("slice-psnr", "PSNR along the slowest axis", note, render(plot));
}

std::string spectrum_section(const PairReader& reader, const ReportOptions& options) {
  const Spectra spectra = power_spectra(reader);
  if (spectra.frequency.empty()) return "";
  Plot plot;
  plot.title = "Power spectra";
  plot.x_label = "Frequency [cycles per element]";
  plot.y_label = options.units.empty() ? "Power" : "Power [(" + options.units + ")²]";
  plot.log_x = true;
  plot.log_y = true;
  plot.series = {{"original", spectra.frequency, spectra.original, 0, false, false},
                 {"reconstruction", spectra.frequency, spectra.reconstructed, 1, true, false},
                 {"error", spectra.frequency, spectra.error, 2, false, false}};
  return section("spectrum", "Power spectrum", spectra.how + " Hann window, mean taken out.", render(plot));
}

std::string autocorrelation_section(const Quality& quality) {
  if (quality.error_autocorrelation.empty() || quality.max_error == 0) return "";
  Plot plot;
  plot.title = "Autocorrelation of the error";
  plot.x_label = "Lag along the fastest axis [elements]";
  plot.y_label = "Correlation";
  plot.from_zero = true;
  Series line;
  line.x.push_back(0);
  line.y.push_back(1);
  for (const double value : quality.error_autocorrelation) {
    line.x.push_back(static_cast<double>(line.x.size()));
    line.y.push_back(value);
  }
  plot.series = {line};
  return section("autocorrelation", "Autocorrelation of the error",
                 "Near 0: the error looks like noise. Far from 0: it has structure.", render(plot));
}

}  // namespace quern::report
