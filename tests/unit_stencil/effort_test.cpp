// How much fits try changes bytes a little, and nothing else.
#include "codecs/stencil/effort.h"

#include <cmath>

#include "codecs/stencil/chunk.h"
#include "codecs/stencil/rules.h"
#include "tests/unit_stencil/chunks.h"

namespace quern::codec::stencil::test {
namespace {

/// Bytes of a chunk that comes back within its bound.
std::size_t coded_bytes(const Shape& shape, const std::vector<double>& values, const Layout& layout, double bound,
                        Effort effort) {
  const Bytes data = as_bytes<float>(values);
  const ChunkGrid grid = make_grid(shape, layout);
  EncodeSpec spec = encode_spec(DType::f32, grid.chunk, bound, levels_form(shape, layout, grid));
  spec.effort = effort;
  const std::array<std::uint64_t, 2> strides{grid.extents[1] * grid.extents[2], grid.extents[2]};
  const Bytes stored = encoded_chunk(spec, {data.data(), grid.extents, strides});
  Bytes back(data.size());
  const Scratch scratch(decode_scratch_bytes(spec));
  EXPECT_TRUE(decode_chunk(spec, stored, {back.data(), grid.extents, strides}, scratch.span()).ok());
  for (std::size_t i = 0; i < values.size(); ++i) {
    float given = 0;
    float kept = 0;
    std::memcpy(&given, data.data() + 4 * i, 4);
    std::memcpy(&kept, back.data() + 4 * i, 4);
    if (std::fabs(static_cast<double>(given) - static_cast<double>(kept)) > bound) {
      ADD_FAILURE() << "element " << i;
      break;
    }
  }
  return stored.size();
}

std::size_t coded_bytes(const Layout& layout, double bound, Effort effort) {
  const Shape shape = shape_of({40, 72, 80});
  return coded_bytes(shape, waves(shape, 81), layout, bound, effort);
}

TEST(Stencil_Effort, EveryEffortKeepsTheBound_LowerOnesCostFewBytes) {
  Layout levels{1, 2};
  levels.levels = true;
  for (const Layout& layout : {Layout{1, 2}, levels}) {
    for (const double bound : {0.03, 1e-3, 2e-5}) {
      SCOPED_TRACE(::testing::Message() << (layout.levels ? "levels " : "raster ") << bound);
      const auto thorough = static_cast<double>(coded_bytes(layout, bound, Effort::high));
      EXPECT_LT(static_cast<double>(coded_bytes(layout, bound, Effort::medium)), 1.02 * thorough);
      EXPECT_LT(static_cast<double>(coded_bytes(layout, bound, Effort::low)), 1.08 * thorough);
      EXPECT_LT(static_cast<double>(coded_bytes(layout, bound, Effort::lowest)), 1.12 * thorough);
    }
  }
}

TEST(Stencil_Effort, FewResidualsThatAreNot0_FewSamplesSufficeForContexts) {
  Layout levels{1, 2};
  levels.levels = true;
  const Shape shape = shape_of({96, 128, 128});
  std::vector<double> values(shape.elems());
  std::mt19937 random(5);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t z = i / (128 * 128), y = i / 128 % 128, x = i % 128;
    if (z / 10 == 4 && y / 10 == 7 && x / 30 == 2) values[i] = static_cast<double>(random() % 1000) / 1000;
  }
  const auto thorough = static_cast<double>(coded_bytes(shape, values, levels, 0.1, Effort::high));
  EXPECT_LT(static_cast<double>(coded_bytes(shape, values, levels, 0.1, Effort::lowest)), 1.3 * thorough);
}

TEST(Stencil_Effort, LargeArraysGetMedium_GoalSpeedGetsLowOrLowest) {
  PlanRequest request;
  request.shape = shape_of({128, 128, 128});
  EXPECT_EQ(effort_of(request), Effort::high);
  request.shape = shape_of({192, 256, 256});
  EXPECT_EQ(effort_of(request), Effort::medium);
  request.goal = "psnr";
  EXPECT_EQ(effort_of(request), Effort::medium);
  request.goal = "speed";
  EXPECT_EQ(effort_of(request), Effort::lowest);
  request.shape = shape_of({128, 128, 128});
  EXPECT_EQ(effort_of(request), Effort::low);
}

}  // namespace
}  // namespace quern::codec::stencil::test
