// Deep features: which patches are taken, and what networks make of them.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "surrogate/patches.h"
#include "tests/unit_surrogate/fields.h"
#include "tests/unit_surrogate/patch_models.h"

namespace quern::surrogate {
namespace {

using test::view;
using test::waves;

Patches patches_of(const std::vector<float>& values, const char* shape) {
  const ArrayView array = view(values, shape);
  return take_patches(array, value_range(array, {}, Execution{}), {});
}

TEST(Patches, ThreeAxes_GiveCubes) {
  const Patches patches = patches_of(waves(20, 64, 64, 0.1), "20x64x64");
  EXPECT_TRUE(patches.cubes);
  EXPECT_EQ(patches.values.size(), kPatches * 512 * kPatchChannels);
}

TEST(Patches, ThinVolumes_GiveSquares) {
  const Patches patches = patches_of(waves(4, 64, 64, 0.1), "4x64x64");
  EXPECT_FALSE(patches.cubes);
  EXPECT_EQ(patches.values.size(), kPatches * 256 * kPatchChannels);
}

TEST(Patches, LinesAndConstants_GiveNone) {
  EXPECT_TRUE(patches_of(waves(1, 1, 5000, 0.1), "5000").values.empty());
  EXPECT_TRUE(patches_of(waves(1, 15, 500, 0.1), "15x500").values.empty());
  EXPECT_TRUE(patches_of(std::vector<float>(4096, 2.5F), "64x64").values.empty());
  EXPECT_TRUE(patches_of(std::vector<float>(4096, std::numeric_limits<float>::quiet_NaN()), "64x64").values.empty());
}

TEST(Patches, EachHasMeanZeroAndDeviationOne) {
  const Patches patches = patches_of(waves(1, 300, 400, 1), "300x400");
  const double unit = 1 << kPatchUnitBits;
  for (std::size_t p = 0; p < kPatches; ++p) {
    double sum = 0;
    double squares = 0;
    for (std::size_t i = 0; i < 256; ++i) {
      const double v = patches.values[(p * 256 + i) * kPatchChannels] / unit;
      sum += v;
      squares += v * v;
    }
    EXPECT_NEAR(sum / 256, 0, 0.01) << p;
    EXPECT_NEAR(squares / 256, 1, 0.02) << p;
  }
}

TEST(Patches, ScaledArrays_HaveTheSamePatches) {
  std::vector<float> values = waves(20, 64, 64, 0.1);
  const Patches before = patches_of(values, "20x64x64");
  for (float& v : values) v *= 1024;
  EXPECT_EQ(patches_of(values, "20x64x64").values, before.values);
}

TEST(Patches, MissingValuesAndInfinities_DoNoHarm) {
  std::vector<float> values = waves(1, 100, 100, 0.1);
  for (std::size_t i = 0; i < values.size(); i += 3) values[i] = std::numeric_limits<float>::quiet_NaN();
  values[0] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(patches_of(values, "100x100").values.size(), kPatches * 256 * kPatchChannels);
}

TEST(Patches, OfRangesThatOverflow_AreNone) {
  std::vector<double> values(4096);
  for (std::size_t i = 0; i < values.size(); i += 3) values[i] = 1e-310;
  const ArrayView array{values.data(), DType::f64, Shape::parse("64x64").value()};
  EXPECT_TRUE(take_patches(array, value_range(array, {}, Execution{}), {}).values.empty());
  const double infinity = std::numeric_limits<double>::infinity();
  for (const ValueRange& range : {ValueRange{0, infinity}, ValueRange{-infinity, 0}, ValueRange{-infinity, infinity}})
    EXPECT_TRUE(take_patches(array, range, {}).values.empty());
}

TEST(DeepFeatures, AreTheMeansOfWhatTheNetworkMakes) {
  const Patches patches = patches_of(waves(1, 300, 400, 1), "300x400");
  std::vector<double> sums(kDeepFeatures);
  for (std::size_t i = 0; i < patches.values.size(); i += kPatchChannels)
    for (std::size_t c = 0; c < kDeepFeatures; ++c)
      sums[c] += std::floor((patches.values[i] * static_cast<double>(c + 1) + 8) / 16);
  const std::vector<double> found = deep_features(test::plain_patch_networks(), patches);
  ASSERT_EQ(found.size(), kDeepFeatures);
  for (std::size_t c = 0; c < kDeepFeatures; ++c) EXPECT_DOUBLE_EQ(found[c], sums[c] / (4096.0 * kPatches * 256)) << c;
}

TEST(DeepFeatures, OfNoPatches_AreZero) {
  EXPECT_EQ(deep_features(test::plain_patch_networks(), Patches{}), std::vector<double>(kDeepFeatures));
}

TEST(PatchNetworks, OfOtherShapes_AreRefused) {
  PatchNetworks networks = test::plain_patch_networks();
  EXPECT_EQ(check_patch_networks(networks), nullptr);
  std::swap(networks.squares, networks.cubes);
  EXPECT_NE(check_patch_networks(networks), nullptr);
  networks = test::plain_patch_networks();
  kernels::NetworkLayer& layer = networks.cubes.layers.front();
  layer.out.channels = 8;
  layer.weights.resize(16);
  layer.bias.resize(8);
  layer.multipliers.resize(8);
  EXPECT_NE(check_patch_networks(networks), nullptr);
}

}  // namespace
}  // namespace quern::surrogate
