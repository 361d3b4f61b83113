// Samples without a fixed distance: one in each part, in order, no two steps alike.
#include <gtest/gtest.h>

#include <set>

#include "libcompress/core/scattered_sample.h"

namespace quern {
namespace {

TEST(ScatteredSample, EachPartGivesOne_InOrder) {
  for (const std::uint64_t total :
       {UINT64_C(1), UINT64_C(7), UINT64_C(64), UINT64_C(1000), UINT64_C(1) << 40, UINT64_MAX})
    for (const std::uint64_t samples : {UINT64_C(1), UINT64_C(7), UINT64_C(64)}) {
      if (samples > total) continue;
      std::uint64_t previous = 0;
      for (std::uint64_t i = 0; i < samples; ++i) {
        const std::uint64_t at = scattered_sample(total, samples, i);
        ASSERT_LT(at, total);
        if (i > 0) {
          ASSERT_GT(at, previous) << total << " " << samples << " " << i;
        }
        previous = at;
      }
    }
}

TEST(ScatteredSample, AllOfThem_WhenAsManyAreAskedFor) {
  for (std::uint64_t i = 0; i < 64; ++i) EXPECT_EQ(scattered_sample(64, 64, i), i);
}

TEST(ScatteredSample, PlanesOfEqualLength_AreMetAtManyRows) {
  std::set<std::uint64_t> rows;
  for (std::uint64_t i = 0; i < 64; ++i) rows.insert(scattered_sample(1024, 64, i) % 16);
  EXPECT_GE(rows.size(), 12u);
}

TEST(ScatteredBoxes, LieAllOver_OnEveryAxisApart) {
  for (const std::uint64_t places : {UINT64_C(1), UINT64_C(97), UINT64_C(1) << 20, (UINT64_C(1) << 40) + 3}) {
    EXPECT_EQ(scattered_box_place(places, 0, 0), places / 2);
    for (std::size_t axis = 0; axis < 4; ++axis) {
      std::uint64_t quarters = 0;
      for (std::uint64_t i = 0; i < 16; ++i) {
        const std::uint64_t place = scattered_box_place(places, axis, i);
        ASSERT_LT(place, places);
        quarters |= UINT64_C(1) << (place / (places / 4 + 1));
      }
      EXPECT_EQ(quarters, places == 1 ? 1u : 15u) << places << " " << axis;
    }
  }
  EXPECT_NE(scattered_box_place(1 << 20, 0, 5), scattered_box_place(1 << 20, 1, 5));
}

}  // namespace
}  // namespace quern
