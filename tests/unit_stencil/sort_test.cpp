// Elements in the order of coding, against one level, class and row after the other.
#include "codecs/stencil/levels/sort.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include <quern/codec.h>

#include "codecs/stencil/levels/sections.h"
#include "codecs/stencil/levels/view.h"

namespace quern::codec::stencil::test {
namespace {

/// Numbers of elements from the box's first, in the order of coding.
std::vector<std::uint32_t> expected(const LevelsView& view) {
  const LevelAxes& axes = view.axes;
  std::vector<std::uint32_t> order;
  for (unsigned level = axes.top() + 1; level-- > 0;) {
    const CodedClasses classes(axes, level);
    for (std::size_t i = 0; i < classes.count; ++i) {
      const std::size_t c = classes.list[i];
      std::array<std::size_t, kMaxAxes> points{};
      std::size_t count = 1;
      for (std::size_t a = 0; a < axes.rank; ++a) count *= points[a] = axes.class_points(c, level, a);
      for (std::size_t n = 0; n < count; ++n) {
        std::size_t left = n;
        std::size_t at = 0;
        for (std::size_t a = axes.rank; a-- > 0; left /= points[a])
          at += view.place(c, level, a, left % points[a]) * view.strides[a];
        order.push_back(static_cast<std::uint32_t>(at));
      }
    }
  }
  return order;
}

std::vector<std::uint32_t> sorted(const LevelsView& view, const std::vector<std::uint32_t>& box) {
  const std::size_t elems = view.axes.elems();
  const std::size_t first = first_of_levels(view.axes)[0];
  constexpr std::uint32_t kUnset = 0xFFFFFFFF;
  std::vector<std::uint32_t> coarser(first + 1, kUnset);
  std::vector<std::uint32_t> finest(elems - first + 1, kUnset);
  std::vector<std::uint32_t> row(view.axes.extents[view.axes.rank - 1]);
  sort_elements(view, box.data(), {coarser.data(), finest.data(), row.data()});
  EXPECT_EQ(coarser.back(), kUnset);
  EXPECT_EQ(finest.back(), kUnset);
  coarser.pop_back();
  finest.pop_back();
  coarser.insert(coarser.end(), finest.begin(), finest.end());
  return coarser;
}

struct Case {
  std::array<std::uint64_t, 3> extents;
  std::uint64_t inner;  ///< of the first axis
};

TEST(Stencil_Sort, BoxesOfAnyExtents_ComeInTheOrderOfCoding) {
  std::mt19937 random(7);
  std::vector<Case> cases{{{1, 1, 1}, 1},   {{1, 1, 2}, 1},  {{1, 1, 100}, 1}, {{2, 2, 2}, 1},
                          {{1, 3, 1}, 1},   {{7, 1, 9}, 1},  {{33, 2, 5}, 1},  {{3, 40, 1}, 1},
                          {{16, 8, 64}, 1}, {{12, 5, 7}, 4}, {{9, 4, 5}, 3}};
  for (int i = 0; i < 60; ++i)
    cases.push_back({{1 + random() % 20, 1 + random() % 20, 1 + random() % 70}, i % 4 == 0 ? 2u : 1u});
  for (const Case& c : cases) {
    LevelsForm form;
    form.levels = true;
    form.inner = c.inner;
    ConstBox3 box{nullptr, c.extents};
    box.strides[1] = c.extents[2] + random() % 5;
    box.strides[0] = box.strides[1] * c.extents[1] + random() % 30;
    std::vector<std::uint32_t> elements(box.strides[0] * c.extents[0] + 1);
    for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<std::uint32_t>(i);
    const LevelsView view(box, form);
    SCOPED_TRACE(::testing::Message() << c.extents[0] << "x" << c.extents[1] << "x" << c.extents[2] << " inner "
                                      << c.inner);
    // Rows of a box whose last axis has one element may not be side by side.
    ASSERT_EQ(can_sort(view), view.strides[view.axes.rank - 1] == 1);
    if (!can_sort(view)) continue;
    const auto order = expected(view);
    ASSERT_EQ(order.size(), view.axes.elems());
    ASSERT_EQ(sorted(view, elements), order);
  }
}

TEST(Stencil_Sort, PlanesOneAfterAnother_AreNotSorted) {
  LevelsForm form;
  form.levels = form.sequential = true;
  EXPECT_FALSE(can_sort(LevelsView(ConstBox3{nullptr, {8, 8, 8}, {64, 8}}, form)));
}

}  // namespace
}  // namespace quern::codec::stencil::test
