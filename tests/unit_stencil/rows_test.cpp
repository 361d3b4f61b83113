// Kernels of rows of levels: every instruction set does what the plain loops here do, and writes nothing behind the
// blocks that a row has.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "kernels/entropy/context_bin.h"
#include "kernels/entropy/residual_tokens.h"
#include "kernels/stencil/cpu/stencil.h"
#include "kernels/stencil/rules.h"
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
using test::Sources;

/// `bits`: of values.
template <class Value>
void check_predictions(std::size_t taps, unsigned bits, bool exact) {
  Numbers numbers(71);
  Sources<Value> sources(numbers, taps, bits);
  sources.view.exact = exact;
  for_instruction_sets([&](const kernels::StencilKernels& k) {
    for (const std::size_t count : kCounts) {
      std::array<std::int64_t, kRoom> predicted{};
      std::array<std::uint8_t, kRoom> levels{};
      predicted.fill(-7);
      levels.fill(200);
      k.rows.of<Value>().predict(sources.view, kBegin, count, predicted.data(), levels.data());
      for (std::size_t x = 0; x < count; ++x) {
        ASSERT_EQ(predicted[x], sources.predicted(x)) << x;
        ASSERT_EQ(levels[x], kernels::context_bin(sources.context(x, predicted[x]))) << x;
      }
      expect_untouched<std::int64_t>(predicted, count, -7);
      expect_untouched<std::uint8_t>(levels, count, 200);
    }
  });
}

template <class Value>
void check_predictions(std::size_t taps) {
  for (const unsigned bits : {12, 20, 25})
    for (const bool exact : {false, true}) check_predictions<Value>(taps, bits, exact);
}

TEST(Stencil_RowKernels, Predictions_AreThoseOfPlainLoops) {
  check_predictions<double>(Sources<double>::kTaps);
  check_predictions<std::int32_t>(Sources<std::int32_t>::kTaps);
}

TEST(Stencil_RowKernels, PairsThatAreCut_ArePredictedAsSingles) {
  check_predictions<double>(3);
  check_predictions<std::int32_t>(3);
}

TEST(Stencil_RowKernels, RowsWithoutTaps_ArePredictedAsZero) {
  check_predictions<double>(0);
  check_predictions<std::int32_t>(0);
}

TEST(Stencil_RowKernels, PredictionsThatLeave32Bits_HaveTheirOwnContexts) {
  Numbers numbers(80);
  Sources<std::int32_t> sources(numbers, 1, 12);
  sources.values[0].fill(1 << 25);
  sources.weights[0] = 1 << 15;
  sources.view.weight_bits = 8;
  sources.spreads[0].weight = sources.spreads[1].weight = 0;
  sources.spreads[2].weight = 4095;
  sources.magnitude_weights.fill(0);
  for_instruction_sets([&](const kernels::StencilKernels& k) {
    for (const bool exact : {false, true}) {
      sources.view.exact = exact;
      std::array<std::int64_t, kRoom> predicted{};
      std::array<std::uint8_t, kRoom> levels{};
      k.rows.narrow.predict(sources.view, kBegin, 100, predicted.data(), levels.data());
      for (std::size_t x = 0; x < 100; ++x) {
        ASSERT_EQ(predicted[x], std::int64_t{1} << 32);
        ASSERT_EQ(levels[x], kernels::context_bin(sources.context(x, predicted[x])));
      }
    }
  });
}

TEST(Stencil_RowKernels, DistancesOfAnyScale_AreThoseOfPlainLoops) {
  for (const int scale_bits : {-31, -1, 0, 1, 3, 15}) {
    Numbers numbers(87);
    Sources<std::int32_t> sources(numbers, 2, 12);
    for (auto& spread : sources.spreads) spread.scale_bits = scale_bits;
    for_instruction_sets([&](const kernels::StencilKernels& k) {
      std::array<std::int64_t, kRoom> predicted{};
      std::array<std::uint8_t, kRoom> levels{};
      k.rows.narrow.predict(sources.view, kBegin, 100, predicted.data(), levels.data());
      for (std::size_t x = 0; x < 100; ++x)
        ASSERT_EQ(levels[x], kernels::context_bin(sources.context(x, predicted[x]))) << scale_bits << " at " << x;
    });
  }
}

