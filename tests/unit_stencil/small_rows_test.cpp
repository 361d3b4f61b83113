// Kernels of rows of small values, whose sums fit 32 bits: what those of narrow values give, up to the last value that
// is small.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "codecs/stencil/levels/grid.h"
#include "codecs/stencil/levels/small_values.h"
#include "codecs/stencil/levels/value_format.h"
#include "kernels/entropy/residual_tokens.h"
#include "kernels/stencil/cpu/stencil.h"
#include "libcompress/core/arena.h"
#include "tests/unit_stencil/helpers.h"
#include "tests/unit_stencil/instruction_sets.h"
#include "tests/unit_stencil/row_sources.h"

namespace quern::codec::stencil {
namespace {

using test::expect_untouched;
using test::for_instruction_sets;
using test::kBegin;
using test::kCounts;
using test::kRoom;
using test::Numbers;
using NarrowSources = test::Sources<std::int32_t>;

void check_predictions(const NarrowSources& sources) {
  for_instruction_sets([&](const kernels::StencilKernels& k) {
    for (const std::size_t count : kCounts) {
      std::array<std::int32_t, kRoom> predicted{};
      std::array<std::uint8_t, kRoom> levels{};
      predicted.fill(-7);
      levels.fill(200);
      k.rows.small.predict(sources.view, kBegin, count, predicted.data(), levels.data());
      for (std::size_t x = 0; x < count; ++x) {
        ASSERT_EQ(predicted[x], sources.predicted(x)) << x;
        ASSERT_EQ(levels[x], kernels::context_bin(sources.context(x, predicted[x]))) << x;
      }
      expect_untouched<std::int32_t>(predicted, count, -7);
      expect_untouched<std::uint8_t>(levels, count, 200);
    }
  });
}

TEST(Stencil_SmallRows, Predictions_AreThoseOfPlainLoops) {
  for (const std::size_t taps : {0u, 1u, 2u, 3u, 5u, 7u}) {
    Numbers numbers(81);
    check_predictions(NarrowSources(numbers, taps, 12));
  }
}

/// Sums as large as they may be, of either sign, whatever the sums of their parts are.
TEST(Stencil_SmallRows, LargestSums_AreExact) {
  for (const unsigned weight_bits : {12u, 14u, 16u}) {
    for (const std::int32_t sign : {1, -1}) {
      Numbers numbers(82);
      NarrowSources sources(numbers, 4, 12);
      LevelsValueFormat format;
      format.weight_bits = weight_bits;
      SmallValues<std::int32_t> small;
      small.start(format);
      const auto limit = static_cast<std::int32_t>(small.limit());
      const double most = (2147483647.0 - (1u << (weight_bits - 1))) / limit;
      const double whole = static_cast<double>(static_cast<std::int64_t>(most));
      ASSERT_TRUE(small.sums_fit(whole, weight_bits));
      ASSERT_FALSE(small.sums_fit(whole + 1, weight_bits));
      sources.view.weight_bits = weight_bits;
      sources.view.pair_count = 1;
      sources.weights = {100, 100, -(whole - 210), 10};
      for (std::size_t x = 0; x < kRoom; ++x) {
        for (std::size_t t = 0; t < 4; ++t) {
          const bool up = (sources.weights[t] > 0) == (sign > 0);
          sources.values[t][x] = x % 3 == 0 ? 0 : up ? limit - 1 : -limit;
        }
      }
      check_predictions(sources);
    }
  }
}

TEST(Stencil_SmallRows, Reconstruction_IsThatOfNarrowValues) {
  constexpr std::int64_t kQuantum = 1024;
  constexpr std::uint32_t kLimit = 1u << 17;
  Numbers numbers(83);
  std::array<std::int32_t, kRoom> predicted{};
  std::array<std::int64_t, kRoom> wide{};
  std::array<std::int32_t, kRoom> codes{};
  for (std::size_t x = 0; x < kRoom; ++x) {
    wide[x] = predicted[x] = static_cast<std::int32_t>(numbers.within(kLimit / 2));
    codes[x] = static_cast<std::int32_t>(numbers.within(x % 3 == 0 ? 60 : 1));
  }
  for_instruction_sets([&](const kernels::StencilKernels& k) {
    for (const std::size_t count : kCounts) {
      std::array<std::int32_t, kRoom> values{};
      std::array<std::uint16_t, kRoom> magnitudes{};
      std::array<std::int32_t, kRoom> narrow_values{};
      std::array<std::uint16_t, kRoom> narrow_magnitudes{};
      ASSERT_TRUE(k.rows.small.reconstruct(predicted.data(), codes.data(), kQuantum, kLimit, count, values.data(),
                                           magnitudes.data()));
      ASSERT_TRUE(k.rows.narrow.reconstruct(wide.data(), codes.data(), kQuantum, 40, count, narrow_values.data(),
                                            narrow_magnitudes.data()));
      for (std::size_t x = 0; x < count; ++x) {
        ASSERT_EQ(values[x], narrow_values[x]);
        ASSERT_EQ(magnitudes[x], narrow_magnitudes[x]);
      }
      expect_untouched(values, count, 0);
      expect_untouched<std::uint16_t>(magnitudes, count, 0);
    }
  });
}

/// Each column may have one, before the row's end or behind it; sums modulo 2^32 may be small again.
TEST(Stencil_SmallRows, ValuesThatAreNotSmall_AreRefusedInAnyColumn) {
  constexpr std::uint32_t kLimit = 1u << 17;
  constexpr std::int32_t kEdge = kLimit;
  struct Case {
    std::int32_t predicted;
    std::int32_t code;
    std::int64_t quantum;
    bool kept;
  };
  constexpr Case kCases[] = {
      {kEdge - 1, 0, 1024, true},
      {kEdge, 0, 1024, false},
      {-kEdge, 0, 1024, true},
      {-kEdge - 1, 0, 1024, false},
      {0, 1 << 22, 1024, false},
      {5, -(1 << 22), 1024, false},
      {0, 1 << 29, 8, false},
      {0, 127, 1024, true},
      {0, 128, 1024, false},
      {0, -128, 1024, true},
      {kEdge, -1, 1, true},
      {0, 1 << 30, 4, false},
      {7, std::numeric_limits<std::int32_t>::min(), 2, false},
      {7, std::numeric_limits<std::int32_t>::min(), 1, false},
      {0, (1 << 29) - 1, 832, false},
  };
  for_instruction_sets([&](const kernels::StencilKernels& k) {
    for (const Case& c : kCases) {
      for (std::size_t column = 0; column < 40; ++column) {
        std::array<std::int32_t, kRoom> predicted{};
        std::array<std::int32_t, kRoom> codes{};
        std::array<std::int32_t, kRoom> values{};
        std::array<std::uint16_t, kRoom> magnitudes{};
        predicted[column] = c.predicted;
        codes[column] = c.code;
        for (const std::size_t count : {37, 40})
          ASSERT_EQ(k.rows.small.reconstruct(predicted.data(), codes.data(), c.quantum, kLimit, count, values.data(),
                                             magnitudes.data()),
                    c.kept || column >= count)
              << c.predicted << " + " << c.code << " * " << c.quantum << " in column " << column;
      }
    }
  });
}

TEST(Stencil_SmallRows, Codes_AreThoseOfNarrowValues) {
  constexpr double kBase = 17.25;
  constexpr double kUnit = 0.125;
  constexpr std::int64_t kLimit = 1 << 17;
  Numbers numbers(84);
  const NarrowSources sources(numbers, NarrowSources::kTaps, 12);
  std::array<double, kRoom> originals{};
  for (double& v : originals) v = kBase + static_cast<double>(numbers.within(kLimit - 1)) * kUnit / 2;
  for_instruction_sets([&](const kernels::StencilKernels& k) {
    for (const double strict : {0.0, 3.0}) {
      for (const bool single : {false, true}) {
        for (const std::size_t count : kCounts) {
          struct Coded {
            std::array<std::int32_t, kRoom> values{};
            std::array<std::uint16_t, kRoom> magnitudes{};
            std::array<std::int32_t, kRoom> codes{};
            kernels::CodedRowResult result;
          };
          const auto code = [&](const auto& kernel, Coded& to, std::int64_t limit) {
            to.result = kernel(sources.view, kBegin, count,
                               {originals.data(), kBase, 1 / kUnit, 52, kernels::kMaxMagnitude, 1000, to.values.data(),
                                to.magnitudes.data(), to.codes.data(), strict, kUnit, single, limit});
          };
          Coded small;
          Coded narrow;
          code(k.rows.small.code, small, kLimit);
          code(k.rows.narrow.code, narrow, kernels::kMostNarrow);
          ASSERT_EQ(small.result.kept, narrow.result.kept);
          ASSERT_TRUE(small.result.narrow);
          for (std::size_t x = 0; x < kRoom; ++x) {
            ASSERT_EQ(small.values[x], narrow.values[x]) << x;
            ASSERT_EQ(small.codes[x], narrow.codes[x]) << x;
            ASSERT_EQ(small.magnitudes[x], narrow.magnitudes[x]) << x;
          }
        }
      }
    }
  });
}

TEST(Stencil_SmallRows, OriginalsThatAreNotSmall_AreToldOfInAnyColumn) {
  constexpr std::int64_t kLimit = 1 << 12;
  Numbers numbers(85);
  NarrowSources sources(numbers, 0, 12);
  for_instruction_sets([&](const kernels::StencilKernels& k) {
    for (const double original : {4097.0, -4097.0, 1e30, std::numeric_limits<double>::quiet_NaN()}) {
      for (std::size_t column = 0; column < 48; ++column) {
        std::array<double, kRoom> originals{};
        std::array<std::int32_t, kRoom> values{};
        std::array<std::uint16_t, kRoom> magnitudes{};
        std::array<std::int32_t, kRoom> codes{};
        originals[column] = original;
        for (const std::size_t count : {37, 48})
          ASSERT_EQ(k.rows.small
                        .code(sources.view, kBegin, count,
                              {originals.data(), 0, 1, 1, kernels::kMaxMagnitude, 1000, values.data(),
                               magnitudes.data(), codes.data(), 0, 1, false, kLimit})
                        .narrow,
                    column >= count);
      }
    }
  });
}

TEST(Stencil_SmallValues, ValuesAndHalos_EndWhatIsSmall) {
  LevelsValueFormat format;
  format.weight_bits = 12;
  format.low = -(1 << 17);
  format.high = (1 << 17) - 1;
  SmallValues<std::int32_t> small;
  EXPECT_FALSE(small) << "not started";
  small.start(format);
  ASSERT_TRUE(small);
  const std::array<std::int32_t, 3> inside{-(1 << 17), 0, (1 << 17) - 1};
  small.see(inside.data(), inside.size());
  small.see_halo(inside.data(), inside.size());
  EXPECT_TRUE(small);
  small.see_halo(1 << 17);
  EXPECT_FALSE(small);
  small.open_level();
  EXPECT_TRUE(small) << "halos are of a level";
  const std::array<std::int32_t, 2> outside{0, -(1 << 17) - 1};
  small.see_halo(outside.data(), outside.size());
  EXPECT_FALSE(small);
  small.open_level();
  small.see(outside.data(), outside.size());
  small.open_level();
  EXPECT_FALSE(small) << "values are not";
  small.start(format);
  EXPECT_TRUE(small);
  format.high = 1 << 17;
  small.start(format);
  EXPECT_FALSE(small) << "what special elements may have";
  format.high = 0;
  format.low = -(1 << 17) - 1;
  small.start(format);
  EXPECT_FALSE(small);
  SmallValues<double> wide;
  wide.start(LevelsValueFormat{});
  EXPECT_FALSE(wide);
}

/// A plane of 4 x 4 points at its finest level, where every class has two columns and two rows.
class SmallGrid {
 public:
  SmallGrid() : axes_(axes()), memory_(room() + 64), arena_(aligned()), grid_(arena_, axes_) {}
  LevelGridOf<std::int32_t>& operator*() { return grid_; }
  LevelGridOf<std::int32_t>* operator->() { return &grid_; }

