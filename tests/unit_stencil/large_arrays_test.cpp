// Arrays of several chunks: which layout they get where a small box leaves that in doubt, and chunks at their upper
// ends that are much smaller than the others.
#include "tests/unit_stencil/helpers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

namespace quern::codec::stencil::test {
namespace {

constexpr std::size_t kExtent = 164;  // more elements than two full chunks have; in levels chunks of 96 and 68
constexpr std::size_t kElems = kExtent * kExtent * kExtent;

/// Fronts: a hyperbolic tangent of waves of five octaves. Numbers of the waves come from Weyl's sequence.
std::vector<double> fronts(unsigned seed) {
  std::uint64_t count = 0;
  const auto next = [&] {
    const double x = 0.6180339887498949 * static_cast<double>(100 * seed + ++count);
    return x - std::floor(x);
  };
  std::vector<double> field(kElems);
  for (unsigned octave = 0; octave < 5; ++octave) {
    for (unsigned wave = 0; wave < 2; ++wave) {
      std::array<std::array<double, kExtent>, 3> along{};
      for (auto& axis : along) {
        const double k = std::ldexp(0.6 + 0.8 * next(), static_cast<int>(octave) + 1) * 2 * 3.141592653589793 / kExtent;
        const double phase = 6.28 * next();
        for (std::size_t i = 0; i < kExtent; ++i) axis[i] = std::sin(k * static_cast<double>(i) + phase);
      }
      const double amplitude = std::pow(2.0, -1.4 * octave);
      for (std::size_t i = 0; i < kElems; ++i)
        field[i] +=
            amplitude * along[0][i / kExtent / kExtent] * along[1][i / kExtent % kExtent] * along[2][i % kExtent];
    }
  }
  for (double& v : field) v = std::tanh(2 * v);
  return field;
}

double width(const std::vector<double>& field) {
  const auto [low, high] = std::minmax_element(field.begin(), field.end());
  return *high - *low;
}

Coding coded(const std::vector<double>& field, double bound, const Settings& settings) {
  return Coding(DType::f32, shape_of({kExtent, kExtent, kExtent}), as_bytes<float>(field), bound, settings);
}

// On a box of 2^16 elements levels take more than raster order or the transform; of the array they take a tenth less.
TEST(Stencil_LargeArrays, LevelsThatASmallBoxMakesDear_AreTriedOnALargerOne) {
  constexpr std::uint8_t kLevels = 3;
  for (const auto& [seed, relative] : {std::pair{2u, 4e-2}, std::pair{4u, 2e-2}}) {
    const std::vector<double> field = fronts(seed);
    EXPECT_EQ(coded(field, relative * width(field), {}).encode(0)[0], kLevels) << seed;
  }
}

// A chunk of 68 * 68 * 164 elements is fitted whole in raster order, one of 96 * 96 * 164 on a box.
TEST(Stencil_LargeArrays, ChunksMuchSmallerThanOthers_HaveMemoryEnough) {
  const std::vector<double> field = fronts(1);
  const double bound = 4e-2 * width(field);
  for (const char* layout : {"levels", "planes", "raster"}) {
    SCOPED_TRACE(layout);
    const Coding coding = coded(field, bound, {{"layout", layout}});
    EXPECT_GT(coding.chunks(), 1u);
    Bytes back;
    EXPECT_LT(coding.round_trip(back), kElems * sizeof(float) / 20);
    EXPECT_EQ(count_missed<float>(coding, back, bound), 0u);
  }
}

}  // namespace
}  // namespace quern::codec::stencil::test
