// The four chunks a palette PNG needs.
#include "cli/report/png.h"

#include <array>
#include <new>
#include <string_view>

#include <zlib.h>

namespace quern::report {
namespace {

using Bytes = std::vector<std::uint8_t>;

void put_u32(Bytes& out, std::uint32_t value) {
  for (const int shift : {24, 16, 8, 0}) out.push_back(static_cast<std::uint8_t>(value >> shift));
}

void put_chunk(Bytes& out, std::string_view type, std::span<const std::uint8_t> body) {
  put_u32(out, static_cast<std::uint32_t>(body.size()));
  const std::size_t checked_from = out.size();
  out.insert(out.end(), type.begin(), type.end());
  out.insert(out.end(), body.begin(), body.end());
  const uLong crc = crc32(0, out.data() + checked_from, static_cast<uInt>(out.size() - checked_from));
  put_u32(out, static_cast<std::uint32_t>(crc));
}

/// Rows, each behind filter byte 0, as a zlib stream.
Bytes deflate_rows(const IndexedImage& image) {
  Bytes rows;
  rows.reserve(std::size_t{image.height} * (image.width + 1));
  for (std::uint32_t y = 0; y < image.height; ++y) {
    rows.push_back(0);
    const auto first = image.pixels.begin() + static_cast<std::ptrdiff_t>(std::size_t{y} * image.width);
    rows.insert(rows.end(), first, first + image.width);
  }
  uLongf size = compressBound(static_cast<uLong>(rows.size()));
  Bytes out(size);
  // With a buffer of compressBound, running out of memory is all that can go wrong.
  if (compress2(out.data(), &size, rows.data(), static_cast<uLong>(rows.size()), 9) != Z_OK) throw std::bad_alloc();
  out.resize(size);
  return out;
}

}  // namespace

Bytes encode_png(const IndexedImage& image, std::span<const Color> palette) {
  Bytes out{0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  Bytes header;
  put_u32(header, image.width);
  put_u32(header, image.height);
  constexpr std::array<std::uint8_t, 5> kPaletteOfBytes{8, 3, 0, 0, 0};  // bits, colour type, and the only methods
  header.insert(header.end(), kPaletteOfBytes.begin(), kPaletteOfBytes.end());
  put_chunk(out, "IHDR", header);
  Bytes colors;
  for (const Color& color : palette) colors.insert(colors.end(), color.begin(), color.end());
  put_chunk(out, "PLTE", colors);
  put_chunk(out, "IDAT", deflate_rows(image));
  put_chunk(out, "IEND", {});
  return out;
}

std::string base64(std::span<const std::uint8_t> bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 3; ++j) group = group << 8 | (i + j < bytes.size() ? bytes[i + j] : 0u);
    const std::size_t digits = std::min<std::size_t>(bytes.size() - i, 3) + 1;
    for (std::size_t j = 0; j < 4; ++j) out += j < digits ? kDigits[group >> (18 - 6 * j) & 63] : '=';
  }
  return out;
}

std::string png_data_uri(const IndexedImage& image, std::span<const Color> palette) {
  return "data:image/png;base64," + base64(encode_png(image, palette));
}

}  // namespace quern::report
