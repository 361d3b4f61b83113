// Oklab to sRGB (Ottosson 2020), and two paths through it.
#include "cli/report/color_map.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace quern::report {
namespace {

constexpr Color kNotFiniteColor{20, 20, 20};
constexpr Color kInvalidColor{160, 160, 160};

using Linear = std::array<double, 3>;

Linear oklab_to_linear(double lightness, double a, double b) {
  const double l = std::pow(lightness + 0.3963377774 * a + 0.2158037573 * b, 3);
  const double m = std::pow(lightness - 0.1055613458 * a - 0.0638541728 * b, 3);
  const double s = std::pow(lightness - 0.0894841775 * a - 1.2914855480 * b, 3);
  return {4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
          -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
          -0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s};
}

bool in_gamut(const Linear& color) {
  return std::all_of(color.begin(), color.end(), [](double c) { return c >= -1e-4 && c <= 1 + 1e-4; });
}

std::uint8_t encode_channel(double linear) {
  const double c = std::clamp(linear, 0.0, 1.0);
  const double encoded = c <= 0.0031308 ? 12.92 * c : 1.055 * std::pow(c, 1 / 2.4) - 0.055;
  return static_cast<std::uint8_t>(std::lround(255 * encoded));
}

/// Keeps lightness and hue and gives up chroma where sRGB ends.
Color from_lightness_chroma_hue(double lightness, double chroma, double hue_degrees) {
  const double hue = hue_degrees * std::numbers::pi / 180;
  Linear color = oklab_to_linear(lightness, chroma * std::cos(hue), chroma * std::sin(hue));
  for (int step = 0; step < 60 && !in_gamut(color); ++step) {
    chroma *= 0.95;
    color = oklab_to_linear(lightness, chroma * std::cos(hue), chroma * std::sin(hue));
  }
  return {encode_channel(color[0]), encode_channel(color[1]), encode_channel(color[2])};
}

template <class Path>
std::vector<Color> palette(Path path) {
  std::vector<Color> colors;
  colors.reserve(256);
  for (int i = 0; i < kLevels; ++i) colors.push_back(path(static_cast<double>(i) / (kLevels - 1)));
  colors.push_back(kNotFiniteColor);
  colors.push_back(kInvalidColor);
  return colors;
}

}  // namespace

std::vector<Color> sequential_palette() {
  return palette([](double t) {
    const double hue = 285 - 185 * t;
    const double chroma = 0.11 + 0.06 * t;
    return from_lightness_chroma_hue(0.22 + 0.72 * t, chroma, hue);
  });
}

std::vector<Color> diverging_palette() {
  return palette([](double t) {
    const double side = 2 * t - 1;
    const double strength = std::fabs(side);
    return from_lightness_chroma_hue(0.97 - 0.52 * strength, 0.2 * strength, side < 0 ? 258 : 30);
  });
}

std::uint8_t level_of(double value, double low, double high) {
  if (std::isnan(value)) return kInvalidIndex;
  if (value <= low) return high > low ? 0 : kLevels / 2;
  if (value >= high) return kLevels - 1;
  // Halves keep the difference finite at the ends of binary64.
  const double place = (value / 2 - low / 2) / (high / 2 - low / 2);
  return static_cast<std::uint8_t>(std::clamp(static_cast<int>(place * kLevels), 0, kLevels - 1));
}

}  // namespace quern::report
