// The stored form of a mask: round trips of every pattern, extents and dtype, canonical bytes, sizes that must hold.
#include <gtest/gtest.h>

#include "tests/unit_mask/mask_samples.h"

namespace quern::mask {
namespace {

constexpr std::uint64_t kPlenty = UINT64_C(1) << 32;

Vector<std::uint8_t> encoded(const SegmentMask& mask, const Extents& e, DType dtype) {
  Vector<std::uint8_t> out;
  const Status status = encode_mask(mask, e, dtype, out);
  EXPECT_TRUE(status.ok()) << status.text();
  return out;
}

void expect_round_trip(const SegmentMask& mask, const Extents& e, DType dtype, const std::string& what) {
  const auto bytes = encoded(mask, e, dtype);
  const auto back = decode_mask(bytes, e, dtype, kPlenty);
  ASSERT_TRUE(back.ok()) << what << ": " << back.status().text();
  if (mask.empty()) {
    EXPECT_TRUE(back->empty() && bytes.empty()) << what;
  } else {
    EXPECT_TRUE(*back == mask) << what;
  }
}

TEST(MaskCodec_EveryPatternAndExtents_RoundTrips, OneSpecial) {
  for (const Extents& e : sample_extents()) {
    for (const Pattern p : kAllPatterns) {
      expect_round_trip(make_mask(e, p, 1, false, DType::f32, 7), e, DType::f32, describe(e, p, DType::f32, 7));
    }
  }
}

TEST(MaskCodec_EveryPatternAndExtents_RoundTrips, ManySpecialsAndVerbatim) {
  for (const std::size_t kinds : {0, 1, 2, 3, 7, 30}) {
    for (const Extents& e : sample_extents()) {
      for (const Pattern p : kAllPatterns) {
        const std::uint64_t seed = 100 + kinds;
        expect_round_trip(make_mask(e, p, kinds, true, DType::f64, seed), e, DType::f64,
                          describe(e, p, DType::f64, seed));
      }
    }
  }
}

TEST(MaskCodec_EveryDtype_RoundTrips, RandomMasks) {
  for (const DType dtype : kAllTypes) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      std::mt19937_64 rng(seed);
      const Extents e{1 + rng() % 6, 1 + rng() % 40, 1 + rng() % 90};
      const Pattern p = kAllPatterns[rng() % std::size(kAllPatterns)];
      expect_round_trip(make_mask(e, p, 1 + rng() % 5, rng() % 2 == 0, dtype, seed), e, dtype,
                        describe(e, p, dtype, seed));
    }
  }
}

TEST(MaskCodec_AppendsToBytes_LeavesWhatWasThere, Prefix) {
  const Extents e{2, 9, 20};
  const SegmentMask mask = make_mask(e, Pattern::coast, 2, false, DType::f32, 3);
  Vector<std::uint8_t> out(5, 0xFF);
  ASSERT_TRUE(encode_mask(mask, e, DType::f32, out).ok());
  const auto alone = encoded(mask, e, DType::f32);
  ASSERT_EQ(out.size(), alone.size() + 5);
  EXPECT_EQ(Vector<std::uint8_t>(out.begin(), out.begin() + 5), Vector<std::uint8_t>(5, 0xFF));
  EXPECT_EQ(Vector<std::uint8_t>(out.begin() + 5, out.end()), alone);
}

TEST(MaskCodec_AllCellsSpecial_CostsFewBytes, HalfMillionCells) {
  const Extents e{8, 256, 256};
  EXPECT_LE(encoded(make_mask(e, Pattern::all, 1, false, DType::f32, 1), e, DType::f32).size(), 40U);
}

TEST(MaskCodec_SamePlaneEveryTwelve_CostsLittleMoreThanTwelve, ReferenceDistance) {
  const auto planes = [](std::uint64_t count) {
    const Extents e{count, 60, 90};
    SegmentMask mask = make_mask({12, 60, 90}, Pattern::coast, 1, false, DType::f32, 5);
    const auto year = mask.classes;
    mask.classes.clear();
    while (mask.classes.size() < cells_of(e)) mask.classes.insert(mask.classes.end(), year.begin(), year.end());
    mask.masked *= count / 12;
    return encoded(mask, e, DType::f32).size();
  };
  EXPECT_LE(planes(60), planes(12) + 16);
}

TEST(MaskCodec_NoiseMask_StaysNearOneBitACell, Incompressible) {
  const Extents e{4, 128, 128};
  const auto size = encoded(make_mask(e, Pattern::random, 1, false, DType::f32, 9), e, DType::f32).size();
  EXPECT_LE(size, cells_of(e) / 8 * 106 / 100 + 600);
}

TEST(MaskCodec_MaskThatDoesNotFit_IsRefused, EncodeArguments) {
  const Extents e{1, 4, 8};
  Vector<std::uint8_t> out;
  SegmentMask mask = make_mask(e, Pattern::blocks, 1, false, DType::f32, 2);
  EXPECT_EQ(encode_mask(mask, {1, 4, 9}, DType::f32, out).code(), StatusCode::invalid_argument);
  mask.classes[0] = 2;
  EXPECT_EQ(encode_mask(mask, e, DType::f32, out).code(), StatusCode::invalid_argument);
  mask.classes[0] = 1;
  mask.masked = 1;
  EXPECT_EQ(encode_mask(mask, e, DType::f32, out).code(), StatusCode::invalid_argument);
  EXPECT_TRUE(out.empty());
}

TEST(MaskCodec_KnownMask_GivesKnownBytes, GoldenBytes) {
  const Extents e{2, 4, 8};
  SegmentMask mask;
  mask.specials = {0x7FC00000};
  mask.classes.assign(64, 0);
  for (std::size_t i : {0, 1, 2, 8, 9, 16, 32, 33, 34, 40, 41}) mask.classes[i] = 1;
  mask.masked = 11;
  const auto bytes = encoded(mask, e, DType::f32);
  std::string hex;
  for (const std::uint8_t b : bytes) {
    hex += "0123456789abcdef"[b >> 4];
    hex += "0123456789abcdef"[b & 15];
  }
  EXPECT_EQ(hex, "0807fbfe804cd50e873440");
}

}  // namespace
}  // namespace quern::mask