/// Predictions to either side of where sums in 32 bits end.
TEST(Stencil_RowKernels, ContextsOfFarPredictions_AreThoseOfPlainLoops) {
  Numbers numbers(78);
  Sources<std::int32_t> sources(numbers);
  const std::int32_t most = static_cast<std::int32_t>(kernels::kMostNarrow) - 1;
  for (std::size_t x = 0; x < kRoom; ++x)
    for (std::size_t t = 0; t < 5; ++t) sources.values[t][x] = (x + t) % 2 == 0 ? most : -most;
  for (const std::int64_t edge : {std::int64_t{1} << 29, -(std::int64_t{1} << 29), std::int64_t{1} << 31}) {
    for (const std::int64_t beyond : {-1, 0, 1}) {
      std::array<std::int32_t, kRoom> codes{};
      std::array<std::int32_t, kRoom> values{};
      std::array<std::uint32_t, kRoom> sums{};
      // value - code * quantum is the prediction.
      constexpr std::int64_t kQuantum = 3;
      for (std::size_t x = 0; x < kRoom; ++x) {
        codes[x] = x % 7 == 5 ? static_cast<std::int32_t>(-edge / kQuantum) : 0;
        values[x] = codes[x] == 0 ? most : static_cast<std::int32_t>(edge + beyond + codes[x] * kQuantum);
      }
      for_instruction_sets([&](const kernels::StencilKernels& k) {
        for (const std::size_t count : kCounts) {
          k.rows.narrow.contexts(sources.view, kBegin, count, values.data(), codes.data(), kQuantum, sums.data());
          for (std::size_t x = 0; x < count; ++x)
            ASSERT_EQ(sums[x], sources.context(x, values[x] - codes[x] * kQuantum)) << x;
        }
      });
    }
  }
}

/// `bits`: of values around; `octaves`: of originals; `narrow`: whether all values and magnitudes are.
template <class Value>
void check_codes(unsigned bits, std::size_t octaves, bool narrow) {
  constexpr std::int64_t kQuantum = 52;
  constexpr std::int64_t kMost = kernels::kMaxMagnitude;
  constexpr std::int64_t kMostMagnitude = std::is_same_v<Value, double> ? 1000 : kernels::kMostMagnitudes;
  constexpr double kBase = 17.25;
  constexpr double kInverse = 0.125;
  Numbers numbers(72);
  const Sources<Value> sources(numbers, Sources<Value>::kTaps, bits);
  std::array<double, kRoom> originals{};
  for (std::size_t x = 0; x < kRoom; ++x)
    originals[x] = static_cast<double>(numbers.within(std::int64_t{1} << (x % octaves))) / 3;
  const bool holes = std::is_same_v<Value, double> || !narrow;
  if (holes) {
    originals[0] = std::numeric_limits<double>::quiet_NaN();
    originals[5] = 0x1p60;
    originals[6] = -std::numeric_limits<double>::infinity();
  }
  for_instruction_sets([&](const kernels::StencilKernels& k) {
    for (const std::size_t count : kCounts) {
      std::array<Value, kRoom> values{};
      std::array<kernels::MagnitudeOf<Value>, kRoom> magnitudes{};
      std::array<std::int32_t, kRoom> codes{};
      std::array<std::uint32_t, kRoom> sums{};
      values.fill(77);
      const auto& rows = k.rows.of<Value>();
      const kernels::CodedRowResult result = rows.code(
          sources.view, kBegin, count,
          {originals.data(), kBase, kInverse, kQuantum, kMost, 1000, values.data(), magnitudes.data(), codes.data()});
      EXPECT_FALSE(result.kept) << "nothing was looked at";
      ASSERT_EQ(result.narrow, narrow) << count;
      if (!narrow) {
        EXPECT_EQ(std::count(codes.begin(), codes.begin() + static_cast<std::ptrdiff_t>(count), 0), count)
            << "what was no number is no code";
        continue;
      }
      rows.contexts(sources.view, kBegin, count, values.data(), codes.data(), kQuantum, sums.data());
      for (std::size_t x = 0; x < count; ++x) {
        const std::int64_t predicted = sources.predicted(x);
        const bool lost = holes && (x == 0 || x == 5 || x == 6);
        const std::int64_t target = lost ? 0 : std::llrint((originals[x] - kBase) * kInverse);
        const std::int64_t code = std::clamp<std::int64_t>(
            std::llrint(static_cast<double>(target - predicted) * (1.0 / kQuantum)), -kMost, kMost);
        ASSERT_EQ(codes[x], code) << x;
        ASSERT_EQ(magnitudes[x], std::min<std::int64_t>(std::abs(code), kMostMagnitude)) << x;
        ASSERT_EQ(values[x], static_cast<Value>(predicted + code * kQuantum));
        ASSERT_EQ(sums[x], sources.context(x, predicted)) << x;
      }
      expect_untouched<Value>(values, count, 77);
      expect_untouched(sums, count, 0u);
    }
  });
}

