// Arrays of several chunks: which layout they get where a small box leaves that in doubt, and chunks at their upper
// ends that are much smaller than the others.
#include "tests/unit_stencil/edges/fronts.h"
#include "tests/unit_stencil/helpers.h"

#include <utility>
#include <vector>

namespace quern::codec::stencil::test {
namespace {

constexpr std::size_t kExtent = 164;  // more elements than two full chunks have; in levels chunks of 96 and 68
constexpr std::size_t kElems = kExtent * kExtent * kExtent;

Coding coded(const std::vector<double>& field, double bound, const Settings& settings) {
  return Coding(DType::f32, shape_of({kExtent, kExtent, kExtent}), as_bytes<float>(field), bound, settings);
}

// On a box of 2^16 elements levels take more than raster order or the transform; of the array they take a tenth less.
TEST(Stencil_LargeArrays, LevelsThatASmallBoxMakesDear_AreTriedOnALargerOne) {
  constexpr std::uint8_t kLevels = 3;
  for (const auto& [seed, relative] : {std::pair{2u, 4e-2}, std::pair{4u, 2e-2}}) {
    const std::vector<double> field = fronts(kExtent, seed);
    EXPECT_EQ(coded(field, relative * width(field), {}).encode(0)[0], kLevels) << seed;
  }
}

// A chunk of 68 * 68 * 164 elements is fitted whole in raster order, one of 96 * 96 * 164 on a box.
TEST(Stencil_LargeArrays, ChunksMuchSmallerThanOthers_HaveMemoryEnough) {
  const std::vector<double> field = fronts(kExtent, 1);
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
