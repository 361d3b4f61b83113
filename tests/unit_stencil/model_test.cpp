// The model of a chunk in raster order, and kernels on every instruction set.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "codecs/stencil/raster/model.h"
#include "kernels/stencil/cpu/stencil.h"

namespace quern::codec::stencil {
namespace {

using kernels::StencilExtents;
using kernels::StencilShape;

RasterModel sample_model(const StencilExtents& extents, unsigned seed) {
  std::mt19937 random(seed);
  RasterModel model;
  model.format.base = coding::short_double(-273.15);
  model.format.step = coding::short_double(0.0123);
  model.format.fraction_bits = 9;
  model.format.weight_bits = 14;
  model.stream_bits = 3;
  model.mean = extents.planes >= kernels::kMeanMinPlanes;
  model.format.masked = true;
  for (std::size_t c = 0; c < kernels::kRowClasses; ++c) {
    const bool exists = extents.shape() == StencilShape::planes || c == 1 || (c % 2 == 1 && extents.planes > 1);
    model.has_weights[c] = exists && random() % 3 > 0;
    if (!model.has_weights[c]) continue;
    for (std::size_t t = 0; t < kernels::taps_of(extents.shape(), c, model.mean).count; ++t)
      model.weights[c][t] = static_cast<std::int32_t>(random() % 8001) - 4000;
  }
  for (std::size_t t = 0; t < kernels::context_taps(extents.shape()).size(); ++t)
    model.context_weights[t] = static_cast<std::uint32_t>(random() % coding::kMaxContextWeight);
  model.context_constant = 77;
  model.distributions[9] = {1, 0, 0, 0};
  model.distributions[12] = {2, 0, 0, 31000};
  model.distributions[13] = {static_cast<std::uint8_t>(kernels::kResidualTokens), 7, 200, 5};
  complete_weights(extents.shape(), model);
  return model;
}

TEST(Stencil_Model, WrittenAndRead_IsTheSame) {
  for (const StencilExtents& extents :
       {StencilExtents{1, 1, 50}, StencilExtents{20, 1, 50}, StencilExtents{3, 7, 50}, StencilExtents{20, 7, 50}}) {
    const RasterModel model = sample_model(extents, 31);
    Vector<std::uint8_t> bytes;
    write_raster_model(model, extents.shape(), bytes);
    std::span<const std::uint8_t> rest = bytes;
    RasterModel back;
    const Status status = read_raster_model(rest, extents, back);
    ASSERT_TRUE(status.ok()) << status.text();
    EXPECT_TRUE(rest.empty());
    EXPECT_EQ(back.format.base, model.format.base);
    EXPECT_EQ(back.format.step, model.format.step);
    EXPECT_EQ(back.format.masked, model.format.masked);
    EXPECT_EQ(back.weights, model.weights);
    EXPECT_EQ(back.context_weights, model.context_weights);
    EXPECT_EQ(back.context_constant, model.context_constant);
    for (std::size_t l = 0; l < kernels::kContextBins; ++l) {
      EXPECT_EQ(back.distributions[l].tokens, model.distributions[l].tokens);
      EXPECT_EQ(back.distributions[l].zero, model.distributions[l].zero);
      EXPECT_EQ(back.distributions[l].shape, model.distributions[l].shape);
      EXPECT_EQ(back.distributions[l].scale, model.distributions[l].scale);
    }
  }
}

TEST(Stencil_Model, AMeanOfFewPlanesOrNoStep_IsRefused) {
  const StencilExtents many{20, 7, 50};
  Vector<std::uint8_t> bytes;
  write_raster_model(sample_model(many, 32), many.shape(), bytes);
  std::span<const std::uint8_t> rest = bytes;
  RasterModel back;
  EXPECT_EQ(read_raster_model(rest, {7, 7, 50}, back).code(), StatusCode::corrupt);
  RasterModel model = sample_model(many, 32);
  model.format.step = 0;
  bytes.clear();
  write_raster_model(model, many.shape(), bytes);
  rest = bytes;
  EXPECT_EQ(read_raster_model(rest, many, back).code(), StatusCode::corrupt);
}

TEST(Stencil_Model, LorenzoWeights_AreExactOnPlanes) {
  RasterModel model;
  model.format.weight_bits = 8;
  complete_weights(StencilShape::planes, model);
  const auto list = kernels::taps_of(StencilShape::planes, 5, false);
  // 3 + 2 planes - 5 rows + 7 columns is predicted from any neighbours.
  std::int64_t sum = 0;
  for (std::size_t t = 0; t < list.count; ++t)
    sum += model.weights[5][t] * (3 + 2 * list.taps[t].plane - 5 * list.taps[t].row + 7 * list.taps[t].column);
  EXPECT_EQ(sum, 3 * 256);
}

TEST(Stencil_Kernels, EveryInstructionSet_GivesTheSameNumbers) {
  std::mt19937_64 random(34);
  constexpr std::size_t kTaps = 7;
  constexpr std::size_t kCount = 48;
  std::vector<double> values(kTaps * 64);
  std::vector<std::uint32_t> magnitudes(kTaps * 64);
  for (double& v : values) v = static_cast<double>(static_cast<std::int64_t>(random() % (1u << 30)) - (1 << 29));
  for (auto& m : magnitudes) m = static_cast<std::uint32_t>(random() % 200000);
  std::vector<const double*> sources;
  std::vector<const std::uint32_t*> context;
  std::vector<double> weights;
  std::vector<std::uint32_t> context_weights;
  for (std::size_t t = 0; t < kTaps; ++t) {
    sources.push_back(values.data() + t * 64 + t);
    context.push_back(magnitudes.data() + t * 64 + t);
    weights.push_back(static_cast<double>(static_cast<int>(random() % 60000) - 30000));
    context_weights.push_back(static_cast<std::uint32_t>(random() % 4096));
  }
  constexpr std::size_t kWidth = 5;
  alignas(64) std::array<double, kWidth * kernels::kSampleBlock> rows{};
  alignas(64) std::array<double, kernels::kSampleBlock> sample_weights{};
  for (double& v : rows) v = static_cast<double>(random() % 1000) / 7;
  for (double& v : sample_weights) v = 1 / static_cast<double>(1 + random() % 9);
  const auto first_rows = rows;
  std::array<double, kWidth * kWidth> first_sums{};
  for (std::size_t i = 0; i < kernels::kIsaLevels; ++i) {
    const auto level = static_cast<kernels::IsaLevel>(i);
    if (!kernels::isa_available(level)) continue;
    const kernels::StencilKernels& k = kernels::stencil_kernels(level);
    rows = first_rows;
    std::array<std::int64_t, kCount> out{};
    std::array<std::uint32_t, kCount> context_out{};
    k.tap_sums(sources.data(), weights.data(), kTaps, kCount, out.data());
    k.context_sums(context.data(), context_weights.data(), kTaps, 99, kCount, context_out.data());
    for (std::size_t x = 0; x < kCount; ++x) {
      std::int64_t sum = 0;
      std::uint32_t context_sum = 99;
      for (std::size_t t = 0; t < kTaps; ++t) {
        sum += static_cast<std::int64_t>(weights[t]) * static_cast<std::int64_t>(sources[t][x]);
        context_sum += context_weights[t] * context[t][x];
      }
      EXPECT_EQ(out[x], sum);
      EXPECT_EQ(context_out[x], context_sum);
    }
    std::array<double, kWidth * kWidth> sums{};
    k.normal_sums(rows.data(), sample_weights.data(), kWidth, sums.data());
    if (i == 0) first_sums = sums;
    EXPECT_EQ(sums, first_sums) << kernels::isa_name(level);
    std::array<std::int64_t, kernels::kStencilBlock> targets{};
    std::array<double, kernels::kStencilBlock> left{};
    targets.fill(-12345);
    constexpr double kUnit = 1.0 / 64;
    const std::array<double, kWidth> solution{0.1, -0.7, 0.3, 1.9, 0};
    k.sample_rows(sources.data(), kWidth - 1, targets.data(), kUnit, solution.data(), rows.data(), left.data());
    for (std::size_t x = 0; x < kernels::kStencilBlock; ++x) {
      const double near = sources[0][x] * kUnit;
      double expected = -12345 * kUnit - near;
      EXPECT_EQ(rows[x], near);
      EXPECT_EQ(rows[(kWidth - 1) * kernels::kSampleBlock + x], expected);
      expected -= solution[0] * near;
      for (std::size_t t = 1; t + 1 < kWidth; ++t) {
        const double difference = sources[t][x] * kUnit - near;
        EXPECT_EQ(rows[t * kernels::kSampleBlock + x], difference);
        expected -= solution[t] * difference;
      }
      EXPECT_EQ(left[x], expected) << kernels::isa_name(level);
    }
  }
}

TEST(Stencil_ElementKernels, EveryInstructionSet_DoesWhatItsContractSays) {
  std::mt19937_64 random(35);
  constexpr std::size_t kRoom = 96;
  constexpr std::size_t kTaps = 5;
  const auto integer = [&](std::int64_t most) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(2 * most + 1)) - most;
  };
  std::array<std::array<double, kRoom>, kTaps> rows{};
  for (auto& row : rows)
    for (double& v : row) v = static_cast<double>(integer(1 << 28));
  std::array<const double*, kTaps> sources{};
  for (std::size_t t = 0; t < kTaps; ++t) sources[t] = rows[t].data();
  for (std::size_t i = 0; i < kernels::kIsaLevels; ++i) {
    const auto level = static_cast<kernels::IsaLevel>(i);
    if (!kernels::isa_available(level)) continue;
    SCOPED_TRACE(kernels::isa_name(level));
    const kernels::StencilKernels& k = kernels::stencil_kernels(level);
    for (const std::size_t count : {std::size_t{1}, std::size_t{16}, std::size_t{37}, std::size_t{64}}) {
      std::array<std::uint32_t, kRoom> distances{};
      distances.fill(3);
      k.fit.wide.add_distances({sources[0], sources[1], kernels::Spread::bend, -12, 9}, sources[2], 65535, count,
                               distances.data());
      for (std::size_t x = 0; x < count; ++x)
        ASSERT_EQ(distances[x], 3 + 9 * static_cast<std::uint32_t>(std::min(
                                            std::fabs(rows[0][x] + rows[1][x] - 2 * rows[2][x]) * 0x1p-12, 65535.0)));

      std::array<std::int64_t, kRoom> units{};
      std::array<double, kRoom> originals = rows[3];
      originals[0] = std::numeric_limits<double>::quiet_NaN();
      originals[5] = 0x1p60;
      k.units(originals.data(), count, 17.25, 0.125, units.data());
      for (std::size_t x = 0; x < count; ++x)
        ASSERT_EQ(units[x], x == 0 || x == 5 ? 0 : std::llrint((originals[x] - 17.25) * 0.125));

      std::array<double, kRoom> near{};
      for (std::size_t x = 0; x < kRoom; ++x) near[x] = rows[3][x] * 0.5 + 1;
      const auto all_near = [&](bool single) {
        return k.all_near(near.data(), rows[3].data(), count, 0.5, 1, 32, single);
      };
      EXPECT_TRUE(all_near(false));
      EXPECT_TRUE(all_near(true));
      for (const double other : {near[count - 1] + 64, 0.0, std::numeric_limits<double>::quiet_NaN()}) {
        const double kept = near[count - 1];
        near[count - 1] = other;
        EXPECT_FALSE(all_near(false));
        EXPECT_FALSE(all_near(true));
        near[count - 1] = kept;
      }
    }
  }
}

}  // namespace
}  // namespace quern::codec::stencil
