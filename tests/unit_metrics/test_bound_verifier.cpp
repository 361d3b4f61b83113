// The quick check of single elements: whatever it clears, the exact one keeps.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "kernels/metrics/bound_verifier.h"

namespace quern::verifier {
namespace {

/// Pairs at and beside the bound, among them specials, with bits that random() makes.
template <class E>
std::vector<std::pair<typename E::Bits, typename E::Bits>> pairs(unsigned seed) {
  using Bits = typename E::Bits;
  std::mt19937_64 random(seed);
  std::vector<std::pair<Bits, Bits>> all;
  for (int i = 0; i < 20000; ++i) {
    const auto x = static_cast<Bits>(random() >> random() % 64);
    all.emplace_back(x, static_cast<Bits>(random()));
    all.emplace_back(x, static_cast<Bits>(x + random() % 64 - 32));
    all.emplace_back(x, static_cast<Bits>(x + (random() >> random() % 64)));
  }
  if constexpr (E::kFloat)
    for (const Bits x : {Bits{0}, E::kSign, E::kInfinity, static_cast<Bits>(E::kInfinity + 1), Bits{1}})
      for (const Bits y : {Bits{0}, E::kSign, E::kInfinity, static_cast<Bits>(E::kInfinity | E::kSign), Bits{1}})
        all.emplace_back(x, y);
  return all;
}

template <class E>
void expect_cleared_is_kept(const std::vector<Bound>& bounds, std::size_t least) {
  const std::vector<std::uint64_t> fills{7, 0};
  const auto all = pairs<E>(3);
  for (const Bound& bound : bounds)
    for (const std::size_t used : {0u, 1u, 2u}) {
      const BoundVerifier<E> verifier(bound, Validity<E>({fills.data(), used}));
      std::size_t cleared = 0;
      for (const auto& [x, y] : all) {
        if (!verifier.clears(x, y)) continue;
        ++cleared;
        ASSERT_EQ(verifier.verdict(x, y), Verdict::kept) << std::hex << +x << ' ' << +y << ' ' << bound.value;
      }
      EXPECT_GE(cleared, least) << bound.value;
    }
}

/// Bounds at which differences of the pairs lie: halves, quarters, one step beside, smallest numbers.
std::vector<Bound> float_bounds() {
  std::vector<Bound> bounds{{BoundRule::lossless, 0},         {BoundRule::absolute, 0},
                            {BoundRule::absolute, 0x1p-1074}, {BoundRule::absolute, 0x1p-149},
                            {BoundRule::absolute, 0x1p-150},  {BoundRule::absolute, 1e300}};
  for (const double value : {0.5, 1e-30, 1e-3, 3.0, 1e30})
    for (const double near : {value, std::nextafter(value, 0.0), std::nextafter(value, HUGE_VAL)})
      bounds.push_back({BoundRule::absolute, near});
  for (const double value : {0.0, 0x1p-1074, 0x1p-52, 0x1p-24, 0x1p-23, 0x1p-11, 1e-3, 0.1, 0.5, 1 - 0x1p-53})
    bounds.push_back({BoundRule::relative, value});
  return bounds;
}

TEST(BoundVerifier, FloatsThatAreCleared_AreKept) {
  expect_cleared_is_kept<F16>(float_bounds(), 100);
  expect_cleared_is_kept<Bf16>(float_bounds(), 100);
  expect_cleared_is_kept<F32>(float_bounds(), 100);
  expect_cleared_is_kept<F64>(float_bounds(), 100);
}

TEST(BoundVerifier, IntegersThatAreCleared_AreKept) {
  const std::vector<Bound> bounds{{BoundRule::lossless, 0},
                                  {BoundRule::absolute, 0.5},
                                  {BoundRule::absolute, 1.0},
                                  {BoundRule::absolute, 20.9},
                                  {BoundRule::absolute, 0x1p64}};
  expect_cleared_is_kept<Integer<std::int8_t>>(bounds, 100);
  expect_cleared_is_kept<Integer<std::uint16_t>>(bounds, 100);
  expect_cleared_is_kept<Integer<std::int64_t>>(bounds, 100);
  expect_cleared_is_kept<Integer<std::uint64_t>>(bounds, 100);
}

TEST(BoundVerifier, ElementsWellWithin_AreCleared) {
  const auto bits = [](float x) { return std::bit_cast<std::uint32_t>(x); };
  const Validity<F32> valid({});
  EXPECT_TRUE(BoundVerifier<F32>({BoundRule::absolute, 0.5}, valid).clears(bits(1.0f), bits(1.25f)));
  EXPECT_TRUE(BoundVerifier<F32>({BoundRule::relative, 0.5}, valid).clears(bits(-1.0f), bits(-1.25f)));
  EXPECT_FALSE(BoundVerifier<F32>({BoundRule::absolute, 0.5}, valid).clears(bits(-0.0f), bits(0.25f)));
  EXPECT_FALSE(BoundVerifier<F32>({BoundRule::absolute, 0.5}, valid).clears(bits(0.25f), bits(-0.0f)));
}

TEST(RoundDown, ToBinary32_IsTheLargestNumberNotAbove) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 20000; ++i) {
    const double value = std::fabs(std::bit_cast<double>(random()));
    if (!std::isfinite(value)) continue;
    const auto rounded = round_down<float>(value);
    ASSERT_LE(static_cast<double>(rounded), value);
    ASSERT_GT(static_cast<double>(std::nextafter(rounded, HUGE_VALF)), value);
  }
  EXPECT_EQ(round_down<float>(0x1p-150), 0.0f);
  EXPECT_EQ(round_down<float>(0x1p-149), 0x1p-149f);
  EXPECT_EQ(round_down<double>(0.1), 0.1);
}

TEST(IsBoundFor, ChecksKindsAndValues) {
  using kernels::Element;
  EXPECT_TRUE(is_bound_for(Element::u8, {BoundRule::lossless, 0}));
  EXPECT_TRUE(is_bound_for(Element::f16, {BoundRule::relative, 0.5}));
  EXPECT_FALSE(is_bound_for(Element::f16, {BoundRule::relative, 1.0}));
  EXPECT_FALSE(is_bound_for(Element::i32, {BoundRule::relative, 0.5}));
  EXPECT_FALSE(is_bound_for(Element::f32, {BoundRule::absolute, -1.0}));
  EXPECT_FALSE(is_bound_for(Element::f32, {BoundRule::absolute, std::nan("")}));
  EXPECT_FALSE(is_bound_for(Element::f32, {BoundRule::absolute, HUGE_VAL}));
}

}  // namespace
}  // namespace quern::verifier
