// Kernels of the decoder: every instruction set does what the plain loops here do, whatever the bytes are, and touches
// nothing behind what it was given.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "codecs/stencil/model/stream_readers.h"
#include "codecs/stencil/wavelet/model.h"
#include "kernels/entropy/token_table.h"
#include "kernels/stencil/cpu/stencil.h"
#include "tests/support/instrumented.h"
#include "tests/unit_stencil/guarded.h"
#include "tests/unit_stencil/instruction_sets.h"

namespace quern::codec::stencil {
namespace {

using kernels::TokenTable;
using test::for_instruction_sets;
using test::Guarded;

struct Tables {
  static constexpr std::size_t kMostlyZero = 12;
  std::vector<TokenTable> tables{kLevels};
  std::array<const TokenTable*, kLevels> serving{};

  /// Some levels share a table; tails are long enough for residuals of all sizes.
  explicit Tables(std::mt19937_64& random) {
    for (std::size_t l = 0; l < kLevels; ++l) {
      kernels::ResidualModel model;
      model.tokens = l == 5 ? 1 : static_cast<std::uint8_t>(2 + random() % (kernels::kResidualTokens - 1));
      model.shape = static_cast<std::uint8_t>(random() % kernels::kTailExponents.size());
      model.scale = static_cast<std::uint8_t>(random() % 256);
      model.zero = static_cast<std::uint16_t>(1 + random() % (kernels::kFrequencySum - model.tokens));
      if (l == kMostlyZero) model.zero = static_cast<std::uint16_t>(kernels::kFrequencySum - model.tokens - 300);
      tables[l].fill(model);
      serving[l] = &tables[l % 3 == 0 ? l : l / 2];
    }
  }
};

struct LaneBytes {
  std::unique_ptr<Guarded<std::uint8_t>> bytes;
  std::vector<kernels::RansSource> sources;

