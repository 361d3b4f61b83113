// Golden files of time steps that are predicted from the one before: each layout, ranks, types, masks, exceptions.
#include "tests/golden/stencil_fields.h"

namespace quern::golden {
namespace {

constexpr unsigned kSteps = 3;

/// The field as it is `step` places further on along each axis, with other noise.
testing::OwnedArray moved(DType dtype, Extents extents, unsigned step, double noise_size, double scale = 1) {
  return values_of(dtype, extents, [&](std::uint64_t i) {
    double sum = 0;
    std::uint64_t rest = i;
    std::int64_t half = 11;
    for (std::size_t a = extents.size(); a-- > 0; half += 3) {
      sum += wave(rest % extents.begin()[a] + step, half);
      rest /= extents.begin()[a];
    }
    return scale * (sum + noise_size * static_cast<double>(swing(51 + step, i, 2048)) / 1024);
  });
}

/// Rough values that move by `step` places along the last axis and change a little.
testing::OwnedArray rough(DType dtype, Extents extents, unsigned step, unsigned change, double scale = 1) {
  const std::uint64_t columns = extents.begin()[extents.size() - 1];
  return values_of(dtype, extents, [&](std::uint64_t i) {
    const std::uint64_t from = i / columns * columns + (i % columns + columns - step % columns) % columns;
    const double small = static_cast<double>(swing(61 + change, i, 64)) / 2048;
    return scale * (static_cast<double>(swing(60, from, 2048)) / 512 + small);
  });
}

template <class Make>
GoldenFile steps(std::string name, std::string feature, const CompressOptions& options, const Make& make) {
  GoldenFile file{std::move(name), std::move(feature), {}, true, {}};
  file.key_every = 16;
  for (unsigned step = 0; step < kSteps; ++step) file.streams.push_back({make(step), options});
  return file;
}

}  // namespace

void add_step_files(std::vector<GoldenFile>& files) {
  const auto add = [&](const char* name, const char* feature, const CompressOptions& options, const auto& make) {
    files.push_back(steps(name, feature, options, make));
  };
  add("steps_levels", "steps in levels beside the one before", stencil(0.02, "levels"), [](unsigned step) {
    return moved(DType::f32, {9, 11, 13}, step, 0.03);
  });
  add("steps_planes", "the same where planes follow each other", stencil(0.02, "planes"), [](unsigned step) {
    return moved(DType::f32, {9, 11, 13}, step, 0.03);
  });
  add("steps_raster", "steps as differences in raster order", stencil(0.02, "raster"), [](unsigned step) {
    return moved(DType::f32, {40, 9}, step / 2, 0.03);
  });
  add("steps_wavelet", "steps as differences under the wavelet", stencil(0.02, "wavelet"), [](unsigned step) {
    return moved(DType::f64, {32, 33}, step / 3, 0.01 * step);
  });
  add("steps_line", "steps of a line", stencil(0.02, "levels"),
      [](unsigned step) { return moved(DType::f32, {600}, step, 0.02); });
  add("steps_split", "four axes, of which three are beside the reference", stencil(0.05, "levels:3d:1,2"),
      [](unsigned step) {
        return moved(DType::f32, {3, 5, 4, 16}, step, 0.02);
      });
  CompressOptions in_parts = stencil(0.02, "raster");
  in_parts.settings.push_back({"parts", "2,3,1"});
  add("steps_parts", "steps in parts", in_parts, [](unsigned step) {
    return moved(DType::f32, {6, 9, 13}, step / 2, 0.03);
  });
  add("steps_integers", "steps of integers", stencil(2, "levels"), [](unsigned step) {
    return rough(DType::i16, {20, 26}, step, step, 300);
  });
  add("steps_masked", "steps with a coast", stencil(0.02, "levels"), [](unsigned step) {
    return with_land(rough(DType::f32, {24, 30}, step, step), 0x7FC00000);
  });
  add("steps_exceptions", "steps with zeros that have a sign", stencil(0.02, "raster"), [](unsigned step) {
    return with_minus_zeros(moved(DType::f32, {30, 20}, step / 2, 0.02));
  });
  for (auto& stream : files.back().streams) stream.options.find_repeated = false;
  add("steps_chunks", "steps of two chunks, of which one is constant", stencil(0.5, "levels"), [](unsigned step) {
    return values_of(DType::u8, {(1u << 18) + 5}, [&](std::uint64_t i) {
      if (i < 150000) return 7.0 + step;
      return noise(62, i, 400) == 0 ? 40.0 + static_cast<double>(noise(63, i, 100)) : 9.0;
    });
  });
  for (auto& stream : files.back().streams) stream.options.find_repeated = false;
}

}  // namespace quern::golden
