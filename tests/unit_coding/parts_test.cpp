// What residual coding is made of: frequencies, tokens, rANS steps, symbols, and the stored form of formats and
// distributions.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "coding/distributions.h"
#include "coding/value_format.h"
#include "kernels/entropy/rans.h"
#include "kernels/entropy/residual_tokens.h"
#include "tests/unit_coding/instruction_sets.h"

namespace quern::coding {
namespace {

using kernels::TokenDistribution;

TEST(Coding_Distributions, BinsWithoutOne_BorrowFromBelowElseAbove) {
  Distributions distributions{};
  distributions[9].tokens = 1;
  distributions[20].tokens = 4;
  const auto map = serving_bins(distributions);
  EXPECT_EQ(map[0], 9);
  EXPECT_EQ(map[9], 9);
  EXPECT_EQ(map[19], 9);
  EXPECT_EQ(map[20], 20);
  EXPECT_EQ(map[63], 20);
  EXPECT_EQ(serving_bins(Distributions{})[5], kernels::kContextBins);
}

TEST(Coding_Frequencies, OfEveryShapeAndScale_AreAtLeastOneAndSumUp) {
  for (unsigned shape = 0; shape < kernels::kTailExponents.size(); ++shape) {
    for (unsigned scale = 0; scale <= kernels::kMaxScale; ++scale) {
      for (const unsigned tokens : {1u, 2u, 3u, 17u, kernels::kResidualTokens}) {
        const TokenDistribution given{static_cast<std::uint8_t>(tokens), static_cast<std::uint8_t>(shape),
                                      static_cast<std::uint8_t>(scale), 20000};
        kernels::TokenStarts starts;
        kernels::fill_token_starts(given, starts);
        EXPECT_EQ(starts[0], 0u);
        EXPECT_EQ(starts[tokens], kernels::kFrequencySum);
        for (unsigned t = 0; t < tokens; ++t) ASSERT_LT(starts[t], starts[t + 1]) << shape << " " << scale << " " << t;
      }
    }
  }
}

TEST(Coding_Frequencies, OfTheTable_AreThoseTheFormatNames) {
  // Fixed for good: a table computed otherwise would decode other values.
  std::uint64_t sum = 0;
  for (std::size_t s = 0; s < kernels::detail::kTails.size(); ++s)
    for (std::size_t i = 0; i < kernels::detail::kTails[s].size(); ++i)
      sum = (sum + kernels::detail::kTails[s][i]) * UINT64_C(0x9E3779B97F4A7C15);
  EXPECT_EQ(kernels::tail_above(0, 32, 1), kernels::detail::kTails[0][6 * 16]);
  EXPECT_EQ(sum, UINT64_C(0x16AF7BCEF86DD11A));
}

TEST(Coding_Tokens, CoverEveryMagnitudeOnce) {
  std::uint32_t next = 0;
  for (unsigned t = 0; t < kernels::kResidualTokens; ++t) {
    EXPECT_EQ(kernels::token_base(t), next);
    EXPECT_EQ(kernels::token_of(next), t);
    next += 1u << kernels::token_open_bits(t);
    EXPECT_EQ(kernels::token_of(next - 1), t);
  }
  EXPECT_EQ(next, kernels::kMaxMagnitude + 1);
}

TEST(Coding_Rans, SymbolsAndPlainBits_ComeBackInOrder) {
  const TokenDistribution given{30, 5, 40, 9000};
  kernels::TokenStarts starts;
  kernels::fill_token_starts(given, starts);
  std::mt19937 random(33);
  struct Symbol {
    unsigned token, bits, count;
  };
  std::vector<Symbol> symbols(20000);
  for (Symbol& s : symbols) {
    s.token = static_cast<unsigned>(random() % 30);
    s.count = static_cast<unsigned>(1 + random() % 16);
    s.bits = static_cast<unsigned>(random()) & ((1u << s.count) - 1);
  }
  std::vector<std::uint16_t> words(3 * symbols.size());
  std::uint16_t* at = words.data() + words.size();
  std::uint32_t state = kernels::kRansFloor;
  for (std::size_t i = symbols.size(); i-- > 0;) {
    const Symbol& s = symbols[i];
    kernels::rans_encode_plain(state, s.bits, s.count, at);
    const auto frequency = std::uint32_t{starts[s.token + 1]} - starts[s.token];
    kernels::rans_encode<15>(state, kernels::make_rans_entry(frequency, starts[s.token]), at);
  }
  kernels::RansSource source{reinterpret_cast<const std::uint8_t*>(at),
                             reinterpret_cast<const std::uint8_t*>(words.data() + words.size()), state, false};
  for (const Symbol& s : symbols) {
    const std::uint32_t slot = source.state & 32767;
    unsigned token = 0;
    while (slot >= starts[token + 1]) ++token;
    ASSERT_EQ(token, s.token);
    source.state = (std::uint32_t{starts[token + 1]} - starts[token]) * (source.state >> 15) + slot - starts[token];
    source.refill();
    ASSERT_EQ(source.take_plain(s.count), s.bits);
  }
  EXPECT_TRUE(source.finished());
}

TEST(Coding_Symbols, EveryInstructionSet_IsBinTimesStrideAndToken) {
  std::mt19937_64 random(35);
  constexpr std::size_t kRoom = 96;
  std::array<std::uint32_t, kRoom> sums{};
  std::array<std::int32_t, kRoom> codes{};
  for (std::size_t x = 0; x < kRoom; ++x) {
    sums[x] = static_cast<std::uint32_t>(random() >> (32 + x % 32));
    const auto magnitude = static_cast<std::int32_t>(random() % (std::uint64_t{1} << (x % 30)));
    codes[x] = random() % 2 == 0 ? magnitude : -magnitude;
  }
  codes[7] = static_cast<std::int32_t>(kernels::kMaxMagnitude);
  codes[8] = -codes[7];
  test::for_instruction_sets([&](const kernels::ResidualKernels& k) {
    for (const std::size_t count : {1, 16, 37, 64}) {
      std::array<std::uint16_t, kRoom> symbols{};
      k.symbols(sums.data(), codes.data(), count, symbols.data());
      for (std::size_t x = 0; x < count; ++x)
        ASSERT_EQ(symbols[x], kernels::context_bin(sums[x]) * kernels::kTokenStride +
                                  kernels::token_of(kernels::magnitude_of(codes[x])));
      EXPECT_EQ(symbols[count], 0);
    }
  });
}

TEST(Coding_Distributions, WrittenAndRead_AreTheSame) {
  Distributions distributions{};
  distributions[9] = {1, 0, 0, 0};
  distributions[12] = {2, 0, 0, 31000};
  distributions[63] = {static_cast<std::uint8_t>(kernels::kResidualTokens), 7, 200, 5};
  Vector<std::uint8_t> bytes;
  BitWriter writer(bytes);
  write_distributions(distributions, writer);
  BitReader reader(bytes);
  Distributions back{};
  ASSERT_TRUE(read_distributions(reader, back).ok());
  EXPECT_FALSE(reader.failed());
  EXPECT_EQ(reader.bytes_used(), bytes.size());
  for (std::size_t b = 0; b < back.size(); ++b) {
    EXPECT_EQ(back[b].tokens, distributions[b].tokens);
    EXPECT_EQ(back[b].zero, distributions[b].zero);
    EXPECT_EQ(back[b].shape, distributions[b].shape);
    EXPECT_EQ(back[b].scale, distributions[b].scale);
  }
}

TEST(Coding_Distributions, NumbersOutOfRange_AreRefused) {
  struct Stored {
    unsigned tokens, zero;
  };
  for (const Stored bad : {Stored{kernels::kResidualTokens + 1, 5}, Stored{5, 0}, Stored{5, 32765}}) {
    Vector<std::uint8_t> bytes;
    BitWriter writer(bytes);
    writer.put(4, 6);
    writer.put(4, 6);
    writer.put(bad.tokens, 7);
    writer.put(bad.zero, 15);
    writer.put(0, 11);
    BitReader reader(bytes);
    Distributions back{};
    EXPECT_EQ(read_distributions(reader, back).code(), StatusCode::corrupt) << bad.tokens << " " << bad.zero;
  }
}

TEST(Coding_ValueFormat, WrittenAndRead_IsTheSame) {
  const ValueFormat format{short_double(-273.15), short_double(0.0123), 9};
  Vector<std::uint8_t> bytes;
  BitWriter writer(bytes);
  write_value_format(format, writer);
  BitReader reader(bytes);
  ValueFormat back;
  ASSERT_TRUE(read_value_format(reader, back));
  EXPECT_EQ(back.base, format.base);
  EXPECT_EQ(back.step, format.step);
  EXPECT_EQ(back.fraction_bits, 9u);
  EXPECT_EQ(back.unit(), std::ldexp(format.step, -9));
}

TEST(Coding_ValueFormat, NumbersOutOfRange_AreRefused) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const ValueFormat bad : {ValueFormat{infinity, 1, 0}, ValueFormat{0, infinity, 0}, ValueFormat{0, 0, 0},
                                ValueFormat{0, -1, 0}, ValueFormat{0, 1, kMaxFractionBits + 1}}) {
    Vector<std::uint8_t> bytes;
    BitWriter writer(bytes);
    write_value_format(bad, writer);
    BitReader reader(bytes);
    ValueFormat back;
    EXPECT_FALSE(read_value_format(reader, back)) << bad.base << " " << bad.step << " " << bad.fraction_bits;
  }
}

}  // namespace
}  // namespace quern::coding
