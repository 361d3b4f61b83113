// Kernels of the encoder that put residuals: every instruction set writes the words that put_symbol writes lane by
// lane, whatever the tables and symbols are, and touches nothing outside of what it was given.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <vector>

#include "codecs/stencil/model/model.h"
#include "codecs/stencil/model/residual_symbols.h"
#include "codecs/stencil/model/token_tables.h"
#include "kernels/stencil/cpu/stencil.h"
#include "tests/support/instrumented.h"
#include "tests/unit_stencil/guarded.h"
#include "tests/unit_stencil/instruction_sets.h"

namespace quern::codec::stencil {
namespace {

using test::for_instruction_sets;
using test::Guarded;

/// Entries of symbols as fitted distributions have them, or of any frequency there may be.
class Entries {
 public:
  Entries(std::mt19937_64& random, bool fitted) : entries_(kernels::kResidualSymbols), packed_(entries_.size()) {
    if (fitted) {
      ChunkModel model;
      for (kernels::ResidualModel& level : model.levels) {
        level.tokens = static_cast<std::uint8_t>(kernels::kResidualTokens);
        level.shape = static_cast<std::uint8_t>(random() % kernels::kTailExponents.size());
        level.scale = static_cast<std::uint8_t>(random() % 256);
        level.zero = static_cast<std::uint16_t>(1 + random() % (kernels::kFrequencySum - level.tokens));
      }
      fill_token_entries(model, view());
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
  ResidualEntries view() { return {entries_.data(), packed_.data()}; }

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
      symbols[i] =
          static_cast<std::uint16_t>(random() % kernels::kResidualLevels * kTokenPlaces + kernels::token_of(magnitude));
      if (kind % 2 == 1 && random() % 4 == 0) symbols[i] = kNoSymbol;
    }
  }
};

/// Lanes with as much room as `elems` residuals each may take and one word more, each with a canary below.
class Room {
 public:
  static constexpr std::uint16_t kCanary = 0xC0DE;

  Room(std::mt19937_64& random, std::size_t lanes, std::size_t elems) : share_(elems * kResidualWords + 2) {
    words_.assign(lanes * share_, kCanary);
    put.mask = lanes - 1;
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      put.states[lane] = static_cast<std::uint32_t>(random()) | kernels::kRansFloor;
      if (random() % 4 == 0) put.states[lane] = random() % 2 == 0 ? kernels::kRansFloor : UINT32_MAX;
      put.at[lane] = words_.data() + (lane + 1) * share_;
    }
  }
  Room(const Room& other) : put(other.put), share_(other.share_), words_(other.words_) {
    for (std::size_t lane = 0; lane <= put.mask; ++lane) put.at[lane] = words_.data() + (lane + 1) * share_;
  }
  Room& operator=(const Room&) = delete;

  void expect(const Room& other) const {
    for (std::size_t lane = 0; lane <= put.mask; ++lane) {
      ASSERT_EQ(put.states[lane], other.put.states[lane]) << "lane " << lane;
      ASSERT_EQ(put.at[lane] - words_.data(), other.put.at[lane] - other.words_.data()) << "lane " << lane;
      const std::uint16_t* const end = words_.data() + (lane + 1) * share_;
      const std::uint16_t* const others = other.put.at[lane];
      for (const std::uint16_t* word = put.at[lane]; word != end; ++word)
        ASSERT_EQ(*word, others[word - put.at[lane]]) << "lane " << lane;
      ASSERT_EQ(words_[lane * share_], kCanary) << "lane " << lane;
    }
  }
  void put_one(std::size_t lane, const ResidualEntries& entries, std::uint16_t symbol, std::int32_t code) {
    if (symbol == kNoSymbol) return;
    put_symbol(put.states[lane], code, symbol % kTokenPlaces, entries.entries[symbol], put.at[lane]);
  }

  kernels::PutLanes put;

 private:
  std::size_t share_;
  std::vector<std::uint16_t> words_;
};

TEST(Stencil_EncodeKernels, ResidualsOfAnyTables_WordsOfOneLaneAfterTheOther) {
  std::mt19937_64 random(91);
  const int rounds = quern::testing::kInstrumented ? 80 : 600;
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE(round);
    Entries tables(random, round % 2 == 0);
    const std::size_t lanes = std::size_t{1} << (round % 6);
    const std::size_t count = round % 9 == 0 ? 1 + random() % 20 : 1 + random() % 3000;
    const std::size_t first = random() % 1000;
    const Residuals residuals(random, count, round / 6 % 4, round % 4 < 2);
    const Room before(random, lanes, count / lanes + 1);
    Room expected(before);
    for (std::size_t x = count; x-- > 0;)
      expected.put_one((first + x) & (lanes - 1), tables.view(), residuals.symbols[x], residuals.codes[x]);
    for_instruction_sets([&](const kernels::StencilKernels& all) {
      const kernels::StencilEncodeKernels& k = all.encode;
      Room room(before);
      k.put_residuals(room.put, tables.view(), residuals.symbols.data(), residuals.codes.data(), count, first);
      room.expect(expected);
    });
    if (HasFatalFailure()) return;
  }
}

TEST(Stencil_EncodeKernels, RowsOfAnyLengths_WordsOfOneLaneAfterTheOther) {
  std::mt19937_64 random(92);
  const int rounds = quern::testing::kInstrumented ? 60 : 400;
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE(round);
    Entries tables(random, round % 2 == 0);
    const std::size_t lanes = std::size_t{1} << (round % 6);
    const std::size_t most = round % 5 == 0 ? 20 : 150;
    // Rows of one length, of any, and gaps between them.
    kernels::PutRows rows;
    std::uint32_t end = 0;
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      rows.begin[lane] = end + static_cast<std::uint32_t>(round % 3 == 2 ? random() % 40 : 0);
      rows.end[lane] = rows.begin[lane] + static_cast<std::uint32_t>(round % 3 == 0 ? most : random() % (most + 1));
      end = rows.end[lane];
    }
    const Residuals residuals(random, end + 1, round / 6 % 4, round % 4 < 2);
    const Room before(random, lanes, most);
    Room expected(before);
    for (std::size_t lane = 0; lane < lanes; ++lane)
      for (std::size_t x = rows.end[lane]; x-- > rows.begin[lane];)
        expected.put_one(lane, tables.view(), residuals.symbols[x], residuals.codes[x]);
    for_instruction_sets([&](const kernels::StencilKernels& all) {
      const kernels::StencilEncodeKernels& k = all.encode;
      Room room(before);
      k.put_rows(room.put, tables.view(), residuals.symbols.data(), residuals.codes.data(), rows);
      room.expect(expected);
    });
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace quern::codec::stencil
