// Numbers that a CPU and a device both compute: each function against its definition, and the loops over vectors of
// every instruction set against the function.
#include "kernels/stencil/rules.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "kernels/stencil/cpu/stencil.h"
#include "kernels/stencil/taps.h"
#include "kernels/stencil/warp/raster_grid.h"
#include "kernels/stencil/wavelet_quantize.h"
#include "tests/unit_stencil/instruction_sets.h"

namespace quern::codec::stencil {
namespace {

using test::for_instruction_sets;

constexpr std::uint64_t kSeed = 2024;

TEST(Stencil_Rules, RowClass_IsOfPlanesAndRowsBefore) {
  for (std::size_t rows = 1; rows <= 4; ++rows) {
    for (std::size_t plane = 0; plane < 6; ++plane) {
      for (std::size_t row = 0; row < rows; ++row) {
        const std::size_t planes_seen = plane < 2 ? plane : 2;
        const bool first_of_several = row == 0 && rows > 1;
        const std::size_t expected = planes_seen * 2 + (first_of_several ? 0 : 1);
        ASSERT_EQ(kernels::row_class(kernels::StencilExtents{6, rows, 9}, plane, row), expected);
        ASSERT_EQ(kernels::row_class(plane, row, rows), expected);
        if (rows == 1) {
          // A device has single-row planes as rows of one plane.
          ASSERT_EQ(kernels::class_of_row(0, static_cast<std::uint32_t>(plane), 6, false), expected);
        } else {
          ASSERT_EQ(kernels::class_of_row(static_cast<std::uint32_t>(plane), static_cast<std::uint32_t>(row),
                                          static_cast<std::uint32_t>(rows), true),
                    expected);
        }
      }
    }
  }
}

TEST(Stencil_Rules, MeanOfPlanes_IsThatOfTheKernels) {
  for (std::uint32_t plane = 1; plane < 5000; ++plane)
    ASSERT_EQ(kernels::mean_weight(plane) * 256, plane <= 5 ? std::floor(256.0 / plane) : 48);
  std::mt19937_64 random(kSeed);
  constexpr std::size_t kCount = 75;
  for (std::uint32_t plane = 1; plane < 8; ++plane) {
    std::vector<double> values(kCount);
    std::vector<double> means(kCount);
    for (double& v : values) v = static_cast<double>(static_cast<std::int64_t>(random()) >> (14 + random() % 50));
    for (double& m : means) m = static_cast<double>(static_cast<std::int64_t>(random()) >> (14 + random() % 50));
    for_instruction_sets([&](const kernels::StencilKernels& k) {
      std::vector<double> after(kCount);
      k.add_to_mean(values.data(), means.data(), kernels::mean_weight(plane), kCount, after.data());
      for (std::size_t i = 0; i < kCount; ++i)
        ASSERT_EQ(after[i], kernels::next_mean(means[i], values[i], kernels::mean_weight(plane)));
    });
  }
}

TEST(Stencil_Rules, Units_AreThoseOfTheKernels) {
  const double edge = kernels::kMaxUnits;
  std::vector<double> originals{0.0, -0.0, edge, -edge, std::nextafter(edge, 0), std::nextafter(-edge, 0), 0.5, 1.5};
  originals.insert(originals.end(), {INFINITY, -INFINITY, std::nan(""), std::numeric_limits<double>::max()});
  std::mt19937_64 random(kSeed);
  while (originals.size() < 201)
    originals.push_back(static_cast<double>(static_cast<std::int64_t>(random()) >> (random() % 64)) / 64);
  for (const double base : {0.0, 3.25}) {
    for (const double inverse : {1.0, 1 / 0.3}) {
      for_instruction_sets([&](const kernels::StencilKernels& k) {
        std::vector<std::int64_t> units(originals.size());
        k.units(originals.data(), originals.size(), base, inverse, units.data());
        for (std::size_t i = 0; i < originals.size(); ++i) {
          const double exact = (originals[i] - base) * inverse;
          const double expected = std::fabs(exact) < edge ? exact : 0;  // not for NaN either
          ASSERT_EQ(kernels::in_units(originals[i], base, inverse), expected) << originals[i];
          ASSERT_EQ(units[i], std::llrint(expected)) << originals[i];
        }
      });
    }
  }
}

TEST(Stencil_Rules, ScaledDown_RoundsHalfUp) {
  for (unsigned bits = 1; bits <= 16; ++bits)
    for (std::int64_t sum = -(1 << 17); sum <= 1 << 17; ++sum)
      ASSERT_EQ(
          kernels::scaled_down(static_cast<std::uint64_t>(sum), bits),
          static_cast<std::int64_t>(std::floor(std::ldexp(static_cast<double>(sum), -static_cast<int>(bits)) + .5)));
}

TEST(Stencil_Rules, CappedMagnitude_IsThatOfTheKernels) {
  constexpr std::uint32_t kMost = kernels::kMaxContextMagnitude;
  static_assert(kernels::capped_magnitude(std::numeric_limits<std::int32_t>::min(), kMost) == kMost);
  static_assert(kernels::capped_magnitude(-std::numeric_limits<std::int64_t>::max(), kMost) == kMost);
  std::vector<std::int64_t> codes{0, 1, -1, kMost, kMost - 1, kMost + 1};
  codes.insert(codes.end(), {-std::int64_t{kMost}, kernels::kMaxMagnitude, -std::int64_t{kernels::kMaxMagnitude}});
  std::mt19937_64 random(kSeed);
  while (codes.size() < 203) codes.push_back(static_cast<std::int64_t>(random()) >> (34 + random() % 30));
  for (const std::int64_t code : codes) {
    const auto expected = static_cast<std::uint32_t>(std::min<std::int64_t>(std::llabs(code), kMost));
    const auto narrow = static_cast<std::int32_t>(code);
    ASSERT_EQ(kernels::capped_magnitude(code, kMost), expected) << code;
    ASSERT_EQ(kernels::capped_magnitude(narrow, kMost), expected) << code;
    ASSERT_EQ(kernels::capped_magnitude(static_cast<std::uint32_t>(narrow), kMost), expected) << code;
  }
  for_instruction_sets([&](const kernels::StencilKernels& k) {
    const std::size_t count = codes.size();
    std::vector<std::int64_t> values(count, 5);
    std::vector<double> numbers(count);
    std::vector<std::uint32_t> magnitudes(count);
    std::vector<std::int32_t> narrow(count);
    ASSERT_TRUE(
        k.loop_codes(codes.data(), values.data(), 0, kMost, count, numbers.data(), magnitudes.data(), narrow.data()));
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(narrow[i], codes[i]);
      ASSERT_EQ(magnitudes[i], kernels::capped_magnitude(codes[i], kMost)) << codes[i];
    }
  });
}

TEST(Stencil_Rules, CappedSpread_IsThatOfTheKernels) {
  std::mt19937_64 random(kSeed);
  constexpr std::size_t kCount = 64;
  std::array<std::array<double, kCount>, 3> rows{};
  for (auto& row : rows)
    for (double& v : row) v = static_cast<double>(static_cast<std::int64_t>(random()) >> (16 + random() % 48));
  for (const int scale_bits : {-31, -6, 0, 9}) {
    const kernels::SpreadSource<double> source{rows[0].data(), rows[1].data(), kernels::Spread::bend, scale_bits, 3};
    std::array<std::uint32_t, kCount> expected{};
    for (std::size_t i = 0; i < kCount; ++i) {
      const double bend = rows[0][i] + rows[1][i] - 2 * rows[2][i];
      const double scaled = std::ldexp(std::fabs(bend), scale_bits);
      expected[i] = kernels::capped_spread(bend, source.scale(), kernels::kMaxSpread);
      ASSERT_EQ(expected[i], std::floor(std::min<double>(scaled, kernels::kMaxSpread)));
    }
    for_instruction_sets([&](const kernels::StencilKernels& k) {
      std::array<std::uint32_t, kCount> sums{};
      k.fit.wide.add_distances(source, rows[2].data(), kernels::kMaxSpread, kCount, sums.data());
      for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(sums[i], 3 * expected[i]);
    });
  }
}

/// By division of integers, rounded down.
double plain_coefficient(std::int64_t code, std::int64_t offset, std::int64_t step) {
  if (code == 0) return 0;
  const std::int64_t product = (std::llabs(code) * 64 + offset) * step;
  const std::int64_t value = product / 64 - (product % 64 < 0 ? 1 : 0);
  return static_cast<double>(code < 0 ? -value : value);
}

TEST(Stencil_Rules, WaveletCoefficient_IsThatOfTheKernels) {
  std::vector<std::int32_t> codes;
  for (std::int32_t code = -600; code <= 600; ++code) codes.push_back(code);
  for (const std::int32_t code : {1 << 20, -(1 << 20), (1 << 30) - 1, -(1 << 30) + 1}) codes.push_back(code);
  const std::size_t count = codes.size();
  for (int one = -16; one < 16; ++one) {
    for (const int more : {-16, -1, 0, 15}) {
      for (const std::int64_t step : {1, 2, 3, 4148, (1 << 20) - 1}) {
        for (const std::int32_t code : codes)
          ASSERT_EQ(kernels::wavelet_coefficient(code, one, more, step),
                    plain_coefficient(code, code == 1 || code == -1 ? one : more, step))
              << code;
        for_instruction_sets([&](const kernels::StencilKernels& k) {
          std::vector<double> values(count);
          k.decode.scale_codes(codes.data(), {one, more}, step, count, values.data());
          for (std::size_t i = 0; i < count; ++i)
            ASSERT_EQ(values[i], kernels::wavelet_coefficient(codes[i], one, more, step)) << codes[i];
        });
      }
    }
  }
}

TEST(Stencil_Rules, LiftingStep_IsThatOfTheKernels) {
  std::mt19937_64 random(kSeed);
  constexpr std::size_t kLines = kernels::kLiftedLines;
  std::vector<double> other(2 * kLines);
  std::vector<double> values(kLines);
  for (std::size_t step = 0; step < 4; ++step) {
    for (double& v : other) v = static_cast<double>(static_cast<std::int64_t>(random()) >> (30 + random() % 34));
    for (double& v : values) v = static_cast<double>(static_cast<std::int64_t>(random()) >> (30 + random() % 34));
    const double factor = kernels::wavelet_factor(step);
    for_instruction_sets([&](const kernels::StencilKernels& k) {
      std::vector<double> after = values;
      k.decode.lift(after.data(), 1, other.data(), 2, 0, factor);
      for (std::size_t j = 0; j < kLines; ++j) {
        const double expected = kernels::lifted(values[j], other[j], other[kLines + j], factor);
        ASSERT_EQ(after[j], expected);
        ASSERT_EQ(expected, values[j] + std::nearbyint((other[j] + other[kLines + j]) * factor / 65536));
        // The step undoes itself.
        ASSERT_EQ(kernels::lifted(expected, other[j], other[kLines + j], -factor), values[j]);
      }
    });
  }
}

}  // namespace
}  // namespace quern::codec::stencil
