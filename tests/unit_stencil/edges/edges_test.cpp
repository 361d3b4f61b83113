// Groups that are not linear: what their kernels compute, when chunks have them, and that the bound holds with them.
#include "codecs/stencil/chunk.h"
#include "codecs/stencil/edges/special_values.h"
#include "tests/unit_stencil/chunks.h"
#include "tests/unit_stencil/edges/fronts.h"
#include "tests/unit_stencil/helpers.h"
#include "tests/unit_stencil/job_cases.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <random>

#include "kernels/stencil/cpu/edges.h"
#include "kernels/stencil/cpu/stencil.h"

namespace quern::codec::stencil::test {
namespace {

using Rows = std::array<std::vector<std::int32_t>, 8>;

constexpr std::size_t kColumns = 37;
constexpr std::size_t kBegin = 5;

/// Rows of integers below 2^bits in magnitude; of 32 bits those at the ends of the type are many.
Rows rows_of(unsigned bits, std::mt19937& source) {
  Rows rows;
  for (auto& row : rows) {
    row.resize(kBegin + kColumns + kernels::kStencilBlock);
    for (auto& v : row) {
      v = static_cast<std::int32_t>(source()) >> (32 - bits);
      if (bits == 32 && source() % 4 == 0)
        v = source() % 2 == 0 ? std::numeric_limits<std::int32_t>::min() : std::numeric_limits<std::int32_t>::max();
    }
  }
  return rows;
}

std::uint32_t distance(std::int32_t a, std::int32_t b) {
  const std::uint32_t d = static_cast<std::uint32_t>(a) - static_cast<std::uint32_t>(b);
  return std::min(d, 0 - d);
}
std::int32_t sum(std::initializer_list<std::int32_t> added, std::initializer_list<std::int32_t> taken) {
  std::uint32_t total = 0;
  for (const std::int32_t v : added) total += static_cast<std::uint32_t>(v);
  for (const std::int32_t v : taken) total -= static_cast<std::uint32_t>(v);
  return static_cast<std::int32_t>(total);
}

TEST(Stencil_Edges, AllInstructionSets_ComputeWhatTheFormatSays) {
  std::mt19937 source(7);
  for (std::size_t i = 0; i < kernels::kIsaLevels; ++i) {
    const auto level = static_cast<kernels::IsaLevel>(i);
    if (!kernels::isa_available(level)) continue;
    const kernels::EdgeKernels& made = kernels::stencil_kernels(level).edges;
    for (const unsigned bits : {4u, 12u, 26u, 32u}) {
      SCOPED_TRACE(std::string(kernels::isa_name(level)) + " " + std::to_string(bits));
      const Rows rows = rows_of(bits, source);
      std::array<kernels::EdgePair, 4> pairs;
      const std::array<std::uint32_t, 4> factors{16, 11, 16, 7};
      for (std::size_t p = 0; p < 4; ++p) pairs[p] = {rows[2 * p].data(), rows[2 * p + 1].data(), factors[p]};
      const std::array<const std::int32_t*, 4> taps{rows[0].data(), rows[1].data(), rows[2].data(), rows[3].data()};
      std::vector<std::int32_t> mean(kColumns + kernels::kStencilBlock);
      std::vector<std::int32_t> curvature(mean.size());
      made.calmest_mean(pairs.data(), pairs.size(), kBegin, kColumns, mean.data());
      made.curvature(taps.data(), kBegin, kColumns, curvature.data());
      for (std::size_t x = 0; x < kColumns; ++x) {
        const std::size_t at = kBegin + x;
        std::size_t best = 0;
        for (std::size_t p = 1; p < 4; ++p)
          if (distance(rows[2 * p][at], rows[2 * p + 1][at]) * factors[p] <
              distance(rows[2 * best][at], rows[2 * best + 1][at]) * factors[best])
            best = p;
        EXPECT_EQ(mean[x], sum({rows[2 * best][at], rows[2 * best + 1][at]}, {}) >> 1) << x;
        const std::int64_t limit = distance(rows[2][at], rows[1][at]) / 4;
        const std::int64_t bend = sum({rows[1][at], rows[2][at]}, {rows[0][at], rows[3][at]}) >> 4;
        EXPECT_EQ(curvature[x], std::clamp(bend, -limit, limit)) << x;
      }
    }
  }
}

Settings edges(const char* layout, const char* value) { return {{"layout", layout}, {"edges", value}}; }

TEST(Stencil_Edges, SharpFronts_KeepTheBoundInFewerBytes) {
  constexpr std::size_t kExtent = 40;
  const Shape shape = shape_of({kExtent, kExtent, kExtent});
  const auto field = fronts(kExtent, 3, 2 * kExtent, 12);
  const double bound = 0.01 * width(field);
  for (const char* layout : {"levels", "planes"}) {
    SCOPED_TRACE(layout);
    const Coding without(DType::f32, shape, as_bytes<float>(field), bound, edges(layout, "off"));
    const Coding with(DType::f32, shape, as_bytes<float>(field), bound, edges(layout, "on"));
    EXPECT_EQ(without.encode(0)[0], 3);
    EXPECT_EQ(with.encode(0)[0], 9);
    Bytes back;
    const std::size_t linear = without.round_trip(back);
    const std::size_t bytes = with.round_trip(back);
    EXPECT_LT(bytes, linear);
    EXPECT_EQ(count_missed<float>(with, back, bound), 0u);
  }
}

TEST(Stencil_Edges, EveryRank_KeepsTheBound) {
  for (const Shape& shape :
       {shape_of({3000}), shape_of({60, 70}), shape_of({2, 3, 200}), shape_of({9, 13, 31}), shape_of({6, 9, 13, 17})}) {
    auto values = waves(shape, 44);
    for (double& v : values) v = v > 0.3 ? v + 2 : v;
    for (const char* layout : {"levels", "planes", "levels:3d:1,2"}) {
      if (shape.rank() < 2 && std::string(layout) == "levels:3d:1,2") continue;
      for (const double bound : {0.1, 1e-3, 1e-7}) {
        SCOPED_TRACE(shape.text() + " " + layout + " " + std::to_string(bound));
        const Coding coding(DType::f32, shape, as_bytes<float>(values), bound, edges(layout, "on"));
        Bytes back;
        coding.round_trip(back);
        EXPECT_EQ(count_missed<float>(coding, back, bound), 0u);
      }
    }
  }
}

TEST(Stencil_Edges, ChunksWhereParametersDoNotAllowThem_AreCorrupt) {
  constexpr std::size_t kExtent = 32;
  const Shape shape = shape_of({kExtent, kExtent, kExtent});
  const auto field = fronts(kExtent, 3, 2 * kExtent, 12);
  const Coding with(DType::f32, shape, as_bytes<float>(field), 0.02, edges("levels", "on"));
  const Coding without(DType::f32, shape, as_bytes<float>(field), 0.02, edges("levels", "off"));
  const Bytes chunk = with.encode(0);
  ASSERT_EQ(chunk[0], 9);
  Bytes back(without.data().size());
  const Scratch scratch(without.decoder().scratch_bytes());
  const Status status = without.decoder().decode(chunk, without.box(0, back.data()), scratch.span());
  EXPECT_EQ(status.code(), StatusCode::corrupt);
}

TEST(Stencil_Edges, OnALattice_KeepTheBound) {
  constexpr std::size_t kExtent = 32;
  const Shape shape = shape_of({kExtent, kExtent, kExtent});
  auto field = fronts(kExtent, 3);
  for (double& v : field) v = std::floor(v * 64) / 64;  // -0.0 is on no lattice
  std::size_t inside = 0;
  for (const char* layout : {"levels", "planes"})
    for (const double bound : {0.006, 0.012, 0.016, 0.024, 0.032}) {
      SCOPED_TRACE(std::string(layout) + " " + std::to_string(bound));
      const Coding coding(DType::f32, shape, as_bytes<float>(field), bound, edges(layout, "on"));
      const Bytes chunk = coding.encode(0);
      inside += chunk[0] == static_cast<std::uint8_t>(Mode::lattice) && chunk[kLatticeHead] == 9 ? 1 : 0;
      Bytes back;
      coding.round_trip(back);
      EXPECT_EQ(count_missed<float>(coding, back, bound), 0u);
    }
  EXPECT_GT(inside, 0u);
}

/// Where elements are special: inside fronts, scattered, or all but a few.
Bytes special_of(const std::vector<double>& field, int kind) {
  Bytes special(field.size(), 0);
  std::mt19937 random(5);
  for (std::size_t i = 0; i < field.size(); ++i) {
    const auto number = random() % 16;
    special[i] = (kind == 0 ? field[i] > 0.5 : kind == 1 ? number == 0 : number != 0) ? 1 : 0;
  }
  return special;
}

TEST(Stencil_Edges, Masked_KeepTheBound) {
  constexpr std::size_t kExtent = 32;
  const Shape shape = shape_of({kExtent, kExtent, kExtent});
  const auto field = fronts(kExtent, 3, 2 * kExtent, 12);
  std::size_t used = 0;
  for (const int kind : {0, 1, 2})
    for (const double bound : {0.02, 1e-7}) {
      SCOPED_TRACE(std::to_string(kind) + " " + std::to_string(bound));
      const Bytes special = special_of(field, kind);
      // What special elements hold is for nobody to see.
      auto values = field;
      for (std::size_t i = 0; i < values.size(); ++i)
        if (special[i] != 0) values[i] = std::nan("");
      const Coding coding(DType::f64, shape, as_bytes<double>(values), bound, edges("levels", "on"), special);
      used += coding.encode(0)[0] == 9 ? 1 : 0;
      Bytes back;
      coding.round_trip(back);
      EXPECT_EQ(count_missed<double>(coding, back, bound), 0u);
    }
  EXPECT_GT(used, 0u);
}

TEST(Stencil_Edges, PredictionsOfSpecialElements_AreKeptWithinTheRange) {
  LevelsValueFormat format;
  format.low = -5;
  format.high = 7;
  const std::array<std::uint8_t, 6> contexts{
      kernels::kNoContextBin, 0, kernels::kNoContextBin, 3, kernels::kNoContextBin, kernels::kNoContextBin};
  const auto check = [&]<class Predicted>(Predicted beyond) {
    std::array<Predicted, 6> predicted{beyond, beyond, -beyond, -beyond, 6, -beyond};
    limit_special(contexts.data(), 5, format, predicted.data());
    EXPECT_EQ(predicted, (std::array<Predicted, 6>{7, beyond, -5, -beyond, 6, -beyond}));
  };
  check(std::int32_t{1} << 28);
  check(std::int64_t{1} << 50);
}

/// Chunks without such groups in a stream that may have them are jobs of devices; others are for the host.
TEST(Stencil_Edges, JobsOfAStreamThatMayHaveThem_AreThoseOfChunksWithout) {
  const Shape shape = shape_of({40, 60});
  std::vector<double> noise(shape.elems());
  std::mt19937 random(3);
  for (double& v : noise) v = std::sqrt(static_cast<double>(random() % 100000));
  const Coding with(DType::f32, shape, as_bytes<float>(noise), 3, edges("levels", "on"));
  const Coding without(DType::f32, shape, as_bytes<float>(noise), 3, edges("levels", "off"));
  const Bytes chunk = without.encode(0);
  ASSERT_EQ(chunk[0], static_cast<std::uint8_t>(Mode::levels));
  Bytes back(with.data().size());
  Vector<std::uint8_t> expected;
  Vector<std::uint8_t> job;
  ASSERT_TRUE(append_job(without, chunk, without.box(0, back.data()), expected));
  ASSERT_TRUE(append_job(with, chunk, with.box(0, back.data()), job));
  EXPECT_EQ(job.size(), expected.size());
}

}  // namespace
}  // namespace quern::codec::stencil::test
