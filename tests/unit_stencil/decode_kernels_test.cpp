// Kernels of the decoder: every instruction set does what the plain loops here do.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "codecs/stencil/wavelet/model.h"
#include "kernels/stencil/cpu/stencil.h"
#include "tests/unit_stencil/instruction_sets.h"

namespace quern::codec::stencil {
namespace {

using test::for_instruction_sets;

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
