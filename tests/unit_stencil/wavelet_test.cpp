// Chunks under the wavelet transform: round trips in every rank, shape and type, special elements and values, the parts
// they are made of.
#include "tests/unit_stencil/helpers.h"

#include <algorithm>
#include <limits>

#include "codecs/stencil/wavelet/axes.h"
#include "codecs/stencil/wavelet/context.h"
#include "codecs/stencil/wavelet/fill.h"
#include "codecs/stencil/wavelet/lifting.h"
#include "codecs/stencil/wavelet/model.h"

namespace quern::codec::stencil::test {
namespace {

const Settings kWavelet{{"layout", "wavelet"}};

template <class T>
std::size_t code(DType dtype, const Shape& shape, const std::vector<double>& values, double bound, Bytes special = {}) {
  SCOPED_TRACE(std::string(dtype_name(dtype)) + " " + shape.text() + " " + std::to_string(bound));
  const Coding coding(dtype, shape, as_bytes<T>(values), bound, kWavelet, std::move(special));
  Bytes back;
  const std::size_t bytes = coding.round_trip(back);
  EXPECT_EQ(count_missed<T>(coding, back, bound), 0u);
  return bytes;
}

bool under_transform(const Coding& coding) { return coding.encode(0)[0] == 4; }

/// A smooth field under noise of that size.
std::vector<double> noisy(const Shape& shape, double noise, unsigned seed) {
  auto values = waves(shape, seed);
  std::mt19937 random(seed);
  for (double& v : values) {
    double sum = 0;
    for (int i = 0; i < 4; ++i) sum += static_cast<double>(random() % 10001) / 10000 - 0.5;
    v += noise * sum;
  }
  return values;
}

TEST(Stencil_Wavelet, EveryRankAndBound_KeepsTheBoundAndCompresses) {
  for (const Shape& shape : {shape_of({5000}), shape_of({70, 90}), shape_of({14, 25, 31}), shape_of({6, 9, 13, 17}),
                             shape_of({3, 2, 9, 8, 11})}) {
    const auto values = waves(shape, 61);
    for (const double bound : {3e-1, 1e-1, 1e-2, 1e-3, 1e-5}) {
      const std::size_t elems = shape.elems();
      EXPECT_LT(code<float>(DType::f32, shape, values, bound), elems * 4 * 10 / (bound > 1e-4 ? 18 : 11));
      EXPECT_LT(code<double>(DType::f64, shape, values, bound), elems * 8 * 10 / (bound > 1e-4 ? 36 : 18));
    }
  }
}

TEST(Stencil_Wavelet, IsWhatTheSettingAsksFor) {
  const Shape shape = shape_of({30, 31, 32});
  const Bytes data = as_bytes<float>(waves(shape, 62));
  for (const char* layout : {"wavelet", "wavelet:3d:1,2", "wavelet:2d:1", "wavelet:1d"})
    EXPECT_TRUE(under_transform(Coding(DType::f32, shape, data, 1e-1, {{"layout", layout}}))) << layout;
  for (const char* layout : {"raster", "levels", "planes"})
    EXPECT_FALSE(under_transform(Coding(DType::f32, shape, data, 1e-1, {{"layout", layout}}))) << layout;
}

TEST(Stencil_Wavelet, NoisyFieldsAtWideBounds_ChooseItWithoutBeingAsked) {
  // The same rough plane again and again, under weather.
  const Shape shape = shape_of({40, 50, 60});
  auto values = noisy(shape, 0.2, 63);
  std::mt19937 random(63);
  std::vector<double> plane(3000);
  for (double& v : plane) v = static_cast<double>(random() % 1000) / 250;
  for (std::size_t i = 0; i < values.size(); ++i) values[i] += plane[i % 3000];
  const double bound = 0.4;
  const Coding free(DType::f32, shape, as_bytes<float>(values), bound);
  EXPECT_TRUE(under_transform(free));
  Bytes back;
  const std::size_t bytes = free.round_trip(back);
  EXPECT_EQ(count_missed<float>(free, back, bound), 0u);
  for (const char* layout : {"raster", "levels", "planes"}) {
    const Coding other(DType::f32, shape, as_bytes<float>(values), bound, {{"layout", layout}});
    Bytes unused;
    EXPECT_LT(bytes * 10, other.round_trip(unused) * 9) << layout;
  }
}

/// Params that a plan writes, and the bytes and the mean square error of its first chunk.
struct Planned {
  Bytes params;
  std::size_t bytes = 0;
  double mse = 0;
};
Planned plan_for(const char* goal, const Shape& shape, const std::vector<double>& values, double bound,
                 const Settings& settings) {
  const Bytes data = as_bytes<float>(values);
  const PlainSample sample(data.data(), DType::f32, shape.elems());
  SerialRunner serial;
  PlanRequest request;
  request.shape = shape;
  request.bound = {BoundKind::abs, bound};
  request.sample = &sample;
  request.runner = &serial;
  request.goal = goal;
  request.settings = settings;
  const auto encoder = std::move(stencil_codec().plan(request)).value();
  OpenRequest open;
  open.shape = shape;
  open.bound = request.bound;
  open.version = stencil_codec().info().version;
  open.params = encoder->plan().params;
  const auto decoder = std::move(stencil_codec().open(open)).value();
  const ChunkGrid& grid = encoder->plan().grid;
  EXPECT_EQ(grid.chunk, grid.extents);
  Bytes stored(encoder->max_chunk_bytes());
  const Scratch scratch(std::max(encoder->scratch_bytes(), decoder->scratch_bytes()));
  const std::array<std::uint64_t, 2> strides{grid.extents[1] * grid.extents[2], grid.extents[2]};
  Planned result;
  result.params = encoder->plan().params;
  result.bytes = encoder->encode({data.data(), grid.extents, strides}, stored, scratch.span()).value();
  stored.resize(result.bytes);
  std::vector<float> back(shape.elems());
  EXPECT_TRUE(decoder->decode(stored, {back.data(), grid.extents, strides}, scratch.span()).ok());
  for (std::size_t i = 0; i < back.size(); ++i) {
    const double error = static_cast<double>(back[i]) - static_cast<double>(static_cast<float>(values[i]));
    EXPECT_LE(std::fabs(error), bound);
    result.mse += error * error / static_cast<double>(back.size());
  }
  return result;
}

TEST(Stencil_Wavelet, UnderAPsnrGoal_BytesGoIntoSmallerErrors) {
  const Shape shape = shape_of({40, 50, 60});
  const auto values = noisy(shape, 0.3, 80);
  const Planned small = plan_for("ratio", shape, values, 0.3, kWavelet);
  const Planned good = plan_for("psnr", shape, values, 0.3, kWavelet);
  EXPECT_LT(good.mse * 1.2, small.mse);
  EXPECT_LT(small.bytes, good.bytes);
  // The plan weighs that, too.
  const Planned planned = plan_for("psnr", shape, values, 0.3, {});
  EXPECT_EQ(planned.params.back(), 3);  // the order of the transform
}

TEST(Stencil_Wavelet, ExtentsOfOneToNine_ComeBack) {
  for (std::uint64_t a = 1; a <= 9; ++a) {
    for (std::uint64_t b = 1; b <= 9; b += 2) {
      for (const std::uint64_t c : {std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{5}, std::uint64_t{8}}) {
        const Shape shape = shape_of({a, b, c});
        code<float>(DType::f32, shape, waves(shape, 64), 1e-1);
        code<float>(DType::f32, shape, noisy(shape, 1, 64), 1e-2);
      }
    }
  }
  for (std::uint64_t n = 1; n < 70; ++n) {
    const Shape line = shape_of({n});
    code<double>(DType::f64, line, waves(line, 65), 1e-2);
    const Shape wide = shape_of({2, n, 9, 8});
    code<float>(DType::f32, wide, waves(wide, 66), 1e-1);
  }
}

TEST(Stencil_Wavelet, AnAxisFarShorterThanTheOthers_ComesBack) {
  for (const Shape& shape : {shape_of({3, 90, 110}), shape_of({90, 3, 110}), shape_of({90, 110, 2}),
                             shape_of({2, 40, 9, 30}), shape_of({20, 2, 41, 10})})
    for (const double bound : {1e-1, 1e-3}) code<float>(DType::f32, shape, waves(shape, 67), bound);
}

TEST(Stencil_Wavelet, SeveralChunks_KeepTheBound) {
  const Shape shape = shape_of({131, 150, 160});  // more than a chunk's elements
  const Coding coding(DType::f32, shape, as_bytes<float>(waves(shape, 68)), 1e-1, kWavelet);
  EXPECT_GT(coding.chunks(), 1u);
  EXPECT_TRUE(under_transform(coding));
  Bytes back;
  const std::size_t bytes = coding.round_trip(back);
  EXPECT_LT(bytes * 4, back.size());
  EXPECT_EQ(count_missed<float>(coding, back, 1e-1), 0u);
}

TEST(Stencil_Wavelet, EveryElementType_KeepsTheBound) {
  const Shape shape = shape_of({11, 30, 40});
  auto values = waves(shape, 69);
  for (double& v : values) v = std::floor(v * 10) + 40;
  code<std::uint8_t>(DType::u8, shape, values, 1);
  code<std::int8_t>(DType::i8, shape, values, 0.5);
  code<std::uint8_t>(DType::u8, shape, values, 6);
  for (double& v : values) v = v * 50;
  code<std::int16_t>(DType::i16, shape, values, 0.5);
  code<std::int16_t>(DType::i16, shape, values, 40);
  code<std::uint16_t>(DType::u16, shape, values, 3);
  code<std::int32_t>(DType::i32, shape, values, 7);
  code<std::uint32_t>(DType::u32, shape, values, 0.9);
  code<std::uint32_t>(DType::u32, shape, values, 90.5);
  // Halves: finite bits of values near one, which both types have exactly.
  Bytes halves(shape.elems() * 2);
  for (std::size_t i = 0; i < shape.elems(); ++i) {
    const auto bits = static_cast<std::uint16_t>(0x3C00 + (i * 7) % 64);
    std::memcpy(halves.data() + 2 * i, &bits, 2);
  }
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const Coding coding(dtype, shape, halves, 1e-9, kWavelet);
    Bytes back;
    coding.round_trip(back);
    EXPECT_EQ(back, coding.data());  // below the spacing: exactly
  }
}

TEST(Stencil_Wavelet, SpecialBitsComeBackExactly) {
  const Shape shape = shape_of({40, 50});
  auto values = waves(shape, 70);
  values[0] = std::numeric_limits<double>::quiet_NaN();
  values[18] = -0.0;
  values[333] = std::numeric_limits<double>::infinity();
  values[1999] = -std::numeric_limits<double>::infinity();
  const Coding coding(DType::f32, shape, as_bytes<float>(values), 1e-1, kWavelet);
  EXPECT_TRUE(under_transform(coding));
  Bytes back;
  coding.round_trip(back);
  EXPECT_EQ(count_missed<float>(coding, back, 1e-1), 0u);
  for (const std::size_t i : {0u, 18u, 333u, 1999u})
    EXPECT_EQ(std::memcmp(back.data() + 4 * i, coding.data().data() + 4 * i, 4), 0) << i;
}

TEST(Stencil_Wavelet, HugeTinyAndUnevenValues_KeepTheBound) {
  const Shape shape = shape_of({20, 21, 22});
  for (const double scale : {1e-290, 1e-30, 1e30, 1e290}) {
    auto values = noisy(shape, 0.2, 71);
    for (double& v : values) v *= scale;
    code<double>(DType::f64, shape, values, 0.05 * scale);
  }
  for (const double spike : {1e3, 1e6, 1e12, 1e30}) {  // a few elements far from all others
    auto values = noisy(shape, 0.2, 72);
    for (std::size_t i = 5; i < values.size(); i += 997) values[i] = i % 2 == 0 ? spike : -spike;
    code<double>(DType::f64, shape, values, 0.1);
    code<float>(DType::f32, shape, values, 0.1);
  }
  auto values = noisy(shape, 0.2, 73);
  for (double& v : values) v = 1000 + 10 * v;
  code<float>(DType::f32, shape, values, 2.75 * 0x1p-14);  // near the spacing of numbers
}

TEST(Stencil_Wavelet, NoiseThatNothingExplains_KeepsEveryBound) {
  const Shape shape = shape_of({24, 25, 26});
  std::mt19937 random(74);
  std::vector<double> values(shape.elems());
  for (double& v : values) v = static_cast<double>(random()) * 0x1p-32;
  for (const double bound : {0.45, 0.3, 0.2, 0.1, 0.03, 1e-3, 1e-6})
    EXPECT_LE(code<float>(DType::f32, shape, values, bound), shape.elems() * 4 + 1);
}

TEST(Stencil_Wavelet, ElementsUnderAMask_CostLittle) {
  const Shape shape = shape_of({20, 60, 70});
  auto values = noisy(shape, 0.1, 75);
  std::mt19937 random(76);
  Bytes special(shape.elems(), 0);
  for (std::size_t i = 0; i < special.size(); ++i) {
    if (i % 4200 % 70 < 30) {
      special[i] = 1;
      values[i] = static_cast<double>(random());
    }
  }
  const std::size_t with_mask = code<float>(DType::f32, shape, values, 0.1, special);
  const std::size_t without = code<float>(DType::f32, shape, noisy(shape, 0.1, 75), 0.1);
  EXPECT_LT(with_mask, without);
  // Masks that leave next to nothing.
  std::fill(special.begin(), special.end(), std::uint8_t{1});
  special[4321] = 0;
  special[77777] = 0;
  code<float>(DType::f32, shape, values, 0.2, special);
}

TEST(Stencil_Wavelet, AnEmptySea_CostsNearlyNothing) {
  const Shape shape = shape_of({60, 128, 128});
  std::vector<double> values(shape.elems(), 0.0);
  for (std::size_t i = 0; i < 900; ++i) values[500000 + i % 30 + i / 30 * 128] = 1;
  const std::size_t bytes = code<float>(DType::f32, shape, values, 0.05);
  EXPECT_LT(bytes, 1500u);  // 0.012 bits an element
}

TEST(Stencil_WaveletLifting, InverseUndoesForward) {
  std::mt19937 random(77);
  for (int round = 0; round < 200; ++round) {
    WaveletAxes axes;
    axes.rank = 1 + random() % 4;
    for (std::size_t a = 0; a < axes.rank; ++a) axes.extents[a] = 1 + random() % (axes.rank > 2 ? 13 : 60);
    axes.packets = random() % std::min<std::size_t>(axes.rank, kMaxPackets + 1);
    for (std::size_t a = 0; a < axes.rank; ++a)
      while (axes.points(a, axes.levels[a]) > 1 && random() % 4 != 0) ++axes.levels[a];
    ASSERT_TRUE(axes.possible());
    std::vector<double> values(axes.elems());
    for (double& v : values) v = static_cast<double>(random() % 2000001) - 1000000;
    std::vector<double> room(lifting_room(axes));
    auto transformed = values;
    forward_wavelet(axes, kernels::stencil_kernels(kernels::best_isa()), transformed.data(), room.data());
    inverse_wavelet(axes, kernels::stencil_kernels(kernels::best_isa()), transformed.data(), room.data());
    ASSERT_EQ(transformed, values);
  }
}

TEST(Stencil_WaveletLifting, SmoothLinesHaveNoDetails) {
  WaveletAxes axes;
  axes.extents[0] = 256;
  axes.levels[0] = 3;
  std::vector<double> values(256);
  for (std::size_t i = 0; i < 256; ++i) {
    const double x = static_cast<double>(i) - 100;
    values[i] = std::floor(x * x * x / 64);
  }
  std::vector<double> room(lifting_room(axes));
  forward_wavelet(axes, kernels::stencil_kernels(kernels::best_isa()), values.data(), room.data());
  // Away from the ends a cubic leaves what rounding does.
  for (std::size_t i = 128 + 4; i < 256 - 4; ++i) EXPECT_LE(std::fabs(values[i]), 4) << i;
}

TEST(Stencil_WaveletBands, CoverEveryCoefficientOnce) {
  std::mt19937 random(78);
  for (int round = 0; round < 200; ++round) {
    WaveletAxes axes;
    axes.rank = 1 + random() % 4;
    for (std::size_t a = 0; a < axes.rank; ++a) axes.extents[a] = 1 + random() % 17;
    axes.packets = random() % std::min<std::size_t>(axes.rank, kMaxPackets + 1);
    for (std::size_t a = 0; a < axes.rank; ++a)
      while (axes.points(a, axes.levels[a]) > 1 && random() % 4 != 0) ++axes.levels[a];
    std::vector<std::uint32_t> seen(axes.elems(), 0);
    const std::vector<std::uint32_t> zeros(axes.elems(), 0);
    for_bands(axes, [&](const WaveletBand& band) {
      EXPECT_LT(band.group, wavelet_groups(axes));
      for (std::size_t r = 0; r < band.rows(); ++r) {
        const AxisValues index = band_row(axes, band, r);
        // All that a context looks at is there already, or is in the row.
        for_sources(axes, band, index, seen.data(), [&](std::size_t, const MagnitudeRow& source) {
          for (std::size_t x = 0; x < source.count; ++x) EXPECT_EQ(source.row[x], 1u);
        });
        const std::size_t at = band_place(axes, band, index);
        for (std::size_t x = 0; x < band.columns(); ++x) ++seen[at + x];
      }
      return true;
    });
    EXPECT_EQ(std::count(seen.begin(), seen.end(), 1u), static_cast<std::ptrdiff_t>(seen.size()));
  }
}

TEST(Stencil_WaveletContext, RowsAreReadWhereTheyAre) {
  std::mt19937 random(79);
  for (int round = 0; round < 500; ++round) {
    std::vector<std::uint32_t> row(1 + random() % 20);
    for (auto& v : row) v = static_cast<std::uint32_t>(random() % 100);
    const std::size_t columns = 1 + random() % 40;
    const MagnitudeRow source{row.data(), row.size(), static_cast<std::ptrdiff_t>(random() % 5) - 2,
                              static_cast<unsigned>(random() % 2)};
    std::vector<std::uint32_t> sums(columns, 7);
    add_row(source, 3, columns, kernels::stencil_kernels(kernels::best_isa()), sums.data());
    for (std::size_t x = 0; x < columns; ++x) {
      const auto at = static_cast<std::ptrdiff_t>(x >> source.halved) + source.offset;
      const bool inside = at >= 0 && at < static_cast<std::ptrdiff_t>(row.size());
      EXPECT_EQ(sums[x], 7 + (inside ? 3 * row[static_cast<std::size_t>(at)] : 0));
    }
  }
}

TEST(Stencil_WaveletFill, LiesBetweenWhatIsAround) {
  WaveletAxes axes;
  axes.rank = 2;
  axes.extents = {37, 41, 1, 1};
  std::vector<double> values(axes.elems());
  std::vector<std::uint8_t> missing(axes.elems(), 0);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t y = i / 41;
    const std::size_t x = i % 41;
    missing[i] = y > 5 && y < 30 && x > 8 && x < 35 ? 1 : 0;
    values[i] = missing[i] != 0 ? 1e9 : 1000 + static_cast<double>(x) * 10;
  }
  fill_missing(axes, missing.data(), values.data());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double x = static_cast<double>(i % 41);
    if (missing[i] == 0) {
      EXPECT_EQ(values[i], 1000 + x * 10);
      continue;
    }
    EXPECT_GE(values[i], 1000);
    EXPECT_LE(values[i], 1400);
    EXPECT_EQ(values[i], std::floor(values[i]));
  }
}

