// Encoding kernels: every instruction set writes the words that encode_residual writes stream by stream, whatever the
// tables and symbols are, and touches nothing outside of what it was given.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <vector>

#include "coding/token_tables.h"
#include "kernels/entropy/cpu/residual_kernels.h"
#include "tests/support/guarded.h"
#include "tests/support/instrumented.h"
#include "tests/unit_coding/instruction_sets.h"

namespace quern::coding {
namespace {

using quern::testing::Guarded;
using test::for_instruction_sets;

/// Entries of symbols as fitted distributions have them, or of any frequency there may be.
class Entries {
 public:
  Entries(std::mt19937_64& random, bool fitted) : entries_(kernels::kResidualSymbols), packed_(entries_.size()) {
    if (fitted) {
      Distributions distributions{};
      for (kernels::TokenDistribution& level : distributions) {
        level.tokens = static_cast<std::uint8_t>(kernels::kResidualTokens);
        level.shape = static_cast<std::uint8_t>(random() % kernels::kTailExponents.size());
        level.scale = static_cast<std::uint8_t>(random() % 256);
        level.zero = static_cast<std::uint16_t>(1 + random() % (kernels::kFrequencySum - level.tokens));
      }
      fill_token_entries(distributions, view());
      return;
    }
    for (std::size_t s = 0; s < entries_.size(); ++s) {
      // Often a power of two, one beside it, or one of the ends.
      std::uint32_t frequency = 1 + static_cast<std::uint32_t>(random() % kernels::kFrequencySum);
      if (random() % 2 == 0) frequency = (1u << (random() % 16)) + static_cast<std::uint32_t>(random() % 3) - 1;
      frequency = std::clamp(frequency, 1u, kernels::kFrequencySum);
      view().set(s, frequency, static_cast<std::uint32_t>(random() % (kernels::kFrequencySum - frequency + 1)));
    }
  }
  kernels::ResidualEntries view() { return {entries_.data(), packed_.data()}; }

 private:
  std::vector<kernels::RansEncodeEntry> entries_;
  std::vector<std::uint32_t> packed_;
};

/// Residuals of every size, between pages that nobody may touch.
struct Residuals {
  Guarded<std::uint16_t> symbols;
  Guarded<std::int32_t> codes;

  Residuals(std::mt19937_64& random, std::size_t count, int kind, bool at_end)
      : symbols(count, at_end), codes(count, at_end) {
    for (std::size_t i = 0; i < count; ++i) {
      // Only zeros and ones, small ones, up to 16 open bits, or all.
      const unsigned bits = kind == 0 ? 1 : kind == 1 ? 4 : kind == 2 ? 18 : kernels::kMaxMagnitudeBits;
      const auto magnitude = static_cast<std::uint32_t>(random() & ((1u << (random() % (bits + 1))) - 1));
      codes[i] = random() % 2 == 0 ? static_cast<std::int32_t>(magnitude) : -static_cast<std::int32_t>(magnitude);
      symbols[i] = static_cast<std::uint16_t>(random() % kernels::kContextBins * kernels::kTokenStride +
                                              kernels::token_of(magnitude));
      if (kind % 2 == 1 && random() % 4 == 0) symbols[i] = kernels::kNoSymbol;
    }
  }
};

/// Streams with as much room as `elems` residuals each may take and one word more, each with a canary below.
class Room {
 public:
  static constexpr std::uint16_t kCanary = 0xC0DE;

  Room(std::mt19937_64& random, std::size_t count, std::size_t elems) : share_(elems * kernels::kResidualWords + 2) {
    words_.assign(count * share_, kCanary);
    streams.mask = count - 1;
    for (std::size_t stream = 0; stream < count; ++stream) {
      streams.states[stream] = static_cast<std::uint32_t>(random()) | kernels::kRansFloor;
      if (random() % 4 == 0) streams.states[stream] = random() % 2 == 0 ? kernels::kRansFloor : UINT32_MAX;
      streams.at[stream] = words_.data() + (stream + 1) * share_;
    }
  }
  Room(const Room& other) : streams(other.streams), share_(other.share_), words_(other.words_) {
    for (std::size_t stream = 0; stream <= streams.mask; ++stream)
      streams.at[stream] = words_.data() + (stream + 1) * share_;
  }
  Room& operator=(const Room&) = delete;