TEST(Stencil_RowKernels, CodesAndTheirContexts_AreThoseOfPlainLoops) {
  check_codes<double>(25, 44, true);
  check_codes<std::int32_t>(16, 27, true);
}

TEST(Stencil_RowKernels, ValuesThatAreNotNarrow_AreToldOf) { check_codes<std::int32_t>(25, 40, false); }

TEST(Stencil_RowKernels, MagnitudesThatAreNotNarrow_AreToldOfInAnyColumn) {
  constexpr std::int32_t kMost = kernels::kMostMagnitudes;
  Numbers numbers(86);
  const Sources<std::int32_t> sources(numbers, 0);
  for_instruction_sets([&](const kernels::StencilKernels& k) {
    for (const std::int32_t code : {kMost - 1, 1 - kMost, kMost, -kMost}) {
      for (std::size_t column = 0; column < 40; ++column) {
        std::array<double, kRoom> originals{};
        std::array<std::int64_t, kRoom> predicted{};
        std::array<std::int32_t, kRoom> codes{};
        std::array<std::int32_t, kRoom> values{};
        std::array<std::uint16_t, kRoom> magnitudes{};
        for (const std::size_t count : {37, 40}) {
          const bool kept = std::abs(code) < kMost || column >= count;
          originals[column] = code;
          for (const auto& kernel : {k.rows.narrow.code, k.rows.small.code})
            ASSERT_EQ(kernel(sources.view, kBegin, count,
                             {originals.data(), 0, 1, 1, kernels::kMaxMagnitude, 1000, values.data(), magnitudes.data(),
                              codes.data()})
                          .narrow,
                      kept);
          codes.fill(0);
          codes[column] = code;
          predicted[column] = -code;
          ASSERT_EQ(
              k.rows.narrow.reconstruct(predicted.data(), codes.data(), 1, 9, count, values.data(), magnitudes.data()),
              kept);
          if (kept && column < count) {
            ASSERT_EQ(values[column], 0);
            ASSERT_EQ(magnitudes[column], std::abs(code));
          }
        }
      }
    }
  });
}

/// Originals that come back within 0.75: each column may have a fault, before the row's end or behind it.
template <class Value>
void check_kept(bool single) {
  constexpr double kBase = 17.25;
  constexpr double kUnit = 0.5;
  constexpr double kStrict = 0.75;
  constexpr std::int64_t kQuantum = 2;
  constexpr std::size_t kCount = 37;
  constexpr bool kWide = std::is_same_v<Value, double>;
  Numbers numbers(79);
  const Sources<Value> sources(numbers, Sources<Value>::kTaps, 12);
  std::array<double, kRoom> originals{};
  for (double& v : originals) v = kBase + static_cast<double>(2 * numbers.within(1 << 19) + 1) * kUnit / 16;
  for_instruction_sets([&](const kernels::StencilKernels& k) {
    std::array<Value, kRoom> values{};
    std::array<kernels::MagnitudeOf<Value>, kRoom> magnitudes{};
    std::array<std::int32_t, kRoom> codes{};
    const auto code = [&] {
      return k.rows.of<Value>().code(sources.view, kBegin, kCount,
                                     {originals.data(), kBase, 1 / kUnit, kQuantum, kernels::kMaxMagnitude, 1000,
                                      values.data(), magnitudes.data(), codes.data(), kStrict, kUnit, single});
    };
    ASSERT_TRUE(code().kept);
    for (std::size_t x = 0; x < 48; ++x) {
      const bool inside = x < kCount;
      const double kept = originals[x];
      originals[x] = 0;
      ASSERT_EQ(code().kept, !inside) << "a zero at " << x;
      originals[x] = -0.0;
      ASSERT_EQ(code().kept, !inside) << "a zero at " << x;
      originals[x] = std::numeric_limits<double>::quiet_NaN();
      kernels::CodedRowResult result = code();
      ASSERT_EQ(result.kept && result.narrow, !inside) << "NaN at " << x;
      ASSERT_EQ(result.narrow, kWide || !inside);
      originals[x] = -std::numeric_limits<double>::infinity();
      result = code();
      ASSERT_EQ(result.kept && result.narrow, !inside) << "infinity at " << x;
      originals[x] = 0x1p40;
      result = code();
      ASSERT_EQ(result.narrow, kWide || !inside) << "a large number at " << x;
      originals[x] = kept;
    }
    // Units that are farther apart than what is asked for.
    const kernels::CodedRowResult coarse =
        k.rows.of<Value>().code(sources.view, kBegin, kCount,
                                {originals.data(), kBase, 1 / kUnit, kQuantum, kernels::kMaxMagnitude, 1000,
                                 values.data(), magnitudes.data(), codes.data(), 0.0625, kUnit, single});
    ASSERT_FALSE(coarse.kept);
    ASSERT_TRUE(coarse.narrow);
  });
}

