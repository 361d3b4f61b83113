// The closed loop of raster order, and what else is summed up row by row: every instruction set does what plain loops
// do.
#include "codecs/stencil/raster/loop.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "kernels/stencil/rules.h"
#include "tests/unit_stencil/instruction_sets.h"

namespace quern::codec::stencil {
namespace {

using test::for_instruction_sets;

struct Row {
  static constexpr std::size_t kBefore = 8;  // values that near taps of the first element look at

  std::vector<std::int64_t> far;
  std::vector<std::int64_t> targets;
  std::vector<double> values;
  std::vector<std::uint32_t> magnitudes;
  std::vector<std::int32_t> codes;

  explicit Row(std::size_t columns)
      : far(columns), targets(columns), values(kBefore + columns), magnitudes(columns), codes(columns) {}
  LoopRow view(const std::uint8_t* special) {
    return {far.data(), targets.data(), special, values.data() + kBefore, magnitudes.data(), codes.data()};
  }
};

/// Predict, quantize, reconstruct, as the format says it.
void run_plainly(Row& row, const std::uint8_t* special, const SplitWeights& split, const RasterModel& model) {
  const auto unit = std::int64_t{1} << model.format.fraction_bits;
  const auto one = std::int64_t{1} << model.format.weight_bits;
  for (std::size_t x = 0; x < row.far.size(); ++x) {
    const double* const value = row.values.data() + Row::kBefore + x;
    std::int64_t sum = row.far[x] + one / 2;
    for (std::size_t t = 0; t < split.near_count; ++t)
      sum += split.near[t] * static_cast<std::int64_t>(value[-1 - static_cast<std::ptrdiff_t>(t)]);
    const std::int64_t predicted = sum >> model.format.weight_bits;
    std::int64_t code = (row.targets[x] + unit / 2 - predicted) >> model.format.fraction_bits;
    code = std::clamp<std::int64_t>(code, -std::int64_t{kernels::kMaxMagnitude}, kernels::kMaxMagnitude);
    const bool skipped = special != nullptr && special[x] != 0;
    if (skipped) code = 0;
    row.codes[x] = static_cast<std::int32_t>(code);
    row.magnitudes[x] =
        static_cast<std::uint32_t>(std::min<std::int64_t>(std::abs(code), kernels::kMaxContextMagnitude));
    row.values[Row::kBefore + x] = skipped ? value[-1] : static_cast<double>(predicted + code * unit);
  }
}

TEST(Stencil_Loop, RowsOfAnyCodes_AreThoseOfThePlainLoop) {
  std::mt19937_64 random(17);
  const auto within = [&](int bits) {
    return static_cast<std::int64_t>(random() % (std::uint64_t{2} << bits)) - (std::int64_t{1} << bits);
  };
  std::size_t beyond = 0;
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    RasterModel model;
    model.format.weight_bits = std::array<unsigned, 3>{12, 14, 16}[static_cast<std::size_t>(round) % 3];
    model.format.fraction_bits = static_cast<unsigned>(random() % 12);
    SplitWeights split;
    split.near_count = round % 2 == 0 ? 3 : kernels::kMaxNearTaps;
    for (std::size_t t = 0; t < split.near_count; ++t)
      split.near[t] = within(static_cast<int>(model.format.weight_bits) - 3);
    // Shorter and longer than what is done at a time; some with targets that no code reaches.
    const std::size_t columns = 1 + random() % (round % 4 == 0 ? 1500 : 100);
    Row row(columns);
    for (std::size_t x = 0; x < columns; ++x) {
      row.far[x] = within(30);
      row.targets[x] = within(round % 5 == 4 && random() % 300 == 0 ? 43 : static_cast<int>(random() % 28));
    }
    for (std::size_t t = 0; t < Row::kBefore; ++t) row.values[t] = static_cast<double>(within(20));
    std::vector<std::uint8_t> special(columns);
    for (auto& s : special) s = random() % 7 == 0 ? 1 : 0;
    const std::uint8_t* const mask = round % 7 == 0 ? special.data() : nullptr;
    Row expected = row;
    run_plainly(expected, mask, split, model);
    beyond += std::ranges::count(expected.codes, std::int32_t{kernels::kMaxMagnitude}) > 0 ? 1 : 0;
    for_instruction_sets([&](const kernels::StencilKernels& k) {
      Row given = row;
      run_row_of(k, given.view(mask), split, model, columns);
      ASSERT_EQ(given.codes, expected.codes);
      ASSERT_EQ(given.magnitudes, expected.magnitudes);
      ASSERT_EQ(given.values, expected.values);
    });
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(beyond, 3u);
}

TEST(Stencil_Loop, MeanOfPlanes_IsThatOfThePlainLoop) {
  std::mt19937_64 random(18);
  constexpr std::size_t kCount = 203;
  std::vector<double> from(kCount);
  std::vector<double> before(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    from[i] = static_cast<double>(static_cast<std::int64_t>(random() % (1u << 30)) - (1 << 29));
    before[i] = static_cast<double>(static_cast<std::int64_t>(random() % (1u << 30)) - (1 << 29));
  }
  constexpr double kWeight = 48 * 0x1p-8;
  for_instruction_sets([&](const kernels::StencilKernels& k) {
    std::vector<double> apart(kCount + 1, -1);
    k.add_to_mean(from.data(), before.data(), kWeight, kCount, apart.data());
    std::vector<double> in_place = before;
    k.add_to_mean(from.data(), in_place.data(), kWeight, kCount, in_place.data());
    for (std::size_t i = 0; i < kCount; ++i) {
      ASSERT_EQ(apart[i], before[i] + std::nearbyint((from[i] - before[i]) * kWeight)) << i;
      ASSERT_EQ(in_place[i], apart[i]) << i;
    }
    ASSERT_EQ(apart[kCount], -1);
  });
}

TEST(Stencil_Loop, SamplesOfMagnitudes_AreThoseOfThePlainLoop) {
  std::mt19937_64 random(19);
  constexpr std::size_t kTaps = 9;
  constexpr std::size_t kSamples = kernels::kStencilBlock;
  std::array<std::array<std::uint32_t, kSamples>, kTaps + 1> known{};
  std::array<const std::uint32_t*, kTaps> sources{};
  std::array<double, kTaps + 1> expected{};
  for (std::size_t t = 0; t <= kTaps; ++t) {
    for (auto& m : known[t]) m = static_cast<std::uint32_t>(random() % 4 == 0 ? random() % (1u << 18) : 0);
    if (t < kTaps) sources[t] = known[t].data();
    expected[t] = t == kTaps ? 0.01 : static_cast<double>(random() % 1000) / 3000;
  }
  for_instruction_sets([&](const kernels::StencilKernels& k) {
    alignas(64) std::array<double, (kTaps + 2) * kernels::kSampleBlock> rows{};
    alignas(64) std::array<double, kSamples> weights{};
    k.fit.magnitude_rows(sources.data(), kTaps, known[kTaps].data(), expected.data(), 0.02, rows.data(),
                         weights.data());
    for (std::size_t s = 0; s < kSamples; ++s) {
      double e = expected[kTaps];
      for (std::size_t t = 0; t < kTaps; ++t) {
        ASSERT_EQ(rows[t * kernels::kSampleBlock + s], known[t][s]);
        e += expected[t] * known[t][s];
      }
      e = std::max(e, 0.02);
      ASSERT_EQ(rows[kTaps * kernels::kSampleBlock + s], 1);
      ASSERT_EQ(rows[(kTaps + 1) * kernels::kSampleBlock + s], known[kTaps][s]);
      ASSERT_EQ(weights[s], 1 / (e * e + e)) << s;
    }
    for (std::size_t t = 0; t < kTaps + 2; ++t) ASSERT_EQ(rows[t * kernels::kSampleBlock + kSamples], 0);
  });
}

}  // namespace
}  // namespace quern::codec::stencil