  /// Opens the finest level, whose class 0 then has these values.
  void open(Border border, const std::array<std::int32_t, 4>& values) {
    const kernels::StencilRowKernels& rows = kernels::stencil_kernels(kernels::best_isa()).rows;
    LevelsValueFormat format;
    format.weight_bits = 12;
    grid_.small().start(format);
    grid_.open(2, border, rows);
    set(0, 0, {values[0], 0});
    grid_.open(1, border, rows);
    for (std::size_t c = 1; c < 4; ++c) set(c, 0, {values[c], 0});
    ASSERT_TRUE(grid_.small());
    grid_.open(0, border, rows);
  }
  /// Sets a row of a class.
  void set(std::size_t parity_class, std::size_t row, const std::array<std::int32_t, 2>& values) {
    const RowIndex index{row};
    std::copy_n(values.begin(), grid_.view(parity_class).extents[1], grid_.values(parity_class, index));
    grid_.finish_row(parity_class, grid_.values(parity_class, index), grid_.magnitudes(parity_class, index));
  }

 private:
  static LevelAxes axes() {
    LevelAxes axes;
    axes.rank = 2;
    axes.extents = {4, 4, 1, 1};
    return axes;
  }
  static std::size_t room() {
    Arena arena(nullptr);
    const LevelGridOf<std::int32_t> grid(arena, axes());
    return arena.used();
  }
  std::uint8_t* aligned() { return memory_.data() + (64 - reinterpret_cast<std::uintptr_t>(memory_.data()) % 64) % 64; }

