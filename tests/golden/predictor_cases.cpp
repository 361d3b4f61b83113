// Golden files of the lorenzo codec: every predictor on every tile it fits, over all element types in turn.
#include <array>

#include "tests/golden/groups.h"
#include "tests/golden/values.h"

namespace quern::golden {
namespace {

struct Tile {
  const char* name;
  const char* layout;
  std::array<std::uint64_t, 3> extents;
};

constexpr Tile kLine{"line", "1d", {1, 1, 300}};
constexpr Tile kPlane{"plane", "2d:2", {1, 13, 21}};
constexpr Tile kBlock{"block", "3d:1,2", {3, 7, 19}};

constexpr const char* kNames[10] = {"none", "x", "y", "xy", "z", "xz", "yz", "xyz", "xx", "yy"};

/// A code at (z, y, x) on which `predictor` leaves the smallest residuals.
std::int64_t code_at(const Tile& tile, unsigned predictor, std::uint64_t spread, std::uint64_t z, std::uint64_t y,
                     std::uint64_t x) {
  const bool line = tile.extents[1] == 1;
  const bool block = tile.extents[0] > 1;
  const auto row = static_cast<std::int64_t>(y);
  // What a predictor costs is estimated by groups of eight rows, on block tiles a whole plane: its first row, predicted
  // otherwise, counts as much as all others.
  if (block && predictor == 2)
    return swing(22, z, 4000) + swing(24, z * 512 + x, 16) + swing(25, (z * 64 + y) * 512 + x, 1);
  if (block && predictor == 3) return swing(30, z * 64 + y, spread) + row * swing(31, z * 512 + x, 1);
  if (block && predictor == 7)
    return swing(26, y * 64 + z, spread) + swing(27, y * 512 + x, spread) + row * swing(28, z * 512 + x, 1);
  if (block && predictor == 9) return row * row * swing(29, z * 512 + x, 4);
  switch (predictor) {
    case 0: return z + y + x == 0 ? 0 : swing(3, (z * 64 + y) * 512 + x, 4 * spread);
    case 1:
      // Constant rows on several axes; on one axis a staircase.
      return line ? static_cast<std::int64_t>(x / 40 * 3) + swing(9, x / 9, 2) : swing(1, z * 64 + y, 2 * spread);
    case 8: {
      const auto slope = static_cast<std::int64_t>(noise(11, z * 64 + y, 5)) + 1;
      return line ? static_cast<std::int64_t>(x) : slope * static_cast<std::int64_t>(x) + swing(12, z * 64 + y, spread);
    }
    case 9: {
      const auto slope = static_cast<std::int64_t>(noise(13, z * 512 + x, 5)) + 1;
      return slope * static_cast<std::int64_t>(y) + swing(14, z * 512 + x, spread);
    }
    default: break;
  }
  // A sum of parts, each independent of one of the predictor's axes: the product of differences is 0.
  std::int64_t code = 0;
  if ((predictor & 1) != 0) code += swing(21, z * 64 + y, spread);
  if ((predictor & 2) != 0) code += swing(22, z * 512 + x, spread);
  if ((predictor & 4) != 0) code += swing(23, y * 512 + x, spread);
  return code;
}

GoldenFile predictor_file(const Tile& tile, unsigned predictor, DType dtype) {
  const std::size_t width = dtype_bytes(dtype);
  const bool narrow = width == 1 || dtype == DType::bf16;
  const std::uint64_t spread = narrow ? 8 : 60;
  // Integers have the step 3 (half 1); bytes have no room for that.
  const std::int64_t scale = is_float(dtype) || width == 1 ? 1 : 3;
  const double bound = is_float(dtype) ? 0.5 : width == 1 ? 0 : 1;
  const double middle = is_signed_integer(dtype) || is_float(dtype) ? 0 : width == 1 ? 100 : 20000;
  testing::OwnedArray array =
      values_of(dtype, {tile.extents[0], tile.extents[1], tile.extents[2]}, [&](std::uint64_t i) {
        const std::uint64_t x = i % tile.extents[2];
        const std::uint64_t y = i / tile.extents[2] % tile.extents[1];
        const std::uint64_t z = i / (tile.extents[1] * tile.extents[2]);
        const double jitter = is_float(dtype) && !narrow ? static_cast<double>(noise(31, i, 8)) / 32 : 0;
        return static_cast<double>(scale * code_at(tile, predictor, spread, z, y, x)) + middle + jitter;
      });
  CompressOptions options =
      with(bound == 0 ? BoundKind::lossless : BoundKind::abs, bound, "lorenzo", {{"layout", tile.layout}});
  options.find_repeated = false;
  const std::string name = std::string(tile.name) + "_" + kNames[predictor] + "_" + dtype_name(dtype);
  return one(name, std::string(tile.name) + " tiles, predictor " + kNames[predictor], std::move(array), options);
}

}  // namespace

void add_predictor_files(std::vector<GoldenFile>& files) {
  const auto& dtypes = testing::all_dtypes();
  std::size_t turn = 0;
  const auto add = [&](const Tile& tile, std::initializer_list<unsigned> predictors) {
    for (const unsigned p : predictors) files.push_back(predictor_file(tile, p, dtypes[turn++ % dtypes.size()]));
  };
  add(kLine, {0, 1, 8});
  add(kPlane, {0, 1, 2, 3, 8, 9});
  add(kBlock, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
}

}  // namespace quern::golden
