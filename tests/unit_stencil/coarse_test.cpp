// Coarse levels of chunks under the wavelet, and of arrays whose chunks have several modes.
#include "tests/unit_stencil/chunks.h"
#include "tests/unit_stencil/helpers.h"

#include <algorithm>

#include "codecs/stencil/lattice/chunk.h"
#include "codecs/stencil/levels/coarse_chunk.h"
#include "codecs/stencil/plan/array_levels.h"
#include "codecs/stencil/rules.h"
#include "codecs/stencil/wavelet/axes.h"
#include "codecs/stencil/wavelet/lifting.h"

namespace quern::codec::stencil::test {
namespace {

const Settings kWavelet{{"layout", "wavelet"}};

/// A level of an array as points in the grid's C order, and the places that they are for.
template <class T>
struct Preview {
  LevelForm form;
  std::array<std::uint64_t, 3> extents{};
  std::vector<T> values;
  std::vector<std::uint64_t> places;  ///< numbers of elements
};

template <class T>
Preview<T> preview(const Coding& coding, const std::vector<Bytes>& stored, unsigned level) {
  Preview<T> result;
  const ChunkDecoder& decoder = coding.decoder();
  result.form = decoder.level_form(level);
  const auto& axes = result.form.axes;
  const ChunkGrid& grid = decoder.grid();
  for (std::size_t a = 0; a < 3; ++a) result.extents[a] = axes[a].points(grid.extents[a]);
  const auto& n = result.extents;
  EXPECT_EQ(n[0] * n[1] * n[2], result.form.shape.elems());
  result.values.assign(n[0] * n[1] * n[2], T(-77));
  for (std::uint64_t i = 0; i < n[0]; ++i)
    for (std::uint64_t j = 0; j < n[1]; ++j)
      for (std::uint64_t x = 0; x < n[2]; ++x)
        result.places.push_back((axes[0].place(i) * grid.extents[1] + axes[1].place(j)) * grid.extents[2] +
                                axes[2].place(x));
  const Scratch scratch(decoder.level_scratch_bytes());
  const auto counts = grid.counts();
  for (std::uint64_t c = 0; c < coding.chunks(); ++c) {
    const MutableBox3 chunk = coding.box(c, nullptr);
    const std::uint64_t at[3] = {c / (counts[1] * counts[2]), c / counts[2] % counts[1], c % counts[2]};
    MutableBox3 out{result.values.data(), {}, {n[1] * n[2], n[2]}};
    std::uint64_t first = 0;
    for (std::size_t a = 0; a < 3; ++a) {
      out.extents[a] = axes[a].points(chunk.extents[a]);
      first += at[a] * axes[a].points(grid.chunk[a]) * (a == 2 ? 1 : out.strides[a]);
    }
    out.data = result.values.data() + first;
    const Status status = decoder.decode_level(stored[c], chunk, level, out, scratch.span());
    EXPECT_TRUE(status.ok()) << status.text();
  }
  return result;
}

std::vector<Bytes> encode_all(const Coding& coding) {
  std::vector<Bytes> stored;
  for (std::uint64_t c = 0; c < coding.chunks(); ++c) stored.push_back(coding.encode(c));
  return stored;
}

/// Slow waves, smooth at the distances of the first levels.
std::vector<double> slow_waves(const Shape& shape) {
  std::vector<double> values(shape.elems());
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint64_t rest = i;
    for (std::size_t axis = shape.rank(); axis-- > 0; rest /= shape[axis])
      values[i] += std::sin(0.05 * static_cast<double>(rest % shape[axis]) + static_cast<double>(axis));
  }
  return values;
}

/// The largest difference between points of a level and the field there; `inner`: of those that lie further than that
/// from the ends of their chunk along all axes of the grid longer than 1.
template <class T>
double worst_difference(const Preview<T>& seen, const std::vector<double>& values, const ChunkGrid& grid,
                        std::uint64_t inner = 0) {
  double worst = 0;
  for (std::size_t p = 0; p < seen.values.size(); ++p) {
    bool counts = true;
    std::uint64_t rest = seen.places[p];
    for (std::size_t a = 3; a-- > 0; rest /= grid.extents[a]) {
      const std::uint64_t begin = rest % grid.extents[a] / grid.chunk[a] * grid.chunk[a];
      const std::uint64_t end = std::min(begin + grid.chunk[a], grid.extents[a]);
      const std::uint64_t place = rest % grid.extents[a];
      if (inner > 0 && grid.extents[a] > 1 && (place < begin + inner || place + inner >= end)) counts = false;
    }
    if (counts) worst = std::max(worst, std::fabs(static_cast<double>(seen.values[p]) - values[seen.places[p]]));
  }
  return worst;
}

TEST(Stencil_WaveletLevels, OfSmoothFields_AreNearTheField) {
  for (const Shape& shape : {shape_of({5000}), shape_of({120, 90}), shape_of({40, 45, 51}), shape_of({9, 20, 33, 40}),
                             shape_of({131, 150, 160})}) {
    SCOPED_TRACE(shape.text());
    const auto values = slow_waves(shape);
    for (const double bound : {1e-1, 1e-3}) {
      if (bound < 1e-2 && values.size() > 1000000) continue;  // several chunks take long
      const Coding coding(DType::f32, shape, as_bytes<float>(values), bound, kWavelet);
      const auto stored = encode_all(coding);
      ASSERT_EQ(stored[0][0], 4);
      ASSERT_GE(coding.decoder().levels(), 5u);
      EXPECT_TRUE(coding.decoder().levels_are_means());
      // Along each axis slopes are at most 0.05 and second differences 0.0025: a mean is off by 0.23 and 1.15 of the
      // latter at levels 1 and 2, but at the end of a chunk, beyond which it is mirrored, by a third and once the
      // slope.
      const auto rank = static_cast<double>(shape.rank());
      const ChunkGrid& grid = coding.decoder().grid();
      const auto first = preview<float>(coding, stored, 1);
      const auto second = preview<float>(coding, stored, 2);
      EXPECT_LT(worst_difference(first, values, grid), 1.2 * bound + 0.018 * rank);
      EXPECT_LT(worst_difference(second, values, grid), 1.2 * bound + 0.054 * rank);
      if (shape.rank() < 4) {  // else two axes share one of the grid
        EXPECT_LT(worst_difference(first, values, grid, 4), 1.2 * bound + 0.0007 * rank);
        EXPECT_LT(worst_difference(second, values, grid, 12), 1.2 * bound + 0.0035 * rank);
      }
      for (unsigned level = 3; level <= coding.decoder().levels(); ++level)
        EXPECT_LT(worst_difference(preview<float>(coding, stored, level), values, grid), 2.1 * rank);
    }
  }
}

TEST(Stencil_WaveletLevels, OfConstantRegions_AreTheConstant) {
  const Shape shape = shape_of({64, 96});
  std::mt19937 random(5);
  std::vector<double> values(shape.elems(), 7.25);
  for (std::size_t i = 0; i < values.size(); ++i)
    if (i / 96 >= 48) values[i] += static_cast<double>(random() % 1000) / 100;
  const Coding coding(DType::f64, shape, as_bytes<double>(values), 0.01, kWavelet);
  const auto stored = encode_all(coding);
  ASSERT_EQ(stored[0][0], 4);
  for (const unsigned level : {1u, 2u}) {
    const auto seen = preview<double>(coding, stored, level);
    for (std::size_t p = 0; p < seen.values.size(); ++p)
      if (seen.places[p] / 96 < 32) {
        EXPECT_NEAR(seen.values[p], 7.25, 0.01) << level;
      }
  }
}

TEST(Stencil_WaveletLevels, OfNoise_AreMeans) {
  const Shape shape = shape_of({64, 64, 64});
  auto values = slow_waves(shape);
  const auto smooth = values;
  std::mt19937 random(9);
  for (double& v : values) v += static_cast<double>(random() % 2001) / 1000 - 1;  // standard deviation 0.58
  const Coding coding(DType::f32, shape, as_bytes<float>(values), 0.3, kWavelet);
  const auto stored = encode_all(coding);
  ASSERT_EQ(stored[0][0], 4);
  const auto deviation = [&](unsigned level) {
    const auto seen = preview<float>(coding, stored, level);
    double squares = 0;
    for (std::size_t p = 0; p < seen.values.size(); ++p) {
      const double d = static_cast<double>(seen.values[p]) - smooth[seen.places[p]];
      squares += d * d / static_cast<double>(seen.values.size());
    }
    return std::sqrt(squares);
  };
  EXPECT_LT(deviation(1), 0.27);
  EXPECT_LT(deviation(2), 0.11);
}

/// The low values of a field after `level` passes along each of its axes, in binary64 and without rounding, as means.
std::vector<double> means_of(const Shape& shape, std::vector<double> values, unsigned level) {
  WaveletAxes axes;
  axes.rank = shape.rank();
  for (std::size_t a = 0; a < shape.rank(); ++a) {
    axes.extents[a] = static_cast<std::size_t>(shape[a]);
    axes.levels[a] = level;
  }
  // Rounding to integers is far below what the values have after this.
  constexpr double kFine = 0x1p24;
  for (double& v : values) v = std::round(v * kFine);
  std::vector<double> room(lifting_room(axes));
  forward_wavelet(axes, kernels::stencil_kernels(kernels::best_isa()), values.data(), room.data());
  for (double& v : values) v *= mean_scale(level * static_cast<unsigned>(shape.rank())) / kFine;
  return values;
}

TEST(Stencil_WaveletLevels, AreTheLowBandOfTheWhole_ForEveryTypeUnderAMaskAndAlongPacketAxes) {
  const Shape shape = shape_of({32, 40, 48});
  std::mt19937 random(11);
  std::vector<double> plane(40 * 48);
  for (double& v : plane) v = static_cast<double>(random() % 1000) / 10;
  // The same rough plane again and again asks for packets.
  for (const bool repeated : {false, true}) {
    auto values = slow_waves(shape);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = 20 * values[i] + (repeated ? plane[i % plane.size()] : static_cast<double>(random() % 40)) + 70;
    for (const bool masked : {false, true}) {
      Bytes special(masked ? values.size() : 0, 0);
      for (std::size_t i = 0; i < special.size(); ++i) special[i] = i % 48 < 7 && i % 1920 / 48 < 9;
      const auto check = [&](DType dtype, auto zero, double bound) {
        using T = decltype(zero);
        SCOPED_TRACE(std::string(dtype_name(dtype)) + (repeated ? " repeated" : "") + (masked ? " masked" : ""));
        const Coding coding(dtype, shape, as_bytes<T>(values), bound, kWavelet, special);
        const auto stored = encode_all(coding);
        ASSERT_EQ(stored[0][0], 4);
        Bytes whole;
        coding.round_trip(whole);
        std::vector<double> decoded(values.size());
        for (std::size_t i = 0; i < decoded.size(); ++i) {
          T v{};
          std::memcpy(&v, whole.data() + i * sizeof v, sizeof v);
          decoded[i] = static_cast<double>(v);
        }
        for (const unsigned level : {1u, 2u}) {
          const auto means = means_of(shape, decoded, level);
          const auto seen = preview<T>(coding, stored, level);
          ASSERT_EQ(seen.extents, (std::array<std::uint64_t, 3>{32u >> level, 40u >> level, 48u >> level}));
          for (std::size_t p = 0; p < seen.values.size(); ++p) {
            const std::uint64_t x = p % seen.extents[2];
            const std::uint64_t y = p / seen.extents[2] % seen.extents[1];
            const std::uint64_t z = p / seen.extents[2] / seen.extents[1];
            // What elements under the mask are is known to the decoder alone.
            if (masked && (x << level) < 7 + (8u << level) && (y << level) < 9 + (8u << level)) continue;
            // Corrections and the rounding of the type differ, by less than the bound each.
            ASSERT_NEAR(static_cast<double>(seen.values[p]), means[(z * 40 + y) * 48 + x], 1.2 * bound + 0.5)
                << level << " " << z << " " << y << " " << x;
          }
        }
      };
      check(DType::f32, float{}, 3);
      check(DType::f64, double{}, 0.25);
      check(DType::i16, std::int16_t{}, 4);
      check(DType::u8, std::uint8_t{}, 4);
      check(DType::u32, std::uint32_t{}, 2);
    }
  }
}

TEST(Stencil_WaveletLevels, CountAndShapes_FollowChunks) {
  const auto shapes = [](std::initializer_list<std::uint64_t> extents, const Layout& layout) {
    const Shape shape = shape_of(extents);
    const ChunkGrid grid = make_grid(shape, layout);
    const LevelsForm form = levels_form(shape, layout, grid);
    std::vector<std::string> result;
    for (unsigned k = 1; k <= count_levels(shape, layout, grid, form); ++k)
      result.push_back(array_level(shape, layout, grid, form, k).shape.text());
    return result;
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(shapes({5, 6, 7}, {1, 2, false, false, true}), (Texts{"3x3x4", "2x2x2", "1x1x1"}));
  // Chunks of 75 x 150 x 150: places are counted in each.
  const Texts cut = shapes({300, 300, 300}, {1, 2, false, false, true});
  ASSERT_EQ(cut.size(), 8u);
  EXPECT_EQ(cut[0], "152x150x150");
  EXPECT_EQ(cut[1], "76x76x76");
  EXPECT_EQ(cut[7], "4x2x2");
  // 20 and 6 are walked as one axis, along which the faster one is halved once.
  EXPECT_EQ(shapes({20, 6, 100}, {2, 2, false, false, true}), (Texts{"20x3x50"}));
  EXPECT_EQ(shapes({20, 7, 100}, {2, 2, false, false, true}), (Texts{}));
  // Split: 9 is an axis of its own.
  EXPECT_EQ(shapes({20, 9, 100}, {2, 2, false, false, true})[1], "5x3x25");
}

TEST(Stencil_WaveletLevels, TheEncoderNamesNoBeginnings) {
  const Shape shape = shape_of({40, 45, 51});
  const Bytes data = as_bytes<float>(slow_waves(shape));
  const PlainSample sample(data.data(), DType::f32, shape.elems());
  SerialRunner serial;
  PlanRequest request;
  request.shape = shape;
  request.bound = {BoundKind::abs, 0.01};
  request.sample = &sample;
  request.runner = &serial;
  request.settings = kWavelet;
  const auto encoder = std::move(stencil_codec().plan(request)).value();
  EXPECT_EQ(encoder->levels(), 0u);
}

/// A chunk of every mode, coded by itself, seen as part of arrays in levels and under the wavelet.
TEST(Stencil_MixedLevels, ChunksOfOtherModes_GiveTheirPoints) {
  const Shape shape = shape_of({10, 12, 14});
  const std::vector<double> values = waves(shape, 3);
  std::vector<double> places(values);
  for (double& v : places) v = std::floor(v * 100) * 0.25;
  Bytes special(values.size(), 0);
  for (std::size_t i = 0; i < special.size(); i += 5) special[i] = 1;
  const ChunkGrid grid{{10, 12, 14}, {10, 12, 14}};
  const auto spec_of = [&](bool levels, bool wavelet, double bound) {
    LevelsForm form;
    form.levels = levels;
    form.wavelet = wavelet;
    return encode_spec(DType::f32, grid.chunk, bound, form);
  };
  for (const bool masked : {false, true}) {
    const std::uint8_t* const mask = masked ? special.data() : nullptr;
    const std::array<std::uint64_t, 2> strides{168, 14};
    for (const bool lattice : {false, true}) {
      const Bytes data = as_bytes<float>(lattice ? places : values);
      const EncodeSpec raster = spec_of(false, false, 0.01);
      Bytes stored(max_chunk_bytes(raster));
      const Scratch encode_scratch(encode_scratch_bytes(raster));
      const auto size =
          encode_chunk(raster, {data.data(), grid.extents, strides, mask, strides}, stored, encode_scratch.span());
      ASSERT_TRUE(size.ok());
      stored.resize(*size);
      ASSERT_EQ(stored[0], lattice ? 5 : 2);
      ASSERT_TRUE(!lattice || stored[kLatticeHead] == 2);
      for (const bool wavelet : {false, true}) {
        const EncodeSpec spec = spec_of(!wavelet, wavelet, 0);
        const Layout layout{1, 2, !wavelet, false, wavelet};
        const Scratch scratch(coarse_scratch_bytes(spec));
        Bytes whole(data.size());
        const MutableBox3 box{whole.data(), grid.extents, strides, mask, strides};
        ASSERT_TRUE(decode_chunk(spec, stored, box, scratch.span()).ok());
        for (unsigned level = 1; level <= count_levels(shape, layout, grid, spec.form); ++level) {
          const LevelForm form = array_level(shape, layout, grid, spec.form, level);
          std::array<std::uint64_t, 3> n{};
          for (std::size_t a = 0; a < 3; ++a) n[a] = form.axes[a].points(grid.extents[a]);
          std::vector<float> points(form.shape.elems());
          const MutableBox3 chunk{nullptr, grid.extents, {}, mask, strides};
          const MutableBox3 out{points.data(), n, {n[1] * n[2], n[2]}};
          ASSERT_TRUE(decode_coarse(spec, stored, chunk, form, level, out, scratch.span()).ok());
          for (std::size_t p = 0; p < points.size(); ++p) {
            const std::uint64_t from = form.axes[0].place(p / n[2] / n[1]) * strides[0] +
                                       form.axes[1].place(p / n[2] % n[1]) * strides[1] + form.axes[2].place(p % n[2]);
            ASSERT_EQ(std::memcmp(&points[p], whole.data() + 4 * from, 4), 0) << level << " " << p;
          }
          // A damaged chunk is an error, with room that is too small as well.
          Bytes cut(stored.begin(), stored.end() - 3);
          EXPECT_FALSE(decode_coarse(spec, cut, chunk, form, level, out, scratch.span()).ok());
          EXPECT_EQ(decode_coarse(spec, stored, chunk, form, level, out, scratch.span().first(1000)).code(),
                    StatusCode::internal);
        }
      }
    }
  }
}

TEST(Stencil_MixedLevels, IntegersOnALatticeUnderTheWavelet_AreMeansOfThem) {
  const Shape shape = shape_of({48, 52, 56});
  auto values = slow_waves(shape);
  std::mt19937 random(21);
  for (double& v : values) v = std::floor(100 * v + static_cast<double>(random() % 60)) * 0.5;
  // Lattices pay where the bound is below half a spacing.
  const Coding coding(DType::f32, shape, as_bytes<float>(values), 0.2, kWavelet);
  const auto stored = encode_all(coding);
  ASSERT_EQ(stored[0][0], 5);
  ASSERT_EQ(stored[0][kLatticeHead], 4);
  const auto means = means_of(shape, values, 1);
  const auto seen = preview<float>(coding, stored, 1);
  for (std::size_t p = 0; p < seen.values.size(); ++p) {
    const std::uint64_t at = ((p / 28 / 26) * 52 + p / 28 % 26) * 56 + p % 28;
    ASSERT_NEAR(static_cast<double>(seen.values[p]), means[at], 0.2 + 0.5) << p;
  }
}

TEST(Stencil_WaveletLevels, DamagedBytes_DecodeOrFail) {
  const Shape shape = shape_of({20, 22, 24});
  auto values = slow_waves(shape);
  std::mt19937 random(31);
  for (double& v : values) v += static_cast<double>(random() % 1000) / 500;
  const Coding coding(DType::f32, shape, as_bytes<float>(values), 0.2, kWavelet);
  const Bytes stored = coding.encode(0);
  ASSERT_EQ(stored[0], 4);
  const Scratch scratch(coding.decoder().level_scratch_bytes());
  const MutableBox3 chunk = coding.box(0, nullptr);
  const auto trial = [&](const Bytes& bytes, unsigned level) {
    const LevelForm form = coding.decoder().level_form(level);
    std::array<std::uint64_t, 3> n{};
    for (std::size_t a = 0; a < 3; ++a) n[a] = form.axes[a].points(chunk.extents[a]);
    const std::size_t elems = static_cast<std::size_t>(n[0] * n[1] * n[2]);
    std::vector<float> points(elems + 2, -5.0F);
    const bool ok = coding.decoder()
                        .decode_level(bytes, chunk, level, {points.data() + 1, n, {n[1] * n[2], n[2]}}, scratch.span())
                        .ok();
    EXPECT_EQ(points.front(), -5.0F);
    EXPECT_EQ(points.back(), -5.0F);
    return ok;
  };
  std::size_t failed = 0;
  for (int i = 0; i < 400; ++i) {
    Bytes damaged = stored;
    // Half of it where the model lies.
    const std::size_t at =
        1 + random() % (i % 2 == 0 ? std::min<std::size_t>(stored.size() - 1, 80) : stored.size() - 1);
    damaged[at] = static_cast<std::uint8_t>(damaged[at] ^ 1u << random() % 8);
    failed += trial(damaged, 1 + static_cast<unsigned>(i) % coding.decoder().levels()) ? 0 : 1;
  }
  EXPECT_GT(failed, 20u);
  for (std::size_t bytes = 1; bytes < stored.size(); bytes += 1 + stored.size() / 50)
    trial(Bytes(stored.begin(), stored.begin() + static_cast<std::ptrdiff_t>(bytes)), 1);
  EXPECT_FALSE(trial(Bytes(stored.begin(), stored.begin() + 20), 1));
}

}  // namespace
}  // namespace quern::codec::stencil::test
