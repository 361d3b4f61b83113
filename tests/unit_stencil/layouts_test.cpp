// Which layout a plan takes, and what its trials say of boxes.
#include <utility>
#include <vector>

#include "codecs/stencil/plan/sample_block.h"
#include "codecs/stencil/rules.h"
#include "tests/unit_stencil/chunks.h"
#include "tests/unit_stencil/edges/fronts.h"

namespace quern::codec::stencil::test {
namespace {

constexpr std::size_t kExtent = 64;

Coding coded(const std::vector<double>& field, double relative, const char* goal, const Settings& settings = {}) {
  return Coding(DType::f32, shape_of({kExtent, kExtent, kExtent}), as_bytes<float>(field), relative * width(field),
                settings, {}, goal);
}

// Steep fronts: more than five bits an element in raster order.
TEST(Stencil_Layouts, LargeCodes_GoInLevelsWhereThatTakesFewerBytes) {
  constexpr std::uint8_t kLevels = 3;
  for (const auto& [seed, period] : {std::pair{2u, std::size_t{96}}, std::pair{4u, std::size_t{128}}}) {
    const std::vector<double> field = fronts(kExtent, seed, period, 100);
    for (const char* goal : {"ratio", "speed"}) {
      SCOPED_TRACE(::testing::Message() << seed << " " << goal);
      const Bytes taken = coded(field, 1e-4, goal).encode(0);
      EXPECT_EQ(taken[0], kLevels);
      const Bytes raster = coded(field, 1e-4, goal, {{"layout", "raster"}}).encode(0);
      EXPECT_GT(raster.size() * 8, 5 * field.size());
      EXPECT_LT(static_cast<double>(taken.size()), 0.8 * static_cast<double>(raster.size()));
    }
  }
}

/// Elements of which some are special, told as the pipeline tells it.
class SampleWithGaps final : public PlanSample {
 public:
  SampleWithGaps(const std::vector<float>& values, const std::vector<std::uint8_t>& special)
      : values_(values), special_(special) {}

  std::uint64_t elems() const override { return values_.size(); }
  Result<ConstBox3> look(std::uint64_t first, const ConstBox3& place, void* room,
                         std::uint8_t* special_room) const override {
    const std::array<std::uint64_t, 2> strides{place.extents[1] * place.extents[2], place.extents[2]};
    auto* const to = static_cast<float*>(room);
    bool any = false;
    std::size_t n = 0;
    for (std::uint64_t i = 0; i < place.extents[0]; ++i) {
      for (std::uint64_t j = 0; j < place.extents[1]; ++j) {
        for (std::uint64_t x = 0; x < place.extents[2]; ++x, ++n) {
          const std::uint64_t at = first + i * place.strides[0] + j * place.strides[1] + x;
          to[n] = values_[at];
          if (special_room != nullptr) special_room[n] = special_[at];
          any = any || special_[at] != 0;
        }
      }
    }
    if (!any) return ConstBox3{values_.data() + first, place.extents, place.strides};
    return ConstBox3{room, place.extents, strides, special_room, special_room != nullptr ? strides : place.strides};
  }

 private:
  const std::vector<float>& values_;
  const std::vector<std::uint8_t>& special_;
};

struct Found {
  bool here = false;
  bool anywhere = false;
};
/// Whether a box of 16^3 elements has special elements, and the places where it might have lain, when those in planes
/// from `first_special` on are special. Values change in the first half alone, so that the box lies there.
Found found_gaps(std::size_t first_special) {
  std::vector<float> values(kExtent * kExtent * kExtent);
  std::vector<std::uint8_t> special(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t plane = i / (kExtent * kExtent);
    values[i] = plane < kExtent / 2 ? static_cast<float>(i * 7919 % 1000) : 0;
    special[i] = plane >= first_special ? 1 : 0;
  }
  const SampleWithGaps sample(values, special);
  PlanRequest request;
  request.dtype = DType::f32;
  request.shape = shape_of({kExtent, kExtent, kExtent});
  request.bound.value = 0.5;
  request.sample = &sample;
  const auto array = take_trial_array(request, shape_of({16, 16, 16}));
  EXPECT_TRUE(array.ok());
  return {array->has_special, array->gaps};
}

TEST(Stencil_TrialBox, TellsOfGapsElsewhere) {
  const Found none = found_gaps(kExtent);
  EXPECT_FALSE(none.here);
  EXPECT_FALSE(none.anywhere);
  const Found behind = found_gaps(kExtent * 3 / 4);
  EXPECT_FALSE(behind.here);
  EXPECT_TRUE(behind.anywhere);
  const Found all_over = found_gaps(0);
  EXPECT_TRUE(all_over.here);
  EXPECT_TRUE(all_over.anywhere);
}

TEST(Stencil_Trials, InRasterOrder_AreGivenUpWhereFirstWeightsLeaveTooMuch) {
  const Shape shape = shape_of({20, 30, 40});
  const Bytes data = as_bytes<float>(waves(shape, 3));
  const ChunkGrid grid = make_grid(shape, {1, 2});
  EncodeSpec spec = encode_spec(DType::f32, grid.chunk, 1e-3, {});
  const ConstBox3 box{data.data(), grid.extents, {grid.extents[1] * grid.extents[2], grid.extents[2]}};
  const Scratch scratch(encode_scratch_bytes(spec));
  const auto whole = estimate_chunk(spec, box, scratch.span());
  ASSERT_TRUE(whole.ok());
  const std::uint64_t as_they_are = std::uint64_t{8} * data.size() << 12;
  EXPECT_LT(whole->residuals, as_they_are);
  for (const bool above : {false, true}) {
    spec.most_plain = above ? 2 * whole->plain : whole->plain / 2;
    const auto cost = estimate_chunk(spec, box, scratch.span());
    ASSERT_TRUE(cost.ok());
    EXPECT_EQ(cost->residuals, above ? whole->residuals : as_they_are);
    EXPECT_GT(cost->plain, 0u);
  }
}

}  // namespace
}  // namespace quern::codec::stencil::test
