// Decoding kernels: every instruction set decodes what decode_residual decodes stream by stream, whatever the bytes
// are, and touches nothing behind what it was given.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "kernels/entropy/cpu/residual_kernels.h"
#include "kernels/entropy/token_table.h"
#include "tests/support/guarded.h"
#include "tests/support/instrumented.h"
#include "tests/unit_coding/instruction_sets.h"

namespace quern::coding {
namespace {

using quern::testing::Guarded;
using test::for_instruction_sets;

struct Tables {
  static constexpr std::size_t kMostlyZero = 12;
  std::vector<kernels::TokenTable> tables{kernels::kContextBins};
  std::array<const kernels::TokenTable*, kernels::kContextBins> serving{};

  /// Some bins share a table; tails are long enough for residuals of all sizes.
  explicit Tables(std::mt19937_64& random) {
    for (std::size_t b = 0; b < kernels::kContextBins; ++b) {
      kernels::TokenDistribution bin;
      bin.tokens = b == 5 ? 1 : static_cast<std::uint8_t>(2 + random() % (kernels::kResidualTokens - 1));
      bin.shape = static_cast<std::uint8_t>(random() % kernels::kTailExponents.size());
      bin.scale = static_cast<std::uint8_t>(random() % 256);
      bin.zero = static_cast<std::uint16_t>(1 + random() % (kernels::kFrequencySum - bin.tokens));
      if (b == kMostlyZero) bin.zero = static_cast<std::uint16_t>(kernels::kFrequencySum - bin.tokens - 300);
      tables[b].fill(bin);
      serving[b] = &tables[b % 3 == 0 ? b : b / 2];
    }
  }
};

struct StreamBytes {
  std::unique_ptr<Guarded<std::uint8_t>> bytes;
  std::vector<kernels::RansSource> sources;

  StreamBytes(std::mt19937_64& random, std::size_t streams, std::size_t words) {
    std::vector<std::size_t> sizes(streams);
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

TEST(Coding_DecodeKernels, ResidualsOfAnyBytes_AreThoseOfOneStreamAfterTheOther) {
  std::mt19937_64 random(61);
  const Tables tables(random);
  const kernels::ResidualTables by_bin(tables.tables.data(), tables.serving);
  const int rounds = quern::testing::kInstrumented ? 60 : 400;
  std::size_t large = 0;
  std::size_t failed = 0;
  for (int round = 0; round < rounds; ++round) {
    const std::size_t streams = std::size_t{1} << (round % 6);
    const StreamBytes bytes(random, streams, round % 7 == 0 ? 3 : 60);
    const std::size_t count = 1 + random() % 150;
    const std::size_t first = random() % 1000;
    // Rounds where zeros are rare, where most are zero, and where all bins occur.
    const Guarded<std::uint8_t> bins(count, round % 4 < 2);
    for (auto& c : bins.span()) {
      c = static_cast<std::uint8_t>(round % 3 == 0 ? 5 : random() % kernels::kContextBins);
      if (round % 3 == 0 && random() % 20 == 0) c = 9;
      if (round % 5 == 0) c = Tables::kMostlyZero;
      if (round % 2 == 0 && random() % 5 == 0) c = kernels::kNoContextBin;
    }
    std::vector<kernels::RansSource> expected = bytes.sources;
    std::vector<std::int32_t> codes(count, 0);
    for (std::size_t x = 0; x < count; ++x) {
      if (bins[x] == kernels::kNoContextBin) continue;
      codes[x] = static_cast<std::int32_t>(
          kernels::decode_residual(expected[(first + x) & (streams - 1)], *tables.serving[bins[x]]));
      large += std::abs(codes[x]) >= 1 << 16 ? 1 : 0;
    }
    for_instruction_sets([&](const kernels::ResidualKernels& k) {
      kernels::DecodeStreams state(bytes.sources);
      const Guarded<std::int32_t> taken(count, round % 4 < 2);
      k.decode_residuals(state, by_bin, bins.data(), count, first, taken.data());
      ASSERT_EQ(std::vector<std::int32_t>(taken.span().begin(), taken.span().end()), codes) << "round " << round;
      for (std::size_t stream = 0; stream < streams; ++stream) {
        const kernels::RansSource left = state.source(stream);
        ASSERT_EQ(left.state, expected[stream].state) << stream;
        ASSERT_EQ(left.at, expected[stream].at) << stream;
        ASSERT_EQ(left.failed, expected[stream].failed) << stream;
      }
    });
    for (const kernels::RansSource& source : expected) failed += source.failed ? 1 : 0;
  }
  EXPECT_GT(large, 20u);
  EXPECT_GT(failed, 20u);
}

TEST(Coding_DecodeKernels, FrequenciesOfZero_AreThoseOfTheBin) {
  std::mt19937_64 random(62);
  const Tables tables(random);
  const kernels::ResidualTables by_bin(tables.tables.data(), tables.serving);
  for (const std::size_t count : {1, 31, 32, 63, 64, 65, 200}) {
    const Guarded<std::uint32_t> sums(count, true);
    for (auto& s : sums.span()) s = static_cast<std::uint32_t>(random() >> (32 + random() % 32));
    for_instruction_sets([&](const kernels::ResidualKernels& k) {
      const Guarded<std::uint16_t> zeros(count, true);
      k.zero_frequencies(sums.data(), by_bin, count, zeros.data());
      for (std::size_t x = 0; x < count; ++x)
        ASSERT_EQ(zeros[x], tables.serving[kernels::context_bin(sums[x])]->starts[1]);
    });
  }
}

}  // namespace
}  // namespace quern::coding