  LevelAxes axes_;
  std::vector<std::uint8_t> memory_;
  Arena arena_;
  LevelGridOf<std::int32_t> grid_;
};

constexpr std::int32_t kHigh = (1 << 17) - 1;
constexpr std::int32_t kLow = -(1 << 17);

TEST(Stencil_SmallValues, PlacesBeyondTheBorder_AreLookedAt) {
  SmallGrid grid;
  grid.open(Border::linear, {kHigh, kHigh, kHigh, kHigh});
  EXPECT_TRUE(grid->small());
  grid.set(1, 0, {5, kHigh / 4});
  EXPECT_TRUE(grid->small());
  grid.set(1, 1, {kLow, kHigh});
  EXPECT_FALSE(grid->small()) << "beyond the end of a row";

  grid.open(Border::linear, {0, 0, 0, 0});
  grid.set(1, 0, {kLow, kLow});
  grid.set(1, 1, {kHigh, kHigh});
  EXPECT_TRUE(grid->small());
  grid->finish_run(1, {0});
  EXPECT_FALSE(grid->small()) << "beyond the end of a run";

  grid.open(Border::linear, {kLow, kHigh, kHigh, kHigh});
  EXPECT_FALSE(grid->small()) << "of points that were there before";

  grid.open(Border::mirrored, {kLow, kHigh, kHigh, kLow});
  EXPECT_TRUE(grid->small()) << "mirrored ones are as small as those inside";
}

/// Coarse halos that are not small, and values that are not before the next level: its halos must not hide those.
TEST(Stencil_SmallValues, RareLargeValues_ComeBackWithinTheBound) {
  Numbers numbers(88);
  for (unsigned trial = 0; trial < 400; ++trial) {
    const Shape shape = trial % 3 == 0 ? test::shape_of({1024}) : test::shape_of({24 + trial % 7, 33});
    std::vector<double> values(shape.elems());
    for (double& v : values) v = static_cast<double>(numbers.within(numbers() % (7 + trial) == 0 ? 32767 : 1500));
    const double bound = 40 + static_cast<double>(trial % 11) * 10;
    for (const char* layout : {"levels", "planes"}) {
      const test::Coding coding(DType::i16, shape, test::as_bytes<std::int16_t>(values), bound, {{"layout", layout}});
      test::Bytes back;
      coding.round_trip(back);
      ASSERT_EQ(test::count_missed<std::int16_t>(coding, back, bound), 0u) << layout << " " << trial;
    }
  }
}

}  // namespace
}  // namespace quern::codec::stencil