TEST(Stencil_RowKernels, RowsThatComeBackNear_AreKept) {
  for (const bool single : {false, true}) {
    check_kept<double>(single);
    check_kept<std::int32_t>(single);
  }
}

template <class Value>
void check_samples() {
  Numbers numbers(75);
  const Sources<Value> sources(numbers);
  std::array<std::int64_t, kRoom> targets{};
  std::array<std::int32_t, kRoom> codes{};
  std::array<double, kRoom> mean{};
  for (std::size_t x = 0; x < kRoom; ++x) {
    targets[x] = numbers.within(INT64_C(1) << 44);
    codes[x] = static_cast<std::int32_t>(numbers.within(1 << 20));
    mean[x] = static_cast<double>(numbers.within(1 << 20)) / 3;
  }
  for_instruction_sets([&](const kernels::StencilKernels& k) {
    const auto& fit = k.fit.of<Value>();
    for (const std::size_t count : kCounts) {
      std::array<double, kRoom> feature{};
      std::array<double, kRoom> first{};
      std::array<double, kRoom> differences{};
      std::array<double, kRoom> predictions{};
      std::array<float, kRoom> sums{};
      fit.feature(sources.taps.data(), sources.weights.data(), 3, mean.data(), 0.3, count, feature.data());
      fit.feature(sources.taps.data(), sources.weights.data(), 1, nullptr, 0.3, count, first.data());
      fit.predictions(sources.taps[0], codes.data(), 52, count, predictions.data());
      k.fit.differences(targets.data(), mean.data(), 0.3, count, differences.data());
      fit.magnitude_sums(sources.magnitudes.data(), 4, 0.25f, count, sums.data());
      for (std::size_t x = 0; x < count; ++x) {
        double weighted = 0;
        float known = 0;
        for (std::size_t t = 0; t < 3; ++t) weighted += sources.weights[t] * static_cast<double>(sources.values[t][x]);
        for (std::size_t t = 0; t < 4; ++t) known += static_cast<float>(sources.known[t][x]);
        ASSERT_EQ(feature[x], weighted * 0.3 - mean[x]) << x;
        ASSERT_EQ(first[x], sources.weights[0] * static_cast<double>(sources.values[0][x]) * 0.3) << x;
        ASSERT_EQ(predictions[x], static_cast<double>(sources.values[0][x]) - codes[x] * 52.0) << x;
        ASSERT_EQ(differences[x], static_cast<double>(targets[x]) * 0.3 - mean[x]) << x;
        ASSERT_EQ(sums[x], known * 0.25f) << x;
      }
      for (std::size_t x = count; x < kRoom; ++x) ASSERT_EQ(feature[x] + differences[x] + predictions[x] + sums[x], 0);
    }
  });
}

TEST(Stencil_RowKernels, Samples_AreThoseOfPlainLoops) {
  check_samples<double>();
  check_samples<std::int32_t>();
}

