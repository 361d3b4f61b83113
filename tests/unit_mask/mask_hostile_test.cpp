// Hostile mask bytes: any input gives a mask or a status, within the memory limit, and every byte counts.
#include <gtest/gtest.h>

#include "kernels/mask/walk.h"
#include "tests/unit_mask/mask_samples.h"

namespace quern::mask {
namespace {

constexpr std::uint64_t kPlenty = UINT64_C(1) << 32;

/// What a decoder may return for bytes that nobody wrote: a status, or a mask that is consistent.
void expect_safe(const Result<SegmentMask>& result, const Extents& e, const std::string& what) {
  if (!result.ok()) {
    const StatusCode code = result.status().code();
    EXPECT_TRUE(code == StatusCode::corrupt || code == StatusCode::truncated || code == StatusCode::trailing_data ||
                code == StatusCode::memory_limit)
        << what << ": " << result.status().text();
    return;
  }
  if (result->empty()) return;
  ASSERT_EQ(result->classes.size(), cells_of(e)) << what;
  std::uint64_t masked = 0, verbatim = 0;
  for (const std::uint8_t c : result->classes) {
    EXPECT_TRUE(c <= result->specials.size() || c == kVerbatimClass) << what;
    masked += c != 0;
    verbatim += c == kVerbatimClass;
  }
  EXPECT_EQ(masked, result->masked) << what;
  EXPECT_EQ(verbatim, result->verbatim.size()) << what;
}

TEST(MaskDecoder_RandomBytes_NeverMisbehaves, Random) {
  for (std::uint64_t seed = 0; seed < 6000; ++seed) {
    std::mt19937_64 rng(seed);
    const Extents e = sample_extents()[rng() % sample_extents().size()];
    Vector<std::uint8_t> bytes(1 + rng() % 80);
    for (auto& b : bytes) b = static_cast<std::uint8_t>(rng() % 3 == 0 ? rng() : (rng() % 2 ? 0 : 255));
    const DType dtype = kAllTypes[rng() % std::size(kAllTypes)];
    expect_safe(decode_mask(bytes, e, dtype, kPlenty), e, describe(e, Pattern::random, dtype, seed));
  }
}

Vector<std::uint8_t> valid_bytes(const Extents& e, std::uint64_t seed) {
  Vector<std::uint8_t> bytes;
  const SegmentMask mask =
      make_mask(e, seed % 2 ? Pattern::coast : Pattern::rare, 1 + seed % 4, seed % 3 == 0, DType::f32, seed);
  EXPECT_TRUE(encode_mask(mask, e, DType::f32, bytes).ok());
  return bytes;
}

TEST(MaskDecoder_TruncatedBytes_FailsOrStaysConsistent, EveryLength) {
  const Extents e{3, 20, 70};
  for (std::uint64_t seed = 1; seed < 7; ++seed) {
    const auto bytes = valid_bytes(e, seed);
    ASSERT_GT(bytes.size(), 4U);
    for (std::size_t n = 1; n < bytes.size(); ++n) {
      const auto result = decode_mask(std::span(bytes).first(n), e, DType::f32, kPlenty);
      expect_safe(result, e, "seed " + std::to_string(seed) + " first " + std::to_string(n));
      if (n + 8 < bytes.size()) {
        EXPECT_FALSE(result.ok()) << "seed " << seed << " first " << n;
      }
    }
  }
}

TEST(MaskDecoder_ExtraBytes_AreRefused, TrailingData) {
  const Extents e{3, 20, 70};
  for (std::uint64_t seed = 1; seed < 40; ++seed) {
    auto bytes = valid_bytes(e, seed);
    const auto whole = decode_mask(bytes, e, DType::f32, kPlenty);
    ASSERT_TRUE(whole.ok());
    bytes.push_back(0);
    EXPECT_EQ(decode_mask(bytes, e, DType::f32, kPlenty).status().code(), StatusCode::trailing_data) << "seed " << seed;
    // Another byte may make another code of the same length; it is never taken for the mask that it follows.
    bytes.back() = 255;
    const auto other = decode_mask(bytes, e, DType::f32, kPlenty);
    EXPECT_TRUE(!other.ok() || !(*other == *whole)) << "seed " << seed;
  }
}

TEST(MaskDecoder_FlippedBits_NeverMisbehaves, EveryBit) {
  const Extents e{3, 20, 70};
  for (std::uint64_t seed = 1; seed < 7; ++seed) {
    auto bytes = valid_bytes(e, seed);
    for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      bytes[bit / 8] = static_cast<std::uint8_t>(bytes[bit / 8] ^ (1U << (bit % 8)));
      expect_safe(decode_mask(bytes, e, DType::f32, kPlenty), e,
                  "seed " + std::to_string(seed) + " bit " + std::to_string(bit));
      bytes[bit / 8] = static_cast<std::uint8_t>(bytes[bit / 8] ^ (1U << (bit % 8)));
    }
  }
}

TEST(MaskDecoder_HugeExtents_HitsTheMemoryLimitFirst, Limits) {
  const Vector<std::uint8_t> bytes(20, 0x5A);
  const std::uint64_t huge = UINT64_C(1) << 40;
  EXPECT_EQ(decode_mask(bytes, {1, huge, 4}, DType::f32, 1 << 20).status().code(), StatusCode::memory_limit);
  EXPECT_EQ(decode_mask(bytes, {1 << 20, huge, 4}, DType::f32, UINT64_MAX - 1).status().code(),
            StatusCode::memory_limit);
  EXPECT_EQ(decode_mask(bytes, {huge, huge, huge}, DType::f32, kPlenty).status().code(), StatusCode::corrupt);
  EXPECT_EQ(decode_mask(bytes, {0, 4, 4}, DType::f32, kPlenty).status().code(), StatusCode::corrupt);
}

TEST(MaskDecoder_VerbatimCellsEverywhere_AreCountedAgainstTheLimit, Limits) {
  const Extents e{1, 256, 256};
  SegmentMask mask = make_mask(e, Pattern::all, 0, true, DType::f64, 1);
  std::fill(mask.verbatim.begin(), mask.verbatim.end(), UINT64_C(0x7FF8000000000001));
  Vector<std::uint8_t> bytes;
  ASSERT_TRUE(encode_mask(mask, e, DType::f64, bytes).ok());
  // A class and eight bytes of value a cell, and some scratch for the walk: no more, and no less. Some views need more
  // scratch than the box.
  const kernels::MaskWalkSizes walk{kernels::MaskShape(kernels::MaskPlanes(e))};
  const std::uint64_t needed = cells_of(e) * 9 + walk.bytes();
  EXPECT_LE(needed, decode_bytes(e));
  EXPECT_LE(decode_bytes(e), cells_of(e) * 12);
  EXPECT_TRUE(decode_mask(bytes, e, DType::f64, needed).ok());
  EXPECT_EQ(decode_mask(bytes, e, DType::f64, needed - 1).status().code(), StatusCode::memory_limit);
  EXPECT_EQ(decode_mask(bytes, e, DType::f64, cells_of(e) * 4).status().code(), StatusCode::memory_limit);
}

}  // namespace
}  // namespace quern::mask
