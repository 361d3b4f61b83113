// Golden files of the stencil codec: every layout over ranks and element types, masks, exceptions, tight and loose
// bounds, distributions of residuals of every shape, arrays too small to have structure.
#include <cmath>
#include <limits>

#include "tests/golden/stencil_by_hand.h"
#include "tests/golden/stencil_fields.h"

namespace quern::golden {
namespace {

using testing::OwnedArray;

constexpr const char* kLayouts[] = {"raster", "levels", "planes"};

void add_layouts(std::vector<GoldenFile>& files) {
  const auto add = [&](const std::string& shape, DType dtype, Extents extents, double noise_size, double bound) {
    for (const char* layout : kLayouts)
      files.push_back(one("stencil_" + std::string(layout) + "_" + shape, shape + " in layout " + layout,
                          waves(dtype, extents, noise_size), stencil(bound, layout)));
  };
  add("line", DType::f32, {700}, 0.05, 0.01);
  add("rows", DType::f64, {30, 41}, 0.05, 0.01);
  add("volume", DType::f32, {9, 14, 19}, 0.05, 0.02);
  add("four_axes", DType::f32, {5, 7, 9, 16}, 0.1, 0.05);
  add("noisy_planes", DType::f32, {14, 9, 11}, 2, 0.2);
  add("noisy_rows", DType::f64, {60, 30}, 2, 0.2);
  add("apart", DType::f32, {7, 1, 60}, 0.3, 0.01);
  for (const char* order : {"levels", "planes"}) {
    const std::string layout = std::string(order) + ":3d:1,2";
    files.push_back(one("stencil_" + std::string(order) + "_split", "four axes, the last of them split off again",
                        waves(DType::f32, {5, 8, 6, 16}, 0.2), stencil(0.05, layout.c_str())));
  }
  files.push_back(
      one("stencil_rough_axes", "four axes, smooth along the last alone",
          values_of(DType::f32, {5, 6, 5, 24},
                    [](std::uint64_t i) { return wave(i % 24, 13) * static_cast<double>(noise(45, i / 24, 8)); }),
          stencil(0.01, "levels:3d:1,2")));
  files.push_back(
      one("stencil_auto", "the layout the codec chooses", waves(DType::f32, {8, 12, 15}, 0.1), stencil(0.02, "auto")));
  files.push_back(one("stencil_merged_axes", "five axes merged to three", waves(DType::f32, {2, 3, 4, 5, 9}, 0.1),
                      stencil(0.02, "raster:3d:2,4")));
  files.push_back(one("stencil_many_lanes", "residuals that fill several lanes", waves(DType::f64, {33, 37}, 1),
                      stencil(1.0 / 16384, "raster")));
  files.push_back(one("stencil_many_lanes_levels", "levels whose residuals fill several lanes",
                      waves(DType::f64, {33, 50}, 1), stencil(1.0 / 16384, "levels")));
  for (const char* tightening : {"1", "2", "3"}) {
    files.push_back(one("stencil_tightening_" + std::string(tightening), "coarse levels coded more tightly",
                        waves(DType::f32, {9, 14, 19}, 0.02),
                        with(BoundKind::abs, 0.2, "stencil", {{"layout", "levels"}, {"tightening", tightening}})));
  }
  for (const char* layout : {"raster", "levels"}) {
    const std::string name = std::string("stencil_chunks_") + layout;
    files.push_back(
        one(name, "more elements than one chunk holds",
            values_of(DType::u8, {(1u << 18) + 5}, [](std::uint64_t i) { return i <= 1u << 17 ? 7.0 : 9.0; }),
            stencil(0.5, layout)));
    files.back().streams[0].options.find_repeated = false;
  }
  // Chunks of levels in a stream of 2^16 elements and more are told of in level tables, if there is much to tell.
  files.push_back(one("stencil_large_levels", "segments that may have level tables",
                      values_of(DType::i16, {257, 256}, [](std::uint64_t i) { return i % 256 < 100 ? 0.0 : 800.0; }),
                      stencil(3, "levels")));
  files.back().streams[0].options.find_repeated = false;
}

void add_types(std::vector<GoldenFile>& files) {
  std::size_t turn = 0;
  for (const DType dtype :
       {DType::f16, DType::bf16, DType::i8, DType::u8, DType::i16, DType::u16, DType::i32, DType::u32}) {
    const bool narrow = dtype_bytes(dtype) == 1;
    const double scale = is_float(dtype) ? 1 : narrow ? 40 : 3000;
    const double base = is_float(dtype) || is_signed_integer(dtype) ? 0 : narrow ? 127 : 20000;
    const double bound = is_float(dtype) ? 0.03125 : narrow ? 1 : 40;
    const char* const layout = kLayouts[turn++ % 3];
    files.push_back(one("stencil_type_" + std::string(dtype_name(dtype)),
                        std::string(dtype_name(dtype)) + " in layout " + layout,
                        waves(dtype, {10, 12, 13}, 0.05, scale, base), stencil(bound, layout)));
  }
  files.push_back(one("stencil_integers_ends", "integers rounded beyond the ends of their type",
                      values_of(DType::i8, {12, 40},
                                [](std::uint64_t i) {
                                  const double v = 190 * wave(i % 40, 13) + 150 * wave(i / 40, 5);
                                  return v < -128 ? -128 : v > 127 ? 127 : v;
                                }),
                      stencil(2, "raster")));
}

void add_masks(std::vector<GoldenFile>& files) {
  for (const char* layout : kLayouts) {
    files.push_back(one("stencil_" + std::string(layout) + "_land", "NaN and a layout " + std::string(layout),
                        with_land(waves(DType::f32, {6, 14, 17}, 0.1), 0x7FC00001), stencil(0.03, layout)));
  }
  files.push_back(one("stencil_land_line", "NaN on a single axis, in levels",
                      with_land(waves(DType::f64, {400}, 0.1), UINT64_C(0x7FF8) << 48), stencil(0.03, "levels")));
  OwnedArray coarse = waves(DType::f32, {70, 64}, 0.3);
  for (std::uint64_t i = 0; i < coarse.shape.elems(); ++i)
    if ((i % 2 != 0 || i / 64 % 2 != 0) && noise(46, i, 25) != 0) set_bits(coarse, i, 0x7FC00000);
  files.push_back(one("stencil_land_between", "hardly a point of the finest level that is not NaN", std::move(coarse),
                      stencil(0.1, "levels")));
  CompressOptions fill = stencil(20, "levels");
  fill.fill_bits = {0x8001};
  files.push_back(one("stencil_land_i16", "a fill value of an integer type",
                      with_land(waves(DType::i16, {5, 14, 17}, 0.1, 2000), 0x8001), fill));
  files.push_back(one("stencil_land_zero", "land that is 0, found as a repeated value",
                      with_land(waves(DType::f64, {5, 14, 17}, 0.1, 1, 9), 0), stencil(0.03, "planes")));
}

/// Whole numbers of `spacing` from `origin`, up to some `places` of them either side.
OwnedArray on_lattice(DType dtype, Extents extents, double places, double spacing, double origin) {
  return values_of(dtype, extents,
                   [&](std::uint64_t i) { return std::floor(places * field(extents, i, 0.05)) * spacing + origin; });
}

void add_lattices(std::vector<GoldenFile>& files) {
  for (const char* layout : {"raster", "levels", "planes", "wavelet"}) {
    files.push_back(one("stencil_lattice_decimal_" + std::string(layout),
                        "hundredths on their lattice in layout " + std::string(layout),
                        on_lattice(DType::f64, {8, 12, 15}, 700, 0.01, 0), stencil(0.001, layout)));
    files.push_back(one("stencil_lattice_packed_" + std::string(layout),
                        "packed values and NaN on a lattice in layout " + std::string(layout),
                        with_land(on_lattice(DType::f32, {8, 12, 15}, 900, 0.0123, 61.5), 0x7FC00000),
                        stencil(0.0009, layout)));
  }
  files.push_back(one("stencil_lattice_places", "counts under a bound of one place and a quarter",
                      on_lattice(DType::f32, {9, 14, 15}, 300, 1, 0), stencil(1.25, "levels")));
}

/// Elements that come as what codes stand for; some have no code.
void add_prequantized(std::vector<GoldenFile>& files) {
  const auto idempotent = [](double bound, const char* layout) {
    CompressOptions options = stencil(bound, layout);
    options.idempotent = true;
    return options;
  };
  for (const char* layout : {"raster", "levels", "planes", "wavelet"}) {
    files.push_back(
        one("stencil_prequantized_" + std::string(layout), "idempotent, -0.0 and NaN, in layout " + std::string(layout),
            with_land(with_minus_zeros(waves(DType::f32, {6, 14, 17}, 0.1)), 0x7FC00000), idempotent(0.03, layout)));
  }
  files.push_back(one("stencil_prequantized_f64", "idempotent binary64", waves(DType::f64, {20, 31}, 0.1),
                      idempotent(0.01, "raster")));
  files.push_back(one("stencil_prequantized_f16", "idempotent binary16", waves(DType::f16, {20, 31}, 0.1, 90),
                      idempotent(0.6, "raster")));
  files.push_back(one("stencil_prequantized_i16", "idempotent integers", waves(DType::i16, {20, 31}, 0.1, 2000),
                      idempotent(5, "levels")));
  files.push_back(one("stencil_prequantized_u8", "idempotent integers at the ends of their type",
                      waves(DType::u8, {20, 31}, 0.1, 127, 127), idempotent(3, "raster")));
}

void add_exceptions(std::vector<GoldenFile>& files) {
  for (const char* layout : kLayouts) {
    files.push_back(one("stencil_" + std::string(layout) + "_spikes", "wide residuals in layout " + std::string(layout),
                        with_spikes(waves(DType::f32, {6, 12, 15}, 0.1), 1e5), stencil(0.03, layout)));
    files.push_back(one("stencil_" + std::string(layout) + "_exceptions",
                        "-0.0 as exceptions in layout " + std::string(layout),
                        with_minus_zeros(waves(DType::f32, {20, 30}, 0.1)), stencil(0.4, layout)));
    files.back().streams[0].options.find_repeated = false;
  }
  files.push_back(one("stencil_exceptions_f16", "f16 where its own spacing is wider than the bound",
                      waves(DType::f16, {30, 31}, 0.1, 900), stencil(0.3, "raster")));
}

/// Slices of the leading axis in parts, in every layout.
void add_parts(std::vector<GoldenFile>& files) {
  const auto in_parts = [](double bound, const char* layout, const char* parts) {
    return with(BoundKind::abs, bound, "stencil", {{"layout", layout}, {"parts", parts}});
  };
  for (const char* layout : {"raster", "levels", "planes", "wavelet"})
    files.push_back(one("stencil_parts_" + std::string(layout),
                        "parts of unequal slices in layout " + std::string(layout), waves(DType::f32, {7, 9, 14}, 0.1),
                        in_parts(0.03, layout, "1,2,2,2")));
  files.push_back(one("stencil_parts_land", "parts that are all land, that have a coast, that have none",
                      with_land(waves(DType::f32, {6, 10, 17}, 0.1), 0x7FC00000), in_parts(0.03, "levels", "2,1,3")));
  OwnedArray& land = files.back().streams[0].array;
  for (std::uint64_t i = 0; i < 170; ++i) {
    set_bits(land, 340 + i, 0x7FC00000);
    set_bits(land, i, 0x3F000000 + (static_cast<std::uint32_t>(i) << 14));
    set_bits(land, 170 + i, 0x3F000000 + (static_cast<std::uint32_t>(i) << 13));
  }
  files.push_back(one("stencil_parts_four_axes", "parts of four axes, in two chunks",
                      waves(DType::f64, {4, 5, 3, 16}, 0.05), in_parts(0.01, "levels", "2,2")));
}

void add_bounds(std::vector<GoldenFile>& files) {
  for (const char* layout : kLayouts) {
    files.push_back(one("stencil_" + std::string(layout) + "_tight", "a tight bound in layout " + std::string(layout),
                        waves(DType::f64, {8, 11, 13}, 0.01), stencil(1e-6, layout)));
    files.push_back(one("stencil_" + std::string(layout) + "_loose", "a loose bound in layout " + std::string(layout),
                        waves(DType::f32, {12, 15, 17}, 0.1), stencil(0.7, layout)));
  }
  files.push_back(
      one("stencil_far_base", "a base far from 0", waves(DType::f64, {25, 26}, 0.1, 1, 1e6), stencil(0.01, "levels")));
}

void add_small(std::vector<GoldenFile>& files) {
  for (const char* layout : kLayouts) {
    files.push_back(one("stencil_" + std::string(layout) + "_small",
                        "extents of 2 and 3 in layout " + std::string(layout), waves(DType::f64, {3, 2, 4}, 0),
                        stencil(0.25, layout)));
  }
  files.push_back(one("stencil_constant", "a chunk of one value",
                      values_of(DType::f32, {6, 7, 8}, [](std::uint64_t) { return 2.5; }), stencil(0.1, "levels")));
  files.back().streams[0].options.find_repeated = false;
  files.push_back(one("stencil_single", "one element", waves(DType::f64, {1, 1, 1}, 0, 1, 3), stencil(0.1, "levels")));
  files.push_back(one("stencil_ramp", "a ramp that is predicted without error",
                      values_of(DType::f32, {20, 20, 12}, [](std::uint64_t i) { return static_cast<double>(i % 12); }),
                      stencil(0.25, "raster")));
}

/// A stream of one chunk of f64 written by hand: the chunk that the encoder makes gives way to it.
GoldenFile by_hand(const std::string& name, const std::string& feature, Extents extents, const char* layout,
                   const StoredChunk& chunk) {
  return with_chunk(one("stencil_" + name, feature, waves(DType::f64, extents, 0, 100), stencil(0.25, layout)),
                    chunk_bytes(chunk));
}

/// What encoders hardly write: weights taken from a level of other groups, points beyond a border that a single one
/// decides, residuals of every width, distributions where none fits a level.
void add_written_by_hand(std::vector<GoldenFile>& files) {
  const std::vector<std::int32_t> some{7, -3, 2, -1, 4, 0, -9, 5};
  StoredChunk levels;
  levels.mode = kLevelsMode;
  levels.tokens = 12;
  levels.zero = 4000;
  levels.lane_sizes = {0};
  levels.lanes = lane_of(some, levels.tokens, levels.zero);
  for (const unsigned border : {0u, 1u}) {
    levels.border = border;
    levels.kind = 6;
    levels.weights = {{9, 1, 4001}};
    const std::string kind = border == 0 ? "mirrored" : "linear";
    files.push_back(by_hand("coarser_weights_" + kind, "stored weights that the next level cannot take, border " + kind,
                            {8}, "levels:1d", levels));
    levels.kind = 0;
    levels.weights.reset();
    files.push_back(by_hand("single_place_" + kind, "cubics beyond the border of a level of two places, border " + kind,
                            {8}, "levels:1d", levels));
  }
  StoredChunk raster;
  raster.value_bits = 0;
  raster.weight_bits = 8;
  raster.tokens = 120;
  raster.zero = 1000;
  std::vector<std::int32_t> wide{0, 1, -1, 15, -16, 17, 255, -256};
  for (int bits = 9; bits < 29; bits += 3) {
    wide.push_back((1 << bits) + 5);
    wide.push_back(-(1 << bits) - (1 << (bits - 1)));
  }
  wide.resize(24);
  raster.lanes = lane_of(wide, raster.tokens, raster.zero);
  raster.exceptions = {2, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 8, 7, 6, 5, 4, 3, 2, 1};
  for (const unsigned level : {2u, 63u}) {
    raster.first_level = raster.last_level = level;
    files.push_back(by_hand("every_width_" + std::to_string(level),
                            "residuals of every width, with the distribution of a level far away", {3, 8},
                            "raster:2d:1", raster));
  }
}

}  // namespace

/// Waves that are cut off: plateaus with steep slopes between them, whole numbers of `spacing` where it is not 0.
OwnedArray plateaus(DType dtype, Extents extents, double spacing = 0) {
  const std::uint64_t columns = extents.begin()[extents.size() - 1];
  const std::uint64_t rows = extents.size() > 1 ? extents.begin()[extents.size() - 2] : 1;
  return values_of(dtype, extents, [&](std::uint64_t i) {
    const double height = 4 * field(extents, i, 0) + 2 * wave(i % columns + i / columns % rows, 7);
    const double value = height < -1 ? -1 : height > 1 ? 1 : height;
    return spacing > 0 ? std::floor(value / spacing) * spacing : value;
  });
}

void add_edges(std::vector<GoldenFile>& files) {
  const auto edges = [](const char* layout) {
    return with(BoundKind::abs, 0.02, "stencil", {{"layout", layout}, {"edges", "on"}});
  };
  for (const char* layout : {"levels", "planes"}) {
    files.push_back(one("stencil_edges_" + std::string(layout),
                        "groups that are not linear, layout " + std::string(layout), plateaus(DType::f32, {12, 20, 33}),
                        edges(layout)));
  }
  files.push_back(one("stencil_edges_land", "the same of two axes, with a mask",
                      with_land(plateaus(DType::f64, {60, 70}), UINT64_C(0x7FF8) << 48), edges("levels")));
  files.push_back(one("stencil_edges_line", "the same of one axis", plateaus(DType::f32, {3000}), edges("levels")));
  files.push_back(one("stencil_edges_lattice", "the same on a lattice", plateaus(DType::f32, {12, 20, 33}, 0.015625),
                      edges("levels")));
  files.push_back(one("stencil_edges_lattice_land", "the same on a lattice, with a mask",
                      with_land(plateaus(DType::f32, {12, 20, 33}, 0.015625), 0x7FC00000), edges("levels")));
  CompressOptions idempotent = edges("levels");
  idempotent.idempotent = true;
  files.push_back(one("stencil_edges_prequantized", "the same of codes of prequantized elements, with a mask",
                      with_land(plateaus(DType::f32, {12, 20, 33}), 0x7FC00000), idempotent));
}

void add_stencil_files(std::vector<GoldenFile>& files) {
  add_layouts(files);
  add_types(files);
  add_masks(files);
  add_lattices(files);
  add_prequantized(files);
  add_parts(files);
  add_edges(files);
  add_exceptions(files);
  add_bounds(files);
  add_small(files);
  add_written_by_hand(files);
  add_wavelet_files(files);
}

}  // namespace quern::golden