template <class Value>
void check_reconstruction(std::int64_t most_predicted) {
  constexpr std::int64_t kQuantum = (1 << 10) + 52;
  Numbers numbers(73);
  std::array<std::int64_t, kRoom> predicted{};
  std::array<std::int32_t, kRoom> codes{};
  for (std::size_t x = 0; x < kRoom; ++x) {
    predicted[x] = numbers.within(most_predicted >> x % 30);
    codes[x] = static_cast<std::int32_t>(numbers.within(most_predicted / kQuantum / 2 >> x % 20));
    if (x % 3 == 0) codes[x] = static_cast<std::int32_t>(x % 5) - 2;
  }
  for_instruction_sets([&](const kernels::StencilKernels& k) {
    for (const std::size_t count : kCounts) {
      std::array<Value, kRoom> values{};
      std::array<kernels::MagnitudeOf<Value>, kRoom> magnitudes{};
      const bool narrow =
          k.rows.of<Value>().reconstruct(predicted.data(), codes.data(), kQuantum, kernels::kMaxContextMagnitude, count,
                                         values.data(), magnitudes.data());
      bool all = true;
      for (std::size_t x = 0; x < count; ++x) {
        const auto value = static_cast<std::uint64_t>(predicted[x]) +
                           static_cast<std::uint64_t>(std::int64_t{codes[x]}) * static_cast<std::uint64_t>(kQuantum);
        const std::int64_t expected = static_cast<std::int64_t>(value << 11) >> 11;
        const bool fits = expected >= -kernels::kMostNarrow && expected < kernels::kMostNarrow;
        all = all && fits;
        if (std::is_same_v<Value, double> || fits) {
          ASSERT_EQ(values[x], static_cast<Value>(expected));
        }
        const std::int64_t magnitude = std::abs(std::int64_t{codes[x]});
        if constexpr (std::is_same_v<Value, double>) {
          ASSERT_EQ(magnitudes[x], std::min<std::int64_t>(magnitude, kernels::kMaxContextMagnitude));
        } else if (magnitude < kernels::kMostMagnitudes) {
          ASSERT_EQ(magnitudes[x], magnitude);
        } else {
          all = false;
        }
      }
      const bool expected_narrow = all || std::is_same_v<Value, double>;
      ASSERT_EQ(narrow, expected_narrow) << count;
      expect_untouched(values, count, Value{0});
    }
  });
}

TEST(Stencil_RowKernels, Reconstruction_IsExactAndTellsWhatIsNotNarrow) {
  check_reconstruction<double>(std::int64_t{1} << 60);
  check_reconstruction<double>(1 << 20);
  check_reconstruction<std::int32_t>(std::int64_t{1} << 60);
  check_reconstruction<std::int32_t>(std::int64_t{1} << 25);
}

TEST(Stencil_RowKernels, OneValueBeyondTheLimit_IsFoundInAnyColumn) {
  for_instruction_sets([&](const kernels::StencilKernels& k) {
    for (const std::int64_t beyond : {kernels::kMostNarrow, -kernels::kMostNarrow - 1}) {
      for (std::size_t column = 0; column < 40; ++column) {
        std::array<std::int64_t, kRoom> predicted{};
        std::array<std::int32_t, kRoom> codes{};
        std::array<std::int32_t, kRoom> values{};
        std::array<std::uint16_t, kRoom> magnitudes{};
        predicted[column] = beyond;
        for (const std::size_t count : {37, 40})
          ASSERT_EQ(
              k.rows.narrow.reconstruct(predicted.data(), codes.data(), 1, 9, count, values.data(), magnitudes.data()),
              column >= count);
        predicted[column] = beyond < 0 ? beyond + 1 : beyond - 1;
        ASSERT_TRUE(
            k.rows.narrow.reconstruct(predicted.data(), codes.data(), 1, 9, 40, values.data(), magnitudes.data()));
      }
    }
  });
}

template <class Value>
void check_pairs() {
  Numbers numbers(74);
  std::vector<Value> even(150);
  std::vector<Value> odd(150);
  for (Value& v : even) v = static_cast<Value>(numbers.within(1 << 25));
  for (Value& v : odd) v = static_cast<Value>(numbers.within(1 << 25));
  for_instruction_sets([&](const kernels::StencilKernels& k) {
    for (const std::size_t count : kCounts) {
      std::vector<Value> mixed(2 * count + 1, Value{3});
      std::vector<std::uint32_t> singles(2 * count + 1, 4);
      k.rows.of<Value>().interleave(even.data(), odd.data(), count, mixed.data());
      k.rows.of<Value>().store_pairs(even.data(), odd.data(), 0.3, 17.7, count, singles.data());
      const auto single = [](Value v) {
        return std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<double>(v) * 0.3 + 17.7));
      };
      for (std::size_t x = 0; x < count; ++x) {
        ASSERT_EQ(mixed[2 * x], even[x]);
        ASSERT_EQ(mixed[2 * x + 1], odd[x]);
        ASSERT_EQ(singles[2 * x], single(even[x]));
        ASSERT_EQ(singles[2 * x + 1], single(odd[x]));
      }
      ASSERT_EQ(mixed[2 * count], Value{3});
      ASSERT_EQ(singles[2 * count], 4u);
    }
  });
}