  void expect(const Room& other) const {
    for (std::size_t stream = 0; stream <= streams.mask; ++stream) {
      ASSERT_EQ(streams.states[stream], other.streams.states[stream]) << "stream " << stream;
      ASSERT_EQ(streams.at[stream] - words_.data(), other.streams.at[stream] - other.words_.data())
          << "stream " << stream;
      const std::uint16_t* const end = words_.data() + (stream + 1) * share_;
      const std::uint16_t* const others = other.streams.at[stream];
      for (const std::uint16_t* word = streams.at[stream]; word != end; ++word)
        ASSERT_EQ(*word, others[word - streams.at[stream]]) << "stream " << stream;
      ASSERT_EQ(words_[stream * share_], kCanary) << "stream " << stream;
    }
  }
  void put_one(std::size_t stream, const kernels::ResidualEntries& entries, std::uint16_t symbol, std::int32_t code) {
    if (symbol == kernels::kNoSymbol) return;
    kernels::encode_residual(streams.states[stream], code, symbol % kernels::kTokenStride, entries.entries[symbol],
                             streams.at[stream]);
  }

  kernels::EncodeStreams streams;

 private:
  std::size_t share_;
  std::vector<std::uint16_t> words_;
};

TEST(Coding_EncodeKernels, ResidualsOfAnyTables_WordsOfOneStreamAfterTheOther) {
  std::mt19937_64 random(91);
  const int rounds = quern::testing::kInstrumented ? 80 : 600;
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE(round);
    Entries tables(random, round % 2 == 0);
    const std::size_t streams = std::size_t{1} << (round % 6);
    const std::size_t count = round % 9 == 0 ? 1 + random() % 20 : 1 + random() % 3000;
    const std::size_t first = random() % 1000;
    const Residuals residuals(random, count, round / 6 % 4, round % 4 < 2);
    const Room before(random, streams, count / streams + 1);
    Room expected(before);
    for (std::size_t x = count; x-- > 0;)
      expected.put_one((first + x) & (streams - 1), tables.view(), residuals.symbols[x], residuals.codes[x]);
    for_instruction_sets([&](const kernels::ResidualKernels& k) {
      Room room(before);
      k.encode_residuals(room.streams, tables.view(), residuals.symbols.data(), residuals.codes.data(), count, first);
      room.expect(expected);
    });
    if (HasFatalFailure()) return;
  }
}

TEST(Coding_EncodeKernels, RowsOfAnyLengths_WordsOfOneStreamAfterTheOther) {
  std::mt19937_64 random(92);
  const int rounds = quern::testing::kInstrumented ? 60 : 400;
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE(round);
    Entries tables(random, round % 2 == 0);
    const std::size_t streams = std::size_t{1} << (round % 6);
    const std::size_t most = round % 5 == 0 ? 20 : 150;
    // Rows of one length, of any, and gaps between them.
    kernels::StreamRows rows;
    std::uint32_t end = 0;
    for (std::size_t stream = 0; stream < streams; ++stream) {
      rows.begin[stream] = end + static_cast<std::uint32_t>(round % 3 == 2 ? random() % 40 : 0);
      rows.end[stream] = rows.begin[stream] + static_cast<std::uint32_t>(round % 3 == 0 ? most : random() % (most + 1));
      end = rows.end[stream];
    }
    const Residuals residuals(random, end + 1, round / 6 % 4, round % 4 < 2);
    const Room before(random, streams, most);
    Room expected(before);
    for (std::size_t stream = 0; stream < streams; ++stream)
      for (std::size_t x = rows.end[stream]; x-- > rows.begin[stream];)
        expected.put_one(stream, tables.view(), residuals.symbols[x], residuals.codes[x]);
    for_instruction_sets([&](const kernels::ResidualKernels& k) {
      Room room(before);
      k.encode_rows(room.streams, tables.view(), residuals.symbols.data(), residuals.codes.data(), rows);
      room.expect(expected);
    });
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace quern::coding
