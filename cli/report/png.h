// Palette images as PNG data URIs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cli/report/color_map.h"

namespace quern::report {

/// A picture of palette indices, top row first.
struct IndexedImage {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::vector<std::uint8_t> pixels;
};

/// A PNG file of colour type 3 (ISO/IEC 15948). `image` has at least one pixel, `palette` 1 to 256 entries.
std::vector<std::uint8_t> encode_png(const IndexedImage& image, std::span<const Color> palette);

/// "data:image/png;base64,...".
std::string png_data_uri(const IndexedImage& image, std::span<const Color> palette);

std::string base64(std::span<const std::uint8_t> bytes);

}  // namespace quern::report