TEST(Stencil_RowKernels, Pairs_AreWrittenInTurns) {
  check_pairs<double>();
  check_pairs<std::int32_t>();
}

template <class Value>
void check_magnitude_pairs() {
  using Magnitude = kernels::MagnitudeOf<Value>;
  Numbers numbers(75);
  std::vector<Magnitude> even(100);
  std::vector<Magnitude> odd(100);
  for (Magnitude& m : even) m = static_cast<Magnitude>(numbers());
  for (Magnitude& m : odd) m = static_cast<Magnitude>(numbers());
  for_instruction_sets([&](const kernels::StencilKernels& k) {
    std::vector<Magnitude> mixed(200);
    k.rows.of<Value>().interleave_magnitudes(even.data(), odd.data(), 100, mixed.data());
    for (std::size_t x = 0; x < 100; ++x) {
      ASSERT_EQ(mixed[2 * x], even[x]);
      ASSERT_EQ(mixed[2 * x + 1], odd[x]);
    }
  });
}

TEST(Stencil_RowKernels, MagnitudesOfPairs_AreWrittenInTurns) {
  check_magnitude_pairs<double>();
  check_magnitude_pairs<std::int32_t>();
}

TEST(Stencil_ElementKernels, WidenedNumbers_AreThoseEachStepAway) {
  Numbers numbers(76);
  std::vector<std::uint32_t> from(64 * 8);
  for (auto& bits : from) bits = std::bit_cast<std::uint32_t>(static_cast<float>(numbers.within(1 << 20)) / 7);
  from[0] = std::bit_cast<std::uint32_t>(std::numeric_limits<float>::infinity());
  from[8] = 1;  // a subnormal number
  for_instruction_sets([&](const kernels::StencilKernels& k) {
    for (const std::size_t step : {1, 2, 4, 8}) {
      for (const std::size_t count : {1, 15, 16, 33, 63}) {
        std::vector<double> out(count + 1, -1.5);
        k.widen(from.data(), step, count, out.data());
        for (std::size_t x = 0; x < count; ++x)
          ASSERT_EQ(out[x], static_cast<double>(std::bit_cast<float>(from[x * step]))) << step;
        ASSERT_EQ(out[count], -1.5);
      }
    }
  });
}

TEST(Stencil_ElementKernels, Range_IsThatOfTheFiniteNumbers) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  Numbers numbers(77);
  for (const std::size_t count : {0, 1, 15, 16, 17, 100}) {
    std::vector<std::uint32_t> from(count);
    float low = kInfinity;
    float high = -kInfinity;
    std::uint64_t finite = 0;
    for (std::size_t x = 0; x < count; ++x) {
      float v = static_cast<float>(numbers.within(1 << 20)) / 7;
      if (x % 5 == 1) v = x % 2 == 0 ? std::numeric_limits<float>::quiet_NaN() : (x % 3 == 0 ? kInfinity : -kInfinity);
      from[x] = std::bit_cast<std::uint32_t>(v);
      if (!std::isfinite(v)) continue;
      low = std::min(low, v);
      high = std::max(high, v);
      ++finite;
    }
    for_instruction_sets([&](const kernels::StencilKernels& k) {
      std::array<float, kernels::kRangeLanes> least{};
      std::array<float, kernels::kRangeLanes> greatest{};
      least.fill(kInfinity);
      greatest.fill(-kInfinity);
      // What was found before stays.
      std::uint64_t found = k.range(from.data(), count / 2, least.data(), greatest.data());
      found += k.range(from.data() + count / 2, count - count / 2, least.data(), greatest.data());
      ASSERT_EQ(found, finite);
      ASSERT_EQ(*std::min_element(least.begin(), least.end()), low);
      ASSERT_EQ(*std::max_element(greatest.begin(), greatest.end()), high);
    });
  }
}

}  // namespace
}  // namespace quern::codec::stencil
