// The page of two clouds from top to bottom: headline figures, from above, range images, histogram, table.
#include "cli/report/cloud_report.h"

#include <algorithm>
#include <cmath>

#include "cli/report/cloud_pictures.h"
#include "cli/report/html.h"
#include "cli/report/plot.h"

namespace quern::report {
namespace {

constexpr std::size_t kBins = 60;

std::string metres(double value) {
  if (!std::isfinite(value)) return "none";
  return value < 1 ? number(value * 100, 4) + " cm" : number(value, 4) + " m";
}

std::string section(const char* id, const char* title, const char* note, const std::string& body) {
  return std::string("<section id=\"") + id + "\">\n<h2>" + title + "</h2>\n<p class=\"note\">" + note + "</p>\n" +
         body + "</section>\n";
}

std::string tile(const std::string& name, const std::string& value) {
  return "<div class=\"tile\"><b>" + escape(value) + "</b><span>" + escape(name) + "</span></div>\n";
}

std::string figure(const IndexedImage& image, const std::string& name) {
  return "<figure><h3>" + escape(name) + "</h3>\n<img class=\"picture\" alt=\"" + escape(name) + "\" src=\"" +
         png_data_uri(image, sequential_palette()) + "\"/></figure>\n";
}

/// The colours from low to high, with both ends named.
std::string scale_bar(const std::string& name, Scale scale) {
  IndexedImage bar{kLevels, 1, {}};
  for (int i = 0; i < kLevels; ++i) bar.pixels.push_back(static_cast<std::uint8_t>(i));
  return "<figure><img class=\"bar\" alt=\"colours\" src=\"" + png_data_uri(bar, sequential_palette()) +
         "\"/><div class=\"ends\"><span>" + metres(scale.low) + "</span><span>" + escape(name) + "</span><span>" +
         metres(scale.high) + "</span></div></figure>\n";
}

std::string from_above(const CloudReport& report) {
  const CloudFrame frame = choose_frame(report.original, report.decoded);
  const Scale height = choose_scale(report.original, report.decoded, CloudValue::height);
  const Scale error = choose_scale(report.original, report.decoded, CloudValue::error);
  std::string body = "<div class=\"slices\">\n";
  body += figure(birds_eye(report.original, frame, CloudValue::height, height), report.original_name);
  body += figure(birds_eye(report.decoded, frame, CloudValue::height, height), report.decoded_name);
  body += figure(birds_eye(report.original, frame, CloudValue::error, error), "error: A to the nearest of B");
  body += scale_bar("height", height) + scale_bar("height", height) + scale_bar("distance", error);
  return section(
      "birds-eye", "From above",
      "The square that holds 99 of 100 points; x to the right, y up. The highest point of a pixel is seen, of "
      "errors the largest.",
      body + "</div>\n");
}

std::string range_images(const CloudReport& report) {
  const Scale range = choose_scale(report.original, report.decoded, CloudValue::range);
  const Scale error = choose_scale(report.original, report.decoded, CloudValue::error);
  std::string body = figure(range_image(report.original, CloudValue::range, range), report.original_name);
  body += figure(range_image(report.decoded, CloudValue::range, range), report.decoded_name);
  body += scale_bar("range", range);
  body += figure(range_image(report.original, CloudValue::error, error), "error: A to the nearest of B");
  body += figure(range_image(report.decoded, CloudValue::error, error), "error: B to the nearest of A");
  body += scale_bar("distance", error);
  return section("range-images", "As the sensor saw it",
                 "A sensor at the origin: azimuth from 180° on the left to −180° on the right, elevation from −26° to "
                 "16°. The nearest point of a pixel is seen, of errors the largest.",
                 body);
}

Series bars(const std::vector<CloudPoint>& points, double top, int color, const std::string& name) {
  Series out{name, {}, std::vector<double>(kBins, 0), color, false, true};
  for (std::size_t i = 0; i <= kBins; ++i) out.x.push_back(top * static_cast<double>(i) / kBins * 100);
  for (const CloudPoint& p : points)
    if (std::isfinite(p.error)) ++out.y[std::min(kBins - 1, static_cast<std::size_t>(p.error / top * kBins))];
  return out;
}

std::string histogram(const CloudReport& report) {
  const double top = choose_scale(report.original, report.decoded, CloudValue::error).high;
  const auto plot = [&](const std::vector<CloudPoint>& points, int color, const std::string& title) {
    Plot out;
    out.title = title;
    out.x_label = title + " [cm]";
    out.y_label = "Points";
    out.log_y = true;
    out.from_zero = true;
    out.series = {bars(points, top, color, title)};
    return render(out);
  };
  return section("histogram", "Distribution of the distances", "Counts on a logarithmic scale.",
                 "<div class=\"pair\"><div>" + plot(report.original, 0, "Distance from A to B") + "</div><div>" +
                     plot(report.decoded, 1, "Distance from B to A") + "</div></div>\n");
}

std::string figures(const CloudReport& report) {
  std::vector<TableRow> rows;
  rows.push_back({"Points of A, of B (finite)", count(report.original.size()), count(report.decoded.size())});
  for (const CloudFigure& figure : report.figures)
    rows.push_back({figure.name, "A to B " + metres(figure.forward), "B to A " + metres(figure.backward)});
  rows.push_back({"D1 PSNR", std::isfinite(report.d1_psnr_db) ? number(report.d1_psnr_db, 5) + " dB" : "∞",
                  "10 log₁₀(3 p² / mean square), p the longest side of A's box"});
  return section("figures", "Figures", "Distances to the nearest point of the other cloud.", table(rows));
}

}  // namespace

std::string cloud_report_html(const CloudReport& report) {
  std::string out = page_head(report.decoded_name + " against " + report.original_name);
  out += "<h1>" + escape(report.decoded_name) + " against " + escape(report.original_name) + "</h1>\n";
  out += "<div class=\"tiles\">\n";
  if (!report.figures.empty()) {
    const CloudFigure& largest = report.figures.front();
    out += tile("largest distance, A to B", metres(largest.forward));
    out += tile("largest distance, B to A", metres(largest.backward));
  }
  out += tile("points of A", count(report.original.size()));
  out += tile("points of B", count(report.decoded.size()));
  out += "</div>\n" + from_above(report) + range_images(report) + histogram(report) + figures(report);
  return out + "<p class=\"note\">" + escape(report.footer) + "</p>\n" + page_foot();
}

}  // namespace quern::report