TEST(Stencil_WaveletModel, ComesBackAsItWas) {
  WaveletModel model;
  model.format.base = 1.5;
  model.format.step = 0x1p-9;
  model.masked = true;
  model.distributions[7] = {5, 2, 40, 20000};
  model.distributions[9] = {1, 0, 0, 0};
  model.axes.rank = 3;
  model.axes.extents = {9, 30, 31, 1};
  model.axes.packets = 1;
  model.axes.levels = {3, 2, 4, 0};
  model.step = 512;
  model.correction = 352;
  model.offsets = {-16, 15};
  for (std::size_t f = 0; f < kWaveletFeatures; ++f) model.weights[f] = static_cast<std::uint16_t>(f * f * 30);
  model.correction_weights[2] = kMaxWaveletWeight;
  model.correction_constant = 9;
  std::vector<std::uint16_t> constants(kMaxWaveletGroups);
  for (std::size_t g = 0; g < wavelet_groups(model.axes); ++g) constants[g] = static_cast<std::uint16_t>(g * 100);
  model.constants = constants.data();
  Bytes stored;
  write_wavelet_model(model, stored);
  WaveletModel read;
  read.axes.rank = 3;
  std::vector<std::uint16_t> room(kMaxWaveletGroups);
  read.constants = room.data();
  read.axes.extents = model.axes.extents;
  std::span<const std::uint8_t> bytes(stored);
  ASSERT_TRUE(read_wavelet_model(bytes, read).ok());
  EXPECT_TRUE(bytes.empty());
  Bytes again;
  write_wavelet_model(read, again);
  EXPECT_EQ(stored, again);
  EXPECT_EQ(read.offsets, model.offsets);
  EXPECT_EQ(read.weights, model.weights);
  EXPECT_EQ(room, constants);
  // More levels than an axis has halvings.
  model.axes.levels = {5, 2, 4, 0};
  Bytes bad;
  write_wavelet_model(model, bad);
  std::span<const std::uint8_t> more(bad);
  EXPECT_EQ(read_wavelet_model(more, read).code(), StatusCode::corrupt);
}

}  // namespace
}  // namespace quern::codec::stencil::test
