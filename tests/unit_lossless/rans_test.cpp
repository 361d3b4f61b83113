// The entropy coder alone: normalisation, stored tables, and symbols in and out of interleaved states.
#include "codecs/lossless/rans.h"

#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace quern::codec::lossless {
namespace {

Counts count(const std::vector<std::uint8_t>& symbols) {
  Counts counts{};
  for (const auto symbol : symbols) ++counts[symbol];
  return counts;
}

/// Encodes with kStates states, decodes, and returns the words it took.
std::size_t round_trip(const std::vector<std::uint8_t>& symbols) {
  Frequencies frequencies{};
  normalize(count(symbols), frequencies);
  EncodeTable encode_table{};
  make_encode_table(frequencies, encode_table);
  std::vector<std::uint16_t> words(symbols.size());
  std::uint16_t* const end = words.data() + words.size();
  std::uint16_t* at = end;
  std::array<std::uint32_t, kStates> states;
  states.fill(kStateFloor);
  for (std::size_t i = symbols.size(); i-- > 0;) encode_step(states[i % kStates], encode_table[symbols[i]], at);
  const auto used = static_cast<std::size_t>(end - at);

  const auto table = std::make_unique<DecodeTable>();
  make_decode_table(frequencies, *table);
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    std::uint32_t& state = states[i % kStates];
    if (decode_step(state, *table) != symbols[i]) {
      ADD_FAILURE() << "symbol " << i;
      return used;
    }
    if (state >= kStateFloor) continue;
    if (at == end) {
      ADD_FAILURE() << "words end at symbol " << i;
      return used;
    }
    state = state << 16 | *at++;
  }
  EXPECT_EQ(at, end);
  for (const auto state : states) EXPECT_EQ(state, kStateFloor);
  return used;
}

TEST(Rans, RoundTrip_SingleSymbol_TakesNoWords) { EXPECT_EQ(round_trip(std::vector<std::uint8_t>(10000, 77)), 0u); }

TEST(Rans, RoundTrip_Uniform_TakesAboutOneByteASymbol) {
  std::mt19937 random(1);
  std::vector<std::uint8_t> symbols(100000);
  for (auto& symbol : symbols) symbol = static_cast<std::uint8_t>(random());
  EXPECT_NEAR(static_cast<double>(2 * round_trip(symbols)), 100000.0, 1000.0);
}

TEST(Rans, RoundTrip_Skewed_IsNearItsEntropy) {
  std::mt19937 random(2);
  std::vector<std::uint8_t> symbols(200000);
  for (auto& symbol : symbols) {
    // Geometric with ratio 1/2: an entropy of 2 bits.
    while (random() % 2 != 0 && symbol < 200) ++symbol;
  }
  EXPECT_NEAR(static_cast<double>(16 * round_trip(symbols)), 400000.0, 4000.0);
}

TEST(Rans, RoundTrip_OneRareSymbol_ComesBack) {
  std::vector<std::uint8_t> symbols(50000, 3);
  symbols[49999] = 255;
  symbols[0] = 0;
  EXPECT_LT(round_trip(symbols), 20u);
}

TEST(Rans, RoundTrip_EveryFrequency_DividesExactly) {
  // Two symbols at every split, each over a long run of states.
  std::mt19937 random(9);
  for (std::uint32_t first = 1; first < kFrequencySum; first += 37) {
    std::vector<std::uint8_t> symbols(600);
    for (auto& symbol : symbols) symbol = random() % kFrequencySum < first ? 0 : 1;
    round_trip(symbols);
  }
}

TEST(Rans, Normalize_AnyCounts_KeepsEverySymbolAndTheSum) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    Counts counts{};
    const auto symbols = static_cast<unsigned>(1 + random() % 256);
    for (unsigned s = 0; s < symbols; ++s) {
      counts[random() % 256] += static_cast<std::uint32_t>(1 + (random() % 8 == 0 ? random() % 1000000 : 0));
    }
    Frequencies frequencies{};
    normalize(counts, frequencies);
    EXPECT_EQ(std::accumulate(frequencies.begin(), frequencies.end(), 0u), kFrequencySum) << "seed 3, round " << round;
    for (std::size_t s = 0; s < 256; ++s) EXPECT_EQ(counts[s] > 0, frequencies[s] > 0) << "seed 3, round " << round;
  }
}

TEST(Rans, Table_StoredAndRead_IsTheSame) {
  std::mt19937 random(4);
  for (int round = 0; round < 300; ++round) {
    Counts counts{};
    const auto symbols = static_cast<unsigned>(1 + random() % 64);
    for (unsigned s = 0; s < symbols; ++s) {
      counts[random() % 256] += static_cast<std::uint32_t>(1 + random() % 5000);
    }
    Frequencies frequencies{};
    normalize(counts, frequencies);
    std::vector<std::uint8_t> bytes(4096);
    BitWriter writer(bytes.data());
    write_table(frequencies, writer);
    BitReader reader(bytes.data(), writer.finish());
    Frequencies back{};
    ASSERT_TRUE(read_table(reader, 255, back)) << "seed 4, round " << round;
    EXPECT_EQ(back, frequencies) << "seed 4, round " << round;
  }
}

TEST(Rans, ReadTable_RandomBytes_IsRefusedOrComplete) {
  std::mt19937 random(5);
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::uint8_t> bytes(random() % 64);
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random());
    BitReader reader(bytes.data(), bytes.size());
    Frequencies frequencies{};
    const auto last = static_cast<unsigned>(random() % 256);
    if (!read_table(reader, last, frequencies)) continue;
    ++accepted;
    EXPECT_EQ(std::accumulate(frequencies.begin(), frequencies.end(), 0u), kFrequencySum);
    for (std::size_t s = last + 1; s < 256; ++s) EXPECT_EQ(frequencies[s], 0);
  }
  EXPECT_GT(accepted, 0);
}

TEST(Rans, EntropyCost_UniformCounts_IsExact) {
  Counts counts{};
  for (std::size_t s = 0; s < 16; ++s) counts[s] = 1000;
  EXPECT_NEAR(static_cast<double>(entropy_cost(counts)) / 4096, 64000.0, 64.0);
  EXPECT_EQ(entropy_cost(Counts{}), 0u);
}

}  // namespace
}  // namespace quern::codec::lossless
