// Context bins: one rule for the host and devices, and its vector form, which agrees for every sum there is.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/entropy/context_bin.h"
#include "kernels/entropy/cpu/context_bins.h"
#include "tests/support/instrumented.h"
#include "tests/support/thorough.h"

namespace quern::kernels {
namespace {

struct IsaOfTest;
using Bins = ContextBins<IsaOfTest>;

TEST(Coding_ContextBin, GrowTwoAnOctave) {
  EXPECT_EQ(context_bin(0), 2u);
  EXPECT_EQ(context_bin(3), 3u);
  EXPECT_EQ(context_bin(4), 4u);
  EXPECT_EQ(context_bin(6), 5u);
  EXPECT_EQ(context_bin(8), 6u);
  EXPECT_EQ(context_bin(UINT32_MAX), 63u);
}

/// The sums of a bin: [begin, end), from the rule in words, two bins an octave.
struct Interval {
  std::uint32_t bin;
  std::uint64_t begin, end;
};
std::vector<Interval> all_intervals() {
  std::vector<Interval> intervals{{2, 0, 3}, {3, 3, 4}};
  for (std::uint32_t octave = 2; octave < 32; ++octave) {
    const std::uint64_t low = std::uint64_t{1} << octave;
    intervals.push_back({2 * octave, low, low + low / 2});
    intervals.push_back({2 * octave + 1, low + low / 2, 2 * low});
  }
  return intervals;
}

/// True when both forms for loops give the bin for all sums of [begin, end).
bool loops_agree(std::uint32_t bin, std::uint64_t begin, std::uint64_t end) {
  using Words = std::uint32_t __attribute__((vector_size(16)));
  using Integers = std::int32_t __attribute__((vector_size(16)));
  using Floats = float __attribute__((vector_size(16)));
  Words wrong{};
  std::uint64_t s = begin;
  for (; s + 4 <= end; s += 4) {
    Words bins;
    Bins::bins_of<Floats, Integers>(Words{0, 1, 2, 3} + static_cast<std::uint32_t>(s), bins);
    wrong |= bins ^ bin;
  }
  std::uint32_t differing = wrong[0] | wrong[1] | wrong[2] | wrong[3];
  for (std::uint64_t rest = s; rest < end; ++rest) {
    Words bins;
    Bins::bins_of<Floats, Integers>(Words{} + static_cast<std::uint32_t>(rest), bins);
    differing |= bins[0] ^ bin;
  }
  const auto first = static_cast<std::uint32_t>(begin);
  const auto count = static_cast<std::uint32_t>(end - begin);
  for (std::uint32_t i = 0; i < count; ++i) differing |= Bins::bin_of(first + i) ^ bin;
  return differing == 0;
}

TEST(Coding_ContextBin, EverySum_IsInItsInterval) {
  // Every sum under --thorough; else the ends of each bin and every 61st sum between them.
  const std::uint64_t step = quern::testing::thorough() ? 1 : 61;
  for (const Interval& interval : all_intervals()) {
    std::uint32_t differing = context_bin(static_cast<std::uint32_t>(interval.end - 1)) ^ interval.bin;
    for (std::uint64_t s = interval.begin; s < interval.end; s += step)
      differing |= context_bin(static_cast<std::uint32_t>(s)) ^ interval.bin;
    EXPECT_EQ(differing, 0u) << interval.bin;
  }
}

TEST(Coding_ContextBin, EverySum_LoopsAndVectorsAgree) {
  // Every sum under --thorough (20 s); else every one below 2^25, and 2^22 at either end of each bin above.
  constexpr std::uint64_t kPart = std::uint64_t{1} << 22;
  const std::uint64_t most = quern::testing::thorough() ? UINT64_MAX : quern::testing::kInstrumented ? 4096 : 4 * kPart;
  for (const Interval& interval : all_intervals()) {
    if (interval.end - interval.begin <= most) {
      EXPECT_TRUE(loops_agree(interval.bin, interval.begin, interval.end)) << interval.bin;
    } else {
      EXPECT_TRUE(loops_agree(interval.bin, interval.begin, interval.begin + most / 4)) << interval.bin;
      EXPECT_TRUE(loops_agree(interval.bin, interval.end - most / 4, interval.end)) << interval.bin;
    }
  }
}

}  // namespace
}  // namespace quern::kernels