  LaneBytes(std::mt19937_64& random, std::size_t lanes, std::size_t words) {
    std::vector<std::size_t> sizes(lanes);
    std::size_t all = 0;
    for (std::size_t& size : sizes) all += size = 2 + (words == 0 ? 0 : random() % words);
    bytes = std::make_unique<Guarded<std::uint8_t>>(2 * all, all % 4 != 0);
    for (std::uint8_t& byte : bytes->span()) byte = static_cast<std::uint8_t>(random());
    const std::uint8_t* at = bytes->data();
    for (const std::size_t size : sizes) {
      const auto state = static_cast<std::uint32_t>(random()) | kernels::kRansFloor;
      sources.push_back({at + 4, at + 2 * size, state, false});
      at += 2 * size;
    }
  }
};

TEST(Stencil_DecodeKernels, ResidualsOfAnyBytes_AreThoseOfOneLaneAfterTheOther) {
  std::mt19937_64 random(61);
  const Tables tables(random);
  const kernels::ResidualTables by_level(tables.tables.data(), tables.serving);
  const int rounds = quern::testing::kInstrumented ? 60 : 400;
  std::size_t large = 0;
  std::size_t failed = 0;
  for (int round = 0; round < rounds; ++round) {
    const std::size_t lanes = std::size_t{1} << (round % 6);
    const LaneBytes bytes(random, lanes, round % 7 == 0 ? 3 : 60);
    const std::size_t count = 1 + random() % 150;
    const std::size_t first = random() % 1000;
    // Rounds where zeros are rare, where most are zero, and where all levels occur.
    const Guarded<std::uint8_t> contexts(count, round % 4 < 2);
    for (auto& c : contexts.span()) {
      c = static_cast<std::uint8_t>(round % 3 == 0 ? 5 : random() % kLevels);
      if (round % 3 == 0 && random() % 20 == 0) c = 9;
      if (round % 5 == 0) c = Tables::kMostlyZero;
      if (round % 2 == 0 && random() % 5 == 0) c = kernels::kNoResidual;
    }
    std::vector<kernels::RansSource> expected = bytes.sources;
    std::vector<std::int32_t> codes(count, 0);
    for (std::size_t x = 0; x < count; ++x) {
      if (contexts[x] == kernels::kNoResidual) continue;
      codes[x] =
          static_cast<std::int32_t>(take_residual(expected[(first + x) & (lanes - 1)], *tables.serving[contexts[x]]));
      large += std::abs(codes[x]) >= 1 << 16 ? 1 : 0;
    }
    for_instruction_sets([&](const kernels::StencilKernels& all) {
      const kernels::StencilDecodeKernels& k = all.decode;
      kernels::ResidualLanes state(bytes.sources);
      const Guarded<std::int32_t> taken(count, round % 4 < 2);
      k.take_residuals(state, by_level, contexts.data(), count, first, taken.data());
      ASSERT_EQ(std::vector<std::int32_t>(taken.span().begin(), taken.span().end()), codes) << "round " << round;
      for (std::size_t lane = 0; lane < lanes; ++lane) {
        const kernels::RansSource left = state.source(lane);
        ASSERT_EQ(left.state, expected[lane].state) << lane;
        ASSERT_EQ(left.at, expected[lane].at) << lane;
        ASSERT_EQ(left.failed, expected[lane].failed) << lane;
      }
    });
    for (const kernels::RansSource& source : expected) failed += source.failed ? 1 : 0;
  }
  EXPECT_GT(large, 20u);
  EXPECT_GT(failed, 20u);
}

TEST(Stencil_DecodeKernels, FrequenciesOfZero_AreThoseOfTheLevel) {
  std::mt19937_64 random(62);
  const Tables tables(random);
  const kernels::ResidualTables by_level(tables.tables.data(), tables.serving);
  for (const std::size_t count : {1, 31, 32, 63, 64, 65, 200}) {
    const Guarded<std::uint32_t> sums(count, true);
    for (auto& s : sums.span()) s = static_cast<std::uint32_t>(random() >> (32 + random() % 32));
    for_instruction_sets([&](const kernels::StencilKernels& all) {
      const kernels::StencilDecodeKernels& k = all.decode;
      const Guarded<std::uint16_t> zeros(count, true);
      k.zero_frequencies(sums.data(), by_level, count, zeros.data());
      for (std::size_t x = 0; x < count; ++x) ASSERT_EQ(zeros[x], tables.serving[level_of(sums[x])]->starts[1]);
    });
  }
}

TEST(Stencil_DecodeKernels, ValuesFromCodes_AreExact) {
  std::mt19937_64 random(63);
  for (const std::size_t count : {1, 7, 16, 33}) {
    std::vector<std::int32_t> codes(count);
    std::vector<double> numbers(count);
    for (std::size_t x = 0; x < count; ++x) {
      codes[x] = static_cast<std::int32_t>(static_cast<std::int64_t>(random()) >> (34 + random() % 30));
      if (x % 3 == 0) codes[x] = static_cast<std::int32_t>(x % 5) - 2;
      numbers[x] = static_cast<double>(codes[x]) / 8;
    }
    constexpr std::int64_t kQuantum = (1 << 12) + 52;
    WaveletModel model;
    model.offsets = {-7, 5};
    for_instruction_sets([&](const kernels::StencilKernels& all) {
      const kernels::StencilDecodeKernels& k = all.decode;
      std::vector<double> coefficients(count);
      k.scale_codes(codes.data(), model.offsets, kQuantum, count, coefficients.data());
      std::vector<double> sums(count, 0.25);
      k.add_scaled(codes.data(), 3, count, sums.data());
      std::vector<std::uint32_t> singles(count);
      k.store_singles(numbers.data(), 0.3, 17.7, count, singles.data());
      for (std::size_t x = 0; x < count; ++x) {
        ASSERT_EQ(coefficients[x], coefficient_of(model, kQuantum, codes[x]));
        ASSERT_EQ(sums[x], 0.25 + codes[x] * 3.0);
        ASSERT_EQ(singles[x], std::bit_cast<std::uint32_t>(static_cast<float>(numbers[x] * 0.3 + 17.7)));
      }
    });
  }
}

TEST(Stencil_DecodeKernels, RowsAndLifting_AreThoseOfPlainLoops) {
  std::mt19937_64 random(64);
  for (const std::size_t count : {1, 5, 16, 40}) {
    std::vector<std::uint32_t> row(count);
    for (auto& m : row) m = static_cast<std::uint32_t>(random());
    for_instruction_sets([&](const kernels::StencilKernels& all) {
      const kernels::StencilDecodeKernels& k = all.decode;
      std::vector<std::uint32_t> sums(count, 11);
      std::vector<std::uint32_t> wide(2 * count, 12);
      k.add_row(row.data(), 4001, count, false, sums.data());
      k.add_row(row.data(), 4001, count, true, wide.data());
      for (std::size_t x = 0; x < count; ++x) {
        ASSERT_EQ(sums[x], 11 + 4001 * row[x]);
        ASSERT_EQ(wide[2 * x], 12 + 4001 * row[x]);
        ASSERT_EQ(wide[2 * x + 1], 12 + 4001 * row[x]);
      }
    });
    constexpr std::size_t kLines = kernels::kLiftedLines;
    for (const std::size_t others : {count, count + 1, count > 1 ? count - 1 : 1}) {
      for (const std::size_t back : {0, 1}) {
        std::vector<double> to(count * kLines);
        std::vector<double> other(others * kLines);
        for (double& v : to) v = static_cast<double>(static_cast<int>(random() % 200001) - 100000);
        for (double& v : other) v = static_cast<double>(static_cast<int>(random() % 200001) - 100000);
        std::vector<double> expected = to;
        constexpr double kFactor = -103949;
        for (std::size_t i = 0; i < count; ++i) {
          for (std::size_t j = 0; j < kLines; ++j) {
            const std::size_t left = i >= back ? i - back : 0;
            const std::size_t right = std::min(i + 1 - back, others - 1);
            if (left >= others) continue;
            expected[i * kLines + j] +=
                std::nearbyint((other[left * kLines + j] + other[right * kLines + j]) * kFactor * 0x1p-16);
          }
        }
        if (count > others + back) continue;  // lows are never more than one ahead of highs
        for_instruction_sets([&](const kernels::StencilKernels& all) {
          const kernels::StencilDecodeKernels& k = all.decode;
          std::vector<double> lifted = to;
          k.lift(lifted.data(), count, other.data(), others, back, kFactor);
          ASSERT_EQ(lifted, expected);
        });
      }
    }
  }
}

}  // namespace
}  // namespace quern::codec::stencil
