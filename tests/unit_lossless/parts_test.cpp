// The parts below the codec: keys, differences, tokens, dictionary, layout.
#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "codecs/lossless/dictionary.h"
#include "codecs/lossless/differences.h"
#include "codecs/lossless/keys.h"
#include "codecs/lossless/layout.h"
#include "tests/unit_lossless/helpers.h"

namespace quern::codec::lossless::test {
namespace {

TEST(Keys, SignMagnitude_OrderedFloats_HaveOrderedKeys) {
  std::vector<float> values{-1e30f, -2.0f, -1.0f, -1e-40f, -0.0f, 0.0f, 1e-40f, 1.0f, 2.0f, 1e30f};
  std::vector<std::uint32_t> keys(values.size());
  std::memcpy(keys.data(), values.data(), 4 * values.size());
  patterns_to_keys(keys.data(), keys.size(), Order::sign_magnitude, 0, 32);
  EXPECT_TRUE(std::is_sorted(keys.begin(), keys.end()));
  EXPECT_EQ(keys[5], keys[4] + 1);  // the two zeros are neighbours
}

TEST(Keys, EveryPatternOf16Bits_ComesBackAndIsUnique) {
  for (const Order order : {Order::sign_magnitude, Order::twos_complement, Order::natural}) {
    std::vector<std::uint32_t> keys(65536);
    std::iota(keys.begin(), keys.end(), 0u);
    patterns_to_keys(keys.data(), keys.size(), order, 0, 16);
    EXPECT_EQ(std::set<std::uint32_t>(keys.begin(), keys.end()).size(), 65536u);
    EXPECT_LT(*std::max_element(keys.begin(), keys.end()), 65536u);
    std::vector<std::uint16_t> back(65536);
    store_row(keys.data(), keys.size(), order, 0, 16, 2, reinterpret_cast<std::uint8_t*>(back.data()));
    for (std::size_t i = 0; i < back.size(); ++i) ASSERT_EQ(back[i], i);
  }
}

TEST(Tokens, EveryWidth_SplitAndJoined_IsTheSame) {
  std::mt19937_64 random(31);
  for (unsigned width = 0; width <= 64; ++width) {
    for (int round = 0; round < 50; ++round) {
      const std::uint64_t value = width == 0 ? 0 : random() >> (64 - width) | std::uint64_t{1} << (width - 1);
      unsigned raw = 0;
      const std::uint8_t token = token_of(value, raw);
      EXPECT_EQ(raw, raw_bits_of(token));
      EXPECT_LE(token, last_token(std::max(width, 1u)));
      const std::uint64_t low = raw == 0 ? 0 : value & ((std::uint64_t{1} << raw) - 1);
      EXPECT_EQ(token_base<std::uint64_t>(token) | low, value);
    }
  }
}

TEST(Differences, EveryOrder_Undone_IsTheSame) {
  std::mt19937_64 random(32);
  for (const unsigned bits : {1u, 7u, 16u, 31u, 32u}) {
    const RowGrid grid{4, 5, 9};
    std::vector<std::uint32_t> keys(grid.elems());
    for (auto& key : keys) key = static_cast<std::uint32_t>(random()) & low_mask<std::uint32_t>(bits);
    for (unsigned packed = 0; packed < 0x40; ++packed) {
      if (!Orders::valid(static_cast<std::uint8_t>(packed))) continue;
      const Orders orders = Orders::unpack(static_cast<std::uint8_t>(packed));
      EXPECT_EQ(orders.packed(), packed);
      std::vector<std::uint32_t> folded(grid.elems());
      std::vector<std::uint32_t> rows(2 * grid.width);
      difference_all(keys.data(), grid, orders, bits, rows.data(), folded.data());
      for (const auto value : folded) ASSERT_LE(value, low_mask<std::uint32_t>(bits));
      for (std::size_t z = 0; z < grid.planes; ++z) {
        for (std::size_t y = 0; y < grid.rows; ++y) {
          restore_row(folded.data(), grid, z, y, orders, low_mask<std::uint32_t>(bits));
        }
      }
      ASSERT_EQ(folded, keys) << "orders " << packed << " bits " << bits;
    }
  }
}

TEST(Differences, Choice_OnATrilinearField_IsTheLorenzoPredictor) {
  const RowGrid grid{16, 16, 16};
  std::vector<std::uint32_t> keys;
  std::mt19937 random(33);
  std::vector<std::uint32_t> a(256), b(256), c(256);
  for (auto* part : {&a, &b, &c}) {
    for (auto& value : *part) value = static_cast<std::uint32_t>(random() >> 8);
  }
  // Sums of functions of two coordinates: only the difference along all three axes vanishes.
  for (std::size_t z = 0; z < 16; ++z) {
    for (std::size_t y = 0; y < 16; ++y) {
      for (std::size_t x = 0; x < 16; ++x) keys.push_back(a[z * 16 + y] + b[y * 16 + x] + c[z * 16 + x]);
    }
  }
  std::vector<std::uint32_t> scratch(3 * 18);
  const OrdersChoice choice = choose_orders(keys.data(), grid, 32, 1, scratch.data());
  EXPECT_EQ(choice.orders.packed(), Orders({{1, 1, 1}}).packed());
  EXPECT_EQ(choice.sampled, grid.elems());
}

template <class U>
void check_dictionary(unsigned bits, std::size_t distinct, std::uint64_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::vector<U> values(distinct);
  for (auto& value : values) value = static_cast<U>(random()) & low_mask<U>(bits);
  std::vector<U> keys(5000);
  for (auto& key : keys) key = values[random() % distinct];
  Arena sizes;
  Dictionary<U>(sizes, keys.size());
  const Scratch scratch(sizes.used());
  Arena arena(scratch.span());
  Dictionary<U> dictionary(arena, keys.size());
  ASSERT_TRUE(dictionary.build(keys.data(), keys.size(), bits));
  const std::set<U> expected(keys.begin(), keys.end());
  ASSERT_EQ(dictionary.size(), expected.size());
  std::vector<U> gaps(dictionary.size());
  dictionary.gaps(gaps.data());
  std::vector<U> sorted(gaps);
  for (std::size_t i = 1; i < sorted.size(); ++i) sorted[i] = static_cast<U>(sorted[i - 1] + gaps[i] + 1);
  EXPECT_TRUE(std::equal(sorted.begin(), sorted.end(), expected.begin()));
  std::vector<U> ranks(keys.size());
  dictionary.ranks(keys.data(), keys.size(), ranks.data());
  for (std::size_t i = 0; i < keys.size(); ++i) ASSERT_EQ(sorted[ranks[i]], keys[i]);
}

TEST(Dictionary, FewValues_AreSortedAndRanked) {
  check_dictionary<std::uint32_t>(32, 300, 41);
  check_dictionary<std::uint32_t>(16, 300, 42);
  check_dictionary<std::uint32_t>(8, 20, 43);
  check_dictionary<std::uint64_t>(64, 300, 44);
  check_dictionary<std::uint64_t>(35, 2, 45);
}

TEST(Dictionary, DistinctValues_AreRefused) {
  std::vector<std::uint32_t> keys(5000);
  std::iota(keys.begin(), keys.end(), 7u);
  Arena sizes;
  Dictionary<std::uint32_t>(sizes, keys.size());
  const Scratch scratch(sizes.used());
  Arena arena(scratch.span());
  EXPECT_FALSE(Dictionary<std::uint32_t>(arena, keys.size()).build(keys.data(), keys.size(), 32));
}

TEST(Layout, MergedExtents_KeepEveryElementOnce) {
  const Shape shape = shape_of({2, 1, 3, 5, 7, 1, 11});
  const auto candidates = merged_extents(shape);
  for (const auto& e : candidates) EXPECT_EQ(e[0] * e[1] * e[2], shape.elems());
  const std::set<std::array<std::uint64_t, 3>> unique(candidates.begin(), candidates.end());
  EXPECT_EQ(unique.size(), candidates.size());
  EXPECT_TRUE(unique.contains({2, 15, 77}));
  EXPECT_TRUE(unique.contains({1, 1, 2310}));
}

TEST(Layout, MergedExtents_OfThreeAxes_BeginWithTheArrayItself) {
  EXPECT_EQ(merged_extents(shape_of({4, 5, 6})).front(), (std::array<std::uint64_t, 3>{4, 5, 6}));
  EXPECT_EQ(merged_extents(shape_of({1, 5, 6})).front(), (std::array<std::uint64_t, 3>{1, 5, 6}));
  EXPECT_EQ(merged_extents(shape_of({})).front(), (std::array<std::uint64_t, 3>{1, 1, 1}));
}

TEST(Layout, Cut_AnyExtents_StaysBelowTheLimitAndCovers) {
  constexpr std::uint64_t kHuge = std::uint64_t{1} << 40;
  const std::array<std::uint64_t, 3> list[] = {{1, 1, 1},          {1, 1, kHuge},   {kHuge, 1, 1},
                                               {512, 512, 512},    {kHuge, 2, 3},   {3, 3, 70001},
                                               {65537, 65537, 13}, {1, 1000000, 1}, {100000, 1, 999}};
  for (const auto& extents : list) {
    for (const DType dtype : {DType::u8, DType::f64}) {
      const ChunkGrid grid = cut(extents, dtype);
      EXPECT_LE(grid.chunk[0] * grid.chunk[1] * grid.chunk[2], kMaxChunkElems);
      for (std::size_t a = 0; a < 3; ++a) {
        EXPECT_GE(grid.chunk[a], 1u);
        EXPECT_LE(grid.chunk[a], extents[a]);
      }
    }
  }
}

}  // namespace
}  // namespace quern::codec::lossless::test
