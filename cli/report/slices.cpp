// Planes and their reduction to pixels.
#include "cli/report/slices.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace quern::report {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// What the elements of one pixel add up to.
struct Pixel {
  double original = 0.0;
  double reconstructed = 0.0;
  double error = 0.0;
  double elems = 0.0;
  bool spoilt = false;

  void add(double x, double y, double e) {
    if (std::isnan(x)) return;
    ++elems;
    if (!std::isfinite(y)) {
      spoilt = true;
      return;
    }
    // A running mean, because a sum could leave binary64.
    original += x / elems - original / elems;
    reconstructed += y / elems - reconstructed / elems;
    if (std::fabs(e) > std::fabs(error)) error = e;
  }
};

std::string index_text(const Shape& shape, const std::vector<std::uint64_t>& fixed) {
  std::string out = "[";
  for (std::size_t a = 0; a < shape.rank(); ++a) {
    if (a != 0) out += ", ";
    out += a + 2 < shape.rank() ? std::to_string(fixed[a]) : ":";
  }
  return out + "]";
}

Plane plane_at(const Shape& shape, const std::vector<std::uint64_t>& fixed) {
  Plane plane;
  const std::size_t rank = shape.rank();
  plane.rows = shape[rank - 2];
  plane.columns = shape[rank - 1];
  for (std::size_t a = 0; a + 2 < rank; ++a) plane.first = plane.first * shape[a] + fixed[a];
  plane.first *= plane.rows * plane.columns;
  plane.where = index_text(shape, fixed);
  return plane;
}

void finish(const std::vector<Pixel>& row, PlanePixels& pixels) {
  for (const Pixel& pixel : row) {
    const bool empty = pixel.elems == 0;
    pixels.original.push_back(empty ? kNan : pixel.original);
    pixels.reconstructed.push_back(empty ? kNan : pixel.spoilt ? kInfinity : pixel.reconstructed);
    pixels.error.push_back(empty ? kNan : pixel.spoilt ? kInfinity : pixel.error);
  }
}

}  // namespace

std::vector<Plane> choose_planes(const Shape& shape) {
  const std::size_t rank = shape.rank();
  if (rank < 2 || shape.elems() == 0) return {};
  std::vector<std::uint64_t> fixed(rank, 0);
  for (std::size_t a = 0; a + 2 < rank; ++a) fixed[a] = shape[a] / 2;
  if (rank == 2) return {plane_at(shape, fixed)};
  const std::uint64_t extent = shape[rank - 3];
  std::vector<std::uint64_t> places{(extent - 1) / 6, extent / 2, extent - 1 - (extent - 1) / 6};
  places.erase(std::unique(places.begin(), places.end()), places.end());
  std::vector<Plane> planes;
  for (const std::uint64_t place : places) {
    fixed[rank - 3] = place;
    planes.push_back(plane_at(shape, fixed));
  }
  return planes;
}

PlanePixels render_plane(const PairReader& reader, const Plane& plane) {
  PlanePixels pixels;
  pixels.width = static_cast<std::uint32_t>(std::min(plane.columns, kMaxPixels));
  pixels.height = static_cast<std::uint32_t>(std::min(plane.rows, kMaxPixels));
  std::vector<Pixel> row;
  PairRun run;
  for (std::uint64_t y = 0; y < pixels.height; ++y) {
    row.assign(pixels.width, Pixel{});
    for (std::uint64_t r = y * plane.rows / pixels.height; r < (y + 1) * plane.rows / pixels.height; ++r) {
      reader.read(plane.first + r * plane.columns, plane.columns, 1, run);
      for (std::uint64_t x = 0; x < pixels.width; ++x)
        for (std::uint64_t c = x * plane.columns / pixels.width; c < (x + 1) * plane.columns / pixels.width; ++c)
          row[x].add(run.original[c], run.reconstructed[c], run.error[c]);
    }
    finish(row, pixels);
  }
  return pixels;
}

}  // namespace quern::report
