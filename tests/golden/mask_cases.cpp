// Golden files about masks: NaN, infinities, declared fill values, repeated values, verbatim cells, masked chunks.
#include "tests/golden/groups.h"
#include "tests/golden/values.h"

namespace quern::golden {
namespace {

using testing::OwnedArray;

constexpr std::uint64_t kFillF32 = 0x7149F2CA;  // 1e30

double field(std::uint64_t i) { return static_cast<double>(i % 31) / 2 + static_cast<double>(i % 7); }

/// A coast along a parabola in the planes of a 3-D array, moving a little from plane to plane.
bool is_land(std::uint64_t i, std::uint64_t rows, std::uint64_t columns) {
  const std::uint64_t x = i % columns;
  const std::uint64_t y = i / columns % rows;
  const std::uint64_t z = i / (rows * columns);
  return x * x / 16 + z / 2 < y;
}

template <class Bits>
OwnedArray coast(DType dtype, std::uint64_t planes, Bits land_bits) {
  OwnedArray array = values_of(dtype, {planes, 20, 25}, field);
  for (std::uint64_t i = 0; i < array.shape.elems(); ++i)
    if (is_land(i, 20, 25)) set_bits(array, i, land_bits(i));
  return array;
}

void add_values(std::vector<GoldenFile>& files) {
  files.push_back(one("mask_nan", "NaN with a payload in coherent planes",
                      coast(DType::f32, 5, [](std::uint64_t) { return 0x7FC12345; }), with(BoundKind::abs, 0.25)));
  const OwnedArray filled =
      coast(DType::f32, 2, [](std::uint64_t i) { return i % 9 == 0 ? UINT64_C(0x80000000) : kFillF32; });
  CompressOptions fill = with(BoundKind::abs, 0.25);
  fill.fill_bits = {kFillF32, 0x80000000};
  files.push_back(one("mask_fill_levels", "declared fill values, one of them -0.0", filled, fill));
  fill.settings = {{"mask", "1"}};
  files.push_back(one("mask_fill", "declared fill values in the form of decisions", filled, fill));
  files.push_back(one("mask_repeated", "land that is 0, found as a repeated value",
                      coast(DType::f64, 2, [](std::uint64_t) { return UINT64_C(0); }), with(BoundKind::abs, 0.25)));
  CompressOptions integers = with(BoundKind::abs, 1);
  integers.fill_bits = {0x8001};
  integers.settings = {{"mask", "1"}};
  files.push_back(one("mask_fill_i16", "a fill value of an integer type",
                      coast(DType::i16, 1, [](std::uint64_t) { return 0x8001; }), integers));
}

void add_classes(std::vector<GoldenFile>& files) {
  files.push_back(one("mask_several", "NaN of two payloads, both infinities",
                      bits_of(DType::f32, {12, 40},
                              [](std::uint64_t i) {
                                const std::uint64_t specials[] = {0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00001};
                                return i % 40 < 12 ? specials[i / 120] : 0x42000000 + (i << 12);
                              }),
                      with(BoundKind::abs, 0.5)));
  files.push_back(one(
      "mask_verbatim", "so many payloads that cells are stored one by one",
      bits_of(DType::f32, {8, 40},
              [](std::uint64_t i) { return i % 3 == 0 ? 0x7FC00000 + noise(81, i, 5000) : 0x41000000 + (i << 14); }),
      with(BoundKind::abs, 0.5)));
  files.push_back(one("mask_verbatim_f64", "verbatim cells of 8-byte elements beside frequent ones",
                      bits_of(DType::f64, {3, 9, 30},
                              [](std::uint64_t i) {
                                const std::uint64_t nan = UINT64_C(0x7FF8) << 48;
                                if (i % 11 == 0) return nan + noise(82, i, 0) % (UINT64_C(1) << 50);
                                return i % 30 > 20 ? nan : std::bit_cast<std::uint64_t>(field(i));
                              }),
                      with(BoundKind::abs, 0.5)));
  files.push_back(one("mask_f16", "scattered cells of a 2-byte type",
                      bits_of(DType::f16, {6, 50},
                              [](std::uint64_t i) { return noise(83, i, 5) == 0 ? UINT64_C(0x7E00) : 0x4000 + i; }),
                      with(BoundKind::abs, 0.125)));
  files.push_back(one("mask_lossless", "a mask before the codec lossless",
                      coast(DType::f32, 1, [](std::uint64_t) { return 0x7FC00001; }), with(BoundKind::lossless, 0)));
}

void add_planes(std::vector<GoldenFile>& files) {
  const Settings blocks{{"layout", "3d:1,2"}};
  files.push_back(one("mask_reference_planes", "planes that repeat those two before",
                      values_of(DType::f32, {8, 12, 30},
                                [](std::uint64_t i) {
                                  const std::uint64_t plane = i / 360;
                                  const bool gap = noise(90 + plane % 2, i % 360 / 6, 3) == 0;
                                  return gap ? std::numeric_limits<double>::quiet_NaN() : field(i);
                                }),
                      with(BoundKind::abs, 0.5, "lorenzo", blocks)));
  files.push_back(one("mask_islands", "planes that differ from the one before in a few cells",
                      values_of(DType::f32, {3, 32, 40},
                                [](std::uint64_t i) {
                                  const std::uint64_t plane = i / 1280;
                                  const std::uint64_t cell = i % 1280;
                                  const bool island = noise(95, cell % 40 / 3 + cell / 40 / 3 * 64, 4) == 0;
                                  const bool moved = plane > 0 && cell / 40 < 4 && noise(96 + plane, cell, 6) == 0;
                                  return island != moved ? std::numeric_limits<double>::quiet_NaN() : 5.0;
                                }),
                      with(BoundKind::abs, 0.5, "lorenzo", blocks)));
  files.push_back(
      one("mask_whole_chunks", "chunks that are masked as a whole",
          values_of(DType::f32, {128, 1, 1},
                    [](std::uint64_t i) { return i < 700 ? std::numeric_limits<double>::quiet_NaN() : field(i); }),
          with(BoundKind::abs, 0.5, "lorenzo", blocks)));
  CompressOptions nothing_left = with(BoundKind::rel, 1e-3);
  nothing_left.goal = "ratio";
  files.push_back(
      one("mask_everything", "an array without a valid value",
          values_of(DType::bf16, {60}, [](std::uint64_t) { return -std::numeric_limits<double>::infinity(); }),
          nothing_left));
}

/// Planes of `rows` x `cols`, the last axes, with the same land but for one cell in `moved`.
OwnedArray repeated_land(std::initializer_list<std::uint64_t> extents, std::uint64_t rows, std::uint64_t cols,
                         std::uint64_t moved) {
  return values_of(DType::f32, extents, [rows, cols, moved](std::uint64_t i) {
    const std::uint64_t cell = i % (rows * cols);
    const bool land = noise(97, cell % cols / 4 + cell / cols / 5 * 64, 2) == 0;
    return land != (noise(98, i, moved) == 0) ? std::numeric_limits<double>::quiet_NaN() : 5.0;
  });
}

void add_views(std::vector<GoldenFile>& files) {
  files.push_back(one("mask_view", "rows and planes of the array where the codec has merged all axes",
                      repeated_land({35, 16, 30}, 16, 30, 150),
                      with(BoundKind::abs, 0.5, "lorenzo", {{"layout", "1d"}})));
  files.push_back(one("mask_view_short_plane", "a segment that ends within a plane of the array",
                      repeated_land({1, 330, 13, 16}, 13, 16, 1000),
                      with(BoundKind::abs, 0.5, "lorenzo", {{"layout", "3d:1,3"}})));
}

/// Masks coded by levels.
void add_levels(std::vector<GoldenFile>& files) {
  const auto nan = std::numeric_limits<double>::quiet_NaN();
  const Settings by_levels{{"mask", "2"}}, planes{{"layout", "3d:1,2"}, {"mask", "2"}};
  files.push_back(one("mask_levels", "planes beside those before them, some the same",
                      coast(DType::f32, 5, [](std::uint64_t) { return 0x7FC12345; }),
                      with(BoundKind::abs, 0.25, "lorenzo", planes)));
  files.push_back(one("mask_levels_distance", "planes that repeat those two before but for a few cells",
                      values_of(DType::f32, {8, 24, 40},
                                [nan](std::uint64_t i) {
                                  const std::uint64_t plane = i / 960;
                                  const bool gap = noise(90 + plane % 2, i % 40 / 6 + i % 960 / 240 * 8, 3) == 0;
                                  return gap != (noise(91, i, 200) == 0) ? nan : 5.0;
                                }),
                      with(BoundKind::abs, 0.5, "lorenzo", planes)));
  files.push_back(one("mask_levels_view", "rows and planes of the array where the codec has merged all axes",
                      repeated_land({35, 16, 30}, 16, 30, 400),
                      with(BoundKind::abs, 0.5, "lorenzo", {{"layout", "1d"}, {"mask", "2"}})));
  files.push_back(
      one("mask_levels_rows", "rows that repeat, each coded as a plane",
          values_of(DType::f32, {2, 40, 64}, [nan](std::uint64_t i) { return (i + i / 64) % 2 == 0 ? nan : field(i); }),
          with(BoundKind::abs, 0.5, "lorenzo", planes)));
  files.push_back(one("mask_levels_several", "NaN of two payloads, both infinities",
                      bits_of(DType::f32, {12, 40},
                              [](std::uint64_t i) {
                                const std::uint64_t specials[] = {0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00001};
                                return i % 40 < 12 ? specials[i / 120] : 0x42000000 + (i << 12);
                              }),
                      with(BoundKind::abs, 0.5, "lorenzo", by_levels)));
  files.push_back(one("mask_levels_rim", "zeros along the rim of land that is NaN",
                      bits_of(DType::f32, {20, 40},
                              [](std::uint64_t i) -> std::uint64_t {
                                const std::uint64_t y = i / 40, x = i % 40, left = 8 + y * y % 7;
                                if (x < left || x >= 30) return 0x42000000 + (i << 12);
                                const std::uint64_t above = 8 + (y == 0 ? y : y - 1) * (y == 0 ? y : y - 1) % 7;
                                const std::uint64_t below = 8 + (y + 1) * (y + 1) % 7;
                                const bool inner = x > std::max({left, above, below}) && x < 29;
                                return inner ? 0x7FC00000 : 0;
                              }),
                      with(BoundKind::abs, 0.5, "lorenzo", by_levels)));
  files.push_back(one("mask_levels_verbatim_f64", "verbatim cells of 8-byte elements beside frequent ones",
                      bits_of(DType::f64, {3, 9, 30},
                              [](std::uint64_t i) {
                                const std::uint64_t quiet_nan = UINT64_C(0x7FF8) << 48;
                                if (i % 11 == 0) return quiet_nan + noise(82, i, 0) % (UINT64_C(1) << 50);
                                return i % 30 > 20 ? quiet_nan : std::bit_cast<std::uint64_t>(field(i));
                              }),
                      with(BoundKind::abs, 0.5, "lorenzo", by_levels)));
}

}  // namespace

void add_mask_files(std::vector<GoldenFile>& files) {
  add_values(files);
  add_classes(files);
  add_planes(files);
  add_views(files);
  add_levels(files);
}

}  // namespace quern::golden
