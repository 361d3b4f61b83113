// Golden files of the stencil codec under its wavelet: ranks and element types, packet axes, masks, exceptions and
// corrections, tight and loose bounds, small and odd extents.
#include <limits>

#include "tests/golden/stencil_fields.h"
#include "tests/golden/wavelet_by_hand.h"

namespace quern::golden {
namespace {

using testing::OwnedArray;

GoldenFile wavelet(const std::string& name, const std::string& feature, OwnedArray array, double bound,
                   const char* layout = "wavelet") {
  return one("stencil_wavelet_" + name, feature, std::move(array), stencil(bound, layout));
}

/// The same rough plane again and again, under noise: along the first axis, packets pay.
OwnedArray repeated_planes(DType dtype, Extents extents, std::uint64_t period, double noise_size) {
  return values_of(dtype, extents, [&](std::uint64_t i) {
    return static_cast<double>(swing(47, i % period, 4096)) / 1024 + field(extents, i, noise_size);
  });
}

void add_shapes(std::vector<GoldenFile>& files) {
  const auto add = [&](const char* shape, DType dtype, Extents extents, double noise_size, double bound) {
    files.push_back(
        wavelet(shape, std::string(shape) + " under the wavelet", waves(dtype, extents, noise_size), bound));
  };
  add("line", DType::f32, {700}, 0.3, 0.2);
  add("rows", DType::f64, {30, 41}, 0.3, 0.2);
  add("volume", DType::f32, {9, 14, 19}, 0.3, 0.3);
  add("four_axes", DType::f32, {5, 7, 9, 16}, 0.4, 0.3);
  add("noisy_rows", DType::f64, {60, 30}, 2, 0.9);
  add("apart", DType::f32, {7, 1, 60}, 0.3, 0.2);
  add("short_axes", DType::f32, {2, 3, 90}, 0.3, 0.2);
  files.push_back(wavelet("split", "four axes, the last of them split off again under the wavelet",
                          waves(DType::f32, {5, 8, 6, 16}, 0.4), 0.3, "wavelet:3d:1,2"));
  files.push_back(wavelet("merged_axes", "five axes merged to three under the wavelet",
                          waves(DType::f32, {2, 3, 4, 5, 9}, 0.1), 0.3, "wavelet:3d:2,4"));
  files.push_back(wavelet("packets", "an axis decomposed before the others",
                          repeated_planes(DType::f32, {33, 6, 9}, 54, 0.3), 0.3));
  files.push_back(wavelet("two_packets", "two axes decomposed before the others",
                          repeated_planes(DType::f32, {17, 12, 23}, 23, 0.3), 0.3));
  files.push_back(wavelet("two_packets_of_four", "two axes of four decomposed before the others",
                          repeated_planes(DType::f64, {12, 11, 3, 15}, 45, 0.3), 0.4));
  files.push_back(wavelet("many_lanes", "coefficients that fill several lanes", waves(DType::f64, {33, 50}, 1), 0.001));
  files.push_back(
      wavelet("chunks", "two chunks of one value each, cut as the wavelet's are",
              values_of(DType::u8, {(1u << 18) + 5}, [](std::uint64_t i) { return i < 131075 ? 7.0 : 9.0; }), 0.5));
  files.back().streams[0].options.find_repeated = false;
  files.push_back(one("stencil_wavelet_psnr", "smaller steps for a PSNR", waves(DType::f32, {12, 15, 17}, 0.4),
                      with(BoundKind::abs, 0.3, "stencil", {{"layout", "wavelet"}})));
  files.back().streams[0].options.goal = "psnr";
}

void add_types(std::vector<GoldenFile>& files) {
  for (const DType dtype :
       {DType::f16, DType::bf16, DType::i8, DType::u8, DType::i16, DType::u16, DType::i32, DType::u32}) {
    const bool narrow = dtype_bytes(dtype) == 1;
    const double scale = is_float(dtype) ? 1 : narrow ? 40 : 3000;
    const double base = is_float(dtype) || is_signed_integer(dtype) ? 0 : narrow ? 127 : 20000;
    const double bound = is_float(dtype) ? 0.25 : narrow ? 9 : 700;
    files.push_back(wavelet("type_" + std::string(dtype_name(dtype)),
                            std::string(dtype_name(dtype)) + " under the wavelet",
                            waves(dtype, {7, 12, 13}, 0.3, scale, base), bound));
  }
  files.push_back(wavelet("integers_ends", "integers rounded beyond the ends of their type under the wavelet",
                          values_of(DType::i8, {12, 40},
                                    [](std::uint64_t i) {
                                      const double v = 190 * wave(i % 40, 13) + 150 * wave(i / 40, 5);
                                      return v < -128 ? -128 : v > 127 ? 127 : v;
                                    }),
                          9));
}

void add_special(std::vector<GoldenFile>& files) {
  files.push_back(
      wavelet("land", "NaN under the wavelet", with_land(waves(DType::f32, {6, 14, 17}, 0.3), 0x7FC00001), 0.2));
  files.push_back(wavelet("land_line", "NaN on a single axis, under the wavelet",
                          with_land(waves(DType::f64, {400}, 0.3), UINT64_C(0x7FF8) << 48), 0.2));
  GoldenFile fill = wavelet("land_i16", "a fill value of an integer type under the wavelet",
                            with_land(waves(DType::i16, {5, 14, 17}, 0.1, 2000), 0x8001), 400);
  fill.streams[0].options.fill_bits = {0x8001};
  files.push_back(std::move(fill));
  files.push_back(wavelet("land_zero", "land that is 0, found as a repeated value, under the wavelet",
                          with_land(waves(DType::f64, {5, 14, 17}, 0.1, 1, 9), 0), 0.3));
  OwnedArray infinite = with_land(waves(DType::bf16, {20, 30}, 0.3), 0x7F80);
  for (std::uint64_t i = 7; i < infinite.shape.elems(); i += 61) set_bits(infinite, i, 0xFF80);
  files.push_back(wavelet("infinities", "infinities of both signs under the wavelet", std::move(infinite), 0.25));
  files.push_back(wavelet("spikes", "wide corrections", with_spikes(waves(DType::f32, {6, 12, 15}, 0.1), 1e3), 0.3));
  // A zero that is not to change its sign, and elements too far out for a correction.
  files.push_back(wavelet("exceptions", "-0.0 as exceptions under the wavelet",
                          with_minus_zeros(waves(DType::f32, {20, 30}, 0.1)), 0.4));
  files.back().streams[0].options.find_repeated = false;
  files.push_back(wavelet("exceptions_f16", "f16 where its own spacing is wider than the bound, under the wavelet",
                          waves(DType::f16, {20, 21}, 0.1, 900), 0.3));
}

void add_bounds(std::vector<GoldenFile>& files) {
  files.push_back(wavelet("tight", "a tight bound under the wavelet", waves(DType::f64, {8, 11, 13}, 0.01), 1e-5));
  // Units grow with the range, so that sums stay where they must; beyond that raster order takes over.
  files.push_back(wavelet("wide", "a range for which units are coarser", waves(DType::f64, {10, 11}, 0.5), 0x1p-24));
  files.push_back(wavelet("too_wide", "a range that the wavelet leaves to raster order",
                          waves(DType::f64, {10, 11}, 0.5), 0x1p-27));
  files.push_back(wavelet("loose", "a loose bound under the wavelet", waves(DType::f32, {12, 15, 17}, 0.1), 0.7));
  files.push_back(
      wavelet("far_base", "a base far from 0, under the wavelet", waves(DType::f64, {25, 26}, 0.1, 1, 1e6), 0.1));
  files.push_back(wavelet("tiny", "values far below 1", waves(DType::f64, {25, 26}, 0.1, 1e-200), 1e-201));
  files.push_back(wavelet("small", "extents of 2 and 3 under the wavelet", waves(DType::f64, {3, 2, 4}, 0.5), 0.25));
}

void add_written_by_hand(std::vector<GoldenFile>& files) {
  const auto add = [&](const char* name, const char* feature, Extents extents, const char* layout,
                       const StoredWavelet& chunk) {
    files.push_back(with_chunk(
        one("stencil_wavelet_" + std::string(name), feature, waves(DType::f64, extents, 0, 100), stencil(0.25, layout)),
        chunk_bytes(chunk)));
  };
  const auto coded = [](StoredWavelet chunk, std::size_t codes) {
    std::vector<std::int32_t> values(codes);
    for (std::size_t i = 0; i < codes; ++i) {
      const std::int64_t size = swing(49, i, 6);
      values[i] = static_cast<std::int32_t>(i % 11 == 3 ? 41 * size : size);
    }
    chunk.tokens = 40;
    chunk.zero = 9000;
    chunk.lanes = lane_of(values, chunk.tokens, chunk.zero);
    return chunk;
  };
  StoredWavelet offsets = coded({}, 24);
  offsets.step = 1000;
  offsets.first_offset = 16;  // -16
  offsets.offset = 15;
  add("offsets", "magnitudes moved as far as they can be", {3, 8}, "wavelet:2d:1", offsets);
  StoredWavelet least = coded({}, 64);
  least.levels = {6};
  least.step = 1;
  least.constants.assign(7, 40);
  add("least_steps", "steps of low bands that cannot be smaller", {64}, "wavelet:1d", least);
  StoredWavelet flat = coded({}, 48);
  flat.levels = {0, 0};
  flat.constants.assign(1, 40);
  flat.corrections = StoredCorrections{};
  add("no_levels", "elements that are not transformed, with corrections", {3, 8}, "wavelet:2d:1", flat);
  StoredWavelet packets = coded({}, 48);
  packets.packets = 1;
  packets.levels = {2, 0};
  packets.constants.assign(3, 40);
  packets.corrections = StoredCorrections{};
  add("packets_alone", "a packet axis and nothing else transformed, with corrections", {3, 8}, "wavelet:2d:1", packets);
  StoredWavelet uneven = coded({}, 2 * 3 * 5 * 2 * 8);
  uneven.packets = 2;
  uneven.levels = {2, 1, 0, 3};
  uneven.constants.assign(3 * 2 * 4, 40);
  uneven.corrections = StoredCorrections{};
  add("uneven_levels", "different levels along each of four axes, two of them packets", {3, 5, 2, 8}, "wavelet:3d:1,2",
      uneven);
  std::vector<std::int32_t> wide{0, 1, -1, 15, -16, 17, 255, -256};
  for (int bits = 9; bits < 29; bits += 3) {
    wide.push_back((1 << bits) + 5);
    wide.push_back(-(1 << bits) - (1 << (bits - 1)));
  }
  wide.resize(24);
  StoredWavelet every;
  every.step = 1;
  every.tokens = 120;
  every.zero = 1000;
  every.lanes = lane_of(wide, every.tokens, every.zero);
  every.exceptions = {2, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 8, 7, 6, 5, 4, 3, 2, 1};
  add("every_width", "coefficients of every width, and exceptions one after another", {3, 8}, "wavelet:2d:1", every);
}

}  // namespace

void add_wavelet_files(std::vector<GoldenFile>& files) {
  add_shapes(files);
  add_types(files);
  add_special(files);
  add_bounds(files);
  add_written_by_hand(files);
}

}  // namespace quern::golden
