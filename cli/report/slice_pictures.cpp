// Original, reconstruction and error of a few planes side by side, with colour bars.
#include <algorithm>
#include <cmath>

#include "cli/report/color_map.h"
#include "cli/report/html.h"
#include "cli/report/pictures.h"
#include "cli/report/png.h"
#include "cli/report/slices.h"

namespace quern::report {
namespace {

struct ColorScale {
  double low = 0.0;
  double high = 0.0;
};

/// All but the outermost 0.2 % of the originals at either end, so that one odd value does not turn a picture grey.
ColorScale data_scale(const std::vector<PlanePixels>& planes) {
  std::vector<double> values;
  for (const PlanePixels& plane : planes)
    for (const double value : plane.original)
      if (!std::isnan(value)) values.push_back(value);
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const std::size_t cut = values.size() / 500;
  return {values[cut], values[values.size() - 1 - cut]};
}

ColorScale error_scale(const std::vector<PlanePixels>& planes) {
  double largest = 0.0;
  for (const PlanePixels& plane : planes)
    for (const double value : plane.error)
      if (std::isfinite(value)) largest = std::max(largest, std::fabs(value));
  return {-largest, largest};
}

std::string picture(const PlanePixels& plane, const std::vector<double>& values, const ColorScale& scale,
                    const std::vector<Color>& palette, const std::string& words) {
  IndexedImage image{plane.width, plane.height, {}};
  for (const double value : values)
    image.pixels.push_back(std::isinf(value) ? kNotFiniteIndex : level_of(value, scale.low, scale.high));
  // Long and narrow planes are drawn no narrower than 1 to 4, or they could not be seen.
  const double aspect = std::clamp(static_cast<double>(plane.width) / plane.height, 0.5, 4.0);
  return "<img class=\"picture\" style=\"aspect-ratio: " + number(aspect, 4) + "\" alt=\"" + escape(words) +
         "\" src=\"" + png_data_uri(image, palette) + "\"/>\n";
}

std::string color_bar(const ColorScale& scale, const std::vector<Color>& palette) {
  const double middle = scale.low / 2 + scale.high / 2;
  // Ends that differ in their last digits only have their middle at zero as far as a reader can see.
  const bool centred = std::fabs(middle) < (scale.high / 2 - scale.low / 2) / 1000;
  IndexedImage bar{static_cast<std::uint32_t>(kLevels), 1, {}};
  for (int i = 0; i < kLevels; ++i) bar.pixels.push_back(static_cast<std::uint8_t>(i));
  return "<div><img class=\"bar\" alt=\"colour scale\" src=\"" + png_data_uri(bar, palette) +
         "\"/><div class=\"ends\"><span>" + number(scale.low, 5) + "</span><span>" + number(centred ? 0 : middle, 5) +
         "</span><span>" + number(scale.high, 5) + "</span></div></div>\n";
}

std::string captioned(const std::string& image, const std::string& caption) {
  return "<figure>" + image + "<figcaption>" + escape(caption) + "</figcaption></figure>\n";
}

std::string axes_note(const Shape& shape) {
  const std::size_t rank = shape.rank();
  return "Downwards axis " + std::to_string(rank - 2) + " (" + count(shape[rank - 2]) + "), to the right axis " +
         std::to_string(rank - 1) + " (" + count(shape[rank - 1]) +
         "). Larger planes are reduced: values by their mean, errors by the largest in magnitude. The colours of "
         "values "
         "cover the originals but for the outermost 0.2 % at either end. Grey: gaps. Black: the reconstruction is not "
         "finite.";
}

}  // namespace

std::string slices_section(const PairReader& reader, const ReportOptions& options) {
  const std::vector<Plane> planes = choose_planes(reader.shape());
  if (planes.empty()) return "";
  std::vector<PlanePixels> pixels;
  for (const Plane& plane : planes) pixels.push_back(render_plane(reader, plane));
  const ColorScale data = data_scale(pixels);
  const ColorScale error = error_scale(pixels);
  const auto sequential = sequential_palette();
  const auto diverging = diverging_palette();
  const std::string label = value_label(options);
  std::string out = "<section id=\"slices\">\n<h2>Slices</h2>\n<p class=\"note\">" + escape(label) + ". " +
                    escape(axes_note(reader.shape())) + "</p>\n<div class=\"slices\">\n";
  out += "<h3>Original</h3><h3>Reconstruction</h3><h3>Error (original − reconstruction)</h3>\n";
  for (std::size_t i = 0; i < planes.size(); ++i) {
    const std::string& where = planes[i].where;
    out += captioned(picture(pixels[i], pixels[i].original, data, sequential, "original " + where), where);
    out += captioned(picture(pixels[i], pixels[i].reconstructed, data, sequential, "reconstruction " + where), where);
    out += captioned(picture(pixels[i], pixels[i].error, error, diverging, "error " + where), where);
  }
  out += color_bar(data, sequential) + color_bar(data, sequential) + color_bar(error, diverging);
  return out + "</div>\n</section>\n";
}

}  // namespace quern::report
