// The part of a chunk that choices are made on.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "codecs/stencil/plan/middle_box.h"

namespace quern::codec::stencil {
namespace {

using Extents = std::array<std::uint64_t, 3>;

struct Box {
  explicit Box(Extents extents) : values(extents[0] * extents[1] * extents[2]), special(values.size()) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<std::uint32_t>(i);
      special[i] = static_cast<std::uint8_t>(i % 251);
    }
    box.data = values.data();
    box.extents = extents;
    box.strides = {extents[1] * extents[2], extents[2]};
    box.special = special.data();
    box.special_strides = box.strides;
  }
  /// Number in C order of the first element of a part; 0 and a failure when the classes say another.
  std::uint64_t first_of(const ConstBox3& part) const {
    const auto first = static_cast<std::uint64_t>(static_cast<const std::uint32_t*>(part.data) - values.data());
    EXPECT_EQ(static_cast<std::uint64_t>(part.special - special.data()), first);
    return first;
  }

  std::vector<std::uint32_t> values;
  std::vector<std::uint8_t> special;
  ConstBox3 box;
};

TEST(MiddleBox, ASmallOne_IsWhole) {
  const Box whole({4, 5, 6});
  const ConstBox3 part = middle_box(whole.box, {}, sizeof(std::uint32_t), 120, 1);
  EXPECT_EQ(part.extents, (Extents{4, 5, 6}));
  EXPECT_EQ(whole.first_of(part), 0u);
}

TEST(MiddleBox, TheLongestAxis_IsHalvedAboutTheMiddle) {
  const Box whole({8, 40, 12});
  const ConstBox3 part = middle_box(whole.box, {}, sizeof(std::uint32_t), 8 * 12 * 12, 2);
  EXPECT_EQ(part.extents, (Extents{8, 10, 12}));
  EXPECT_EQ(whole.first_of(part), 15u * 12);
  EXPECT_EQ(part.strides, whole.box.strides);
}

TEST(MiddleBox, AxesStayAsLongAsTheyAreToBe) {
  const Box whole({8, 8, 8});
  const ConstBox3 part = middle_box(whole.box, {}, sizeof(std::uint32_t), 1, 4);
  EXPECT_EQ(part.extents, (Extents{4, 4, 4}));
  EXPECT_EQ(whole.first_of(part), 2u * 64 + 2 * 8 + 2);
}

TEST(MiddleBox, OfASplitAxis_WholeInnerOnesStay) {
  const Box whole({1, 2, 6 * 7});
  LevelsForm form;
  form.split_axis = 2;
  form.inner = 7;
  const ConstBox3 part = middle_box(whole.box, form, sizeof(std::uint32_t), 50, 1);
  EXPECT_EQ(part.extents, (Extents{1, 2, 3 * 7}));
  EXPECT_EQ(whole.first_of(part), 7u);
}

}  // namespace
}  // namespace quern::codec::stencil
