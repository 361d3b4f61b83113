// The loops over rows of every instruction set against the functions of one number each.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <random>
#include <vector>

#include "kernels/common/round_to_integer.h"
#include "kernels/entropy/context_bin.h"
#include "kernels/interp/cpu/interp.h"
#include "kernels/interp/geometry.h"

namespace quern::kernels {
namespace {

constexpr std::size_t kCount = 203;

std::vector<IsaLevel> levels() {
  std::vector<IsaLevel> all;
  for (std::size_t i = 0; i < kIsaLevels; ++i)
    if (isa_available(static_cast<IsaLevel>(i))) all.push_back(static_cast<IsaLevel>(i));
  return all;
}

/// Small numbers, and now and then any: arithmetic wraps around.
template <class Word>
std::vector<Word> numbers(std::mt19937_64& random, std::size_t count) {
  std::vector<Word> out(count);
  for (Word& v : out) v = random() % 9 == 0 ? static_cast<Word>(random()) : static_cast<Word>(random() % 4000) - 2000;
  return out;
}

template <class Word>
Word interpolated(const std::array<Word, 4>& from, const std::array<std::int32_t, 4>& weights) {
  InterpUnsigned<Word> sum = 0;
  for (std::size_t k = 0; k < 4; ++k)
    sum +=
        static_cast<InterpUnsigned<Word>>(static_cast<Word>(weights[k])) * static_cast<InterpUnsigned<Word>>(from[k]);
  return interp_rounded(static_cast<Word>(sum));
}

template <class Word>
void expect_predictions(const InterpKernels& kernels) {
  std::mt19937_64 random(3);
  const std::vector<Word> data = numbers<Word>(random, kCount + 64);
  std::vector<std::int32_t> rows(4 * kCount);
  for (std::int32_t& w : rows) w = static_cast<std::int32_t>(random() % 128) - 32;
  for (unsigned count = 1; count <= 3; ++count) {
    std::array<InterpAxis<Word>, 3> axes;
    for (unsigned a = 0; a < count; ++a) {
      for (std::size_t k = 0; k < 4; ++k) axes[a].from[k] = data.data() + 7 * a + 3 * k;
      axes[a].weights = {-4, 36, 36, -4};
    }
    axes[0].rows = rows.data();
    axes[0].pitch = kCount;
    std::vector<Word> out(kCount);
    kernels.rows<Word>().predict(axes.data(), count, kCount, out.data());
    for (std::size_t i = 0; i < kCount; ++i) {
      std::array<Word, 3> each{};
      for (unsigned a = 0; a < count; ++a) {
        std::array<Word, 4> from{};
        std::array<std::int32_t, 4> weights = axes[a].weights;
        for (std::size_t k = 0; k < 4; ++k) {
          from[k] = axes[a].from[k][i];
          if (a == 0) weights[k] = rows[k * kCount + i];
        }
        each[a] = interpolated(from, weights);
      }
      const Word wanted = count == 1   ? each[0]
                          : count == 2 ? interp_mean(each[0], each[1])
                                       : interp_mean(each[0], each[1], each[2]);
      ASSERT_EQ(out[i], wanted) << count << " axes, point " << i;
    }
  }
}

template <class Word>
void expect_codes(const InterpKernels& kernels) {
  std::mt19937_64 random(5);
  constexpr unsigned kFractionBits = 7;
  const std::vector<Word> targets = numbers<Word>(random, kCount);
  const std::vector<Word> predicted = numbers<Word>(random, kCount);
  std::vector<std::uint8_t> special(kCount);
  for (std::uint8_t& s : special) s = random() % 5 == 0 ? 1 : 0;
  for (const bool masked : {false, true}) {
    const std::uint8_t* const which = masked ? special.data() : nullptr;
    std::vector<Word> values = predicted;
    std::vector<std::int32_t> codes(kCount);
    std::vector<std::uint16_t> magnitudes(kCount);
    kernels.rows<Word>().code(targets.data(), which, kCount, kFractionBits, values.data(), codes.data(),
                              magnitudes.data());
    for (std::size_t i = 0; i < kCount; ++i) {
      const Word whole = interp_code(targets[i], predicted[i], kFractionBits);
      constexpr auto kMost = static_cast<Word>(kMaxMagnitude);
      const bool none = which != nullptr && which[i] != 0;
      ASSERT_EQ(codes[i], none ? 0 : static_cast<std::int32_t>(std::clamp(whole, static_cast<Word>(-kMost), kMost)));
      ASSERT_EQ(values[i], interp_value(predicted[i], codes[i], kFractionBits));
      ASSERT_EQ(magnitudes[i], interp_magnitude(codes[i]));
    }
    std::vector<Word> again = predicted;
    std::vector<std::uint16_t> sizes(kCount);
    kernels.rows<Word>().restore(codes.data(), kCount, kFractionBits, again.data(), sizes.data());
    EXPECT_EQ(again, values);
    EXPECT_EQ(sizes, magnitudes);
  }
}

template <class Word>
void expect_elements(const InterpKernels& kernels) {
  std::mt19937_64 random(7);
  const double most = sizeof(Word) == 4 ? 0x1p22 : 0x1p50;
  std::vector<std::uint32_t> bits(kCount);
  for (std::uint32_t& b : bits)
    b = random() % 4 == 0 ? static_cast<std::uint32_t>(random())
                          : std::bit_cast<std::uint32_t>(static_cast<float>(random() % 1000) * 0.37F - 185);
  std::vector<std::uint64_t> wide(kCount);
  for (std::size_t i = 0; i < kCount; ++i)
    wide[i] = i % 11 == 0 ? random() : std::bit_cast<std::uint64_t>(double{std::bit_cast<float>(bits[i])});
  std::vector<Word> out(kCount);
  std::vector<Word> from_wide(kCount);
  kernels.rows<Word>().units32(bits.data(), kCount, 3, 512, most, out.data());
  kernels.rows<Word>().units64(wide.data(), kCount, 3, 512, most, from_wide.data());
  std::vector<std::uint32_t> back(kCount);
  std::vector<std::uint64_t> wide_back(kCount);
  kernels.rows<Word>().singles(out.data(), kCount, 1.0 / 512, 3, back.data());
  kernels.rows<Word>().doubles(from_wide.data(), kCount, 1.0 / 512, 3, wide_back.data());
  for (std::size_t i = 0; i < kCount; ++i) {
    const auto unit = [&](double v) {
      const double units = (v - 3) * 512;
      return static_cast<Word>(nearest_integer(units < most && units > -most ? units : 0));
    };
    ASSERT_EQ(out[i], unit(static_cast<double>(std::bit_cast<float>(bits[i]))));
    ASSERT_EQ(from_wide[i], unit(std::bit_cast<double>(wide[i])));
    ASSERT_EQ(back[i], std::bit_cast<std::uint32_t>(
                           static_cast<float>(number_of(static_cast<std::int64_t>(out[i])) * (1.0 / 512) + 3)));
    ASSERT_EQ(wide_back[i],
              std::bit_cast<std::uint64_t>(number_of(static_cast<std::int64_t>(from_wide[i])) * (1.0 / 512) + 3));
  }
}

TEST(InterpRows, EveryInstructionSet_GivesTheNumbersOfTheRules) {
  for (const IsaLevel isa : levels()) {
    SCOPED_TRACE(isa_name(isa));
    const InterpKernels& kernels = interp_kernels(isa);
    expect_predictions<std::int32_t>(kernels);
    expect_predictions<std::int64_t>(kernels);
    expect_codes<std::int32_t>(kernels);
    expect_codes<std::int64_t>(kernels);
    expect_elements<std::int32_t>(kernels);
    expect_elements<std::int64_t>(kernels);
  }
}

TEST(InterpRows, ContextsAndBins_AreThoseOfTheRules) {
  std::mt19937_64 random(11);
  std::vector<std::uint16_t> magnitudes(kCount + 64);
  for (std::uint16_t& m : magnitudes) m = static_cast<std::uint16_t>(random() % (kInterpMostMagnitude + 1));
  for (const IsaLevel isa : levels()) {
    const InterpKernels& kernels = interp_kernels(isa);
    for (unsigned axes = 1; axes <= 3; ++axes) {
      InterpSpread spread;
      spread.axes = axes;
      for (std::size_t k = 0; k < std::size_t{2} * axes; ++k) spread.from[k] = magnitudes.data() + 5 * k;
      std::vector<std::uint32_t> sums(kCount);
      kernels.spread(spread, kCount, sums.data());
      for (std::size_t i = 0; i < kCount; ++i) {
        std::uint32_t sum = 0;
        for (std::size_t k = 0; k < std::size_t{2} * axes; ++k) sum += spread.from[k][i];
        ASSERT_EQ(sums[i], sum * kInterpSpreadUnit / (2 * axes));
      }
      const std::vector<std::uint32_t> before = sums;
      const InterpContext context{kInterpMostWeight, 65535};
      kernels.contexts(context, kCount, sums.data());
      std::vector<std::uint8_t> bins(kCount);
      kernels.bins(sums.data(), kCount, bins.data());
      for (std::size_t i = 0; i < kCount; ++i) {
        ASSERT_EQ(sums[i], interp_context(before[i], context));
        ASSERT_EQ(bins[i], context_bin(sums[i]));
        ASSERT_LT(bins[i], kInterpAnchorBin);
      }
    }
  }
}

TEST(InterpRules, Weights_SumToOne_AndStayInTheirTile) {
  for (const InterpKind kind : {InterpKind::linear, InterpKind::cubic, InterpKind::natural}) {
    for (std::size_t points = 1; points < 40; ++points) {
      for (std::size_t i = 0; i < points; ++i) {
        const InterpWeights weights = interp_weights_at(kind, i, points, 3);
        EXPECT_EQ(weights[0] + weights[1] + weights[2] + weights[3], 64);
        if (i % 8 == 0) {
          EXPECT_EQ(weights[0], 0);
        }
        if (i % 8 == 7) {
          EXPECT_EQ(weights[3], 0);
        }
        if (i + 1 >= points) {
          EXPECT_EQ(weights[2], 0);
        }
        if (i + 2 >= points) {
          EXPECT_EQ(weights[3], 0);
        }
      }
    }
  }
}

}  // namespace
}  // namespace quern::kernels
