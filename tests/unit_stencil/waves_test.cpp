// Rows decoded side by side come out as those decoded one after the other, whatever the bytes are.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "codecs/stencil/chunk.h"
#include "codecs/stencil/raster/model.h"
#include "codecs/stencil/raster/waves.h"
#include "tests/support/instrumented.h"
#include "tests/unit_stencil/chunks.h"
#include "tests/unit_stencil/helpers.h"
#include "tests/unit_stencil/instruction_sets.h"

namespace quern::codec::stencil::test {
namespace {

using Extents = std::array<std::uint64_t, 3>;

/// A chunk of float32 in raster order.
struct Chunk {
  EncodeSpec spec;
  Extents extents;
  std::vector<float> values;
  Bytes bytes;

  Chunk(Extents e, double bound, unsigned seed) : extents(e), values(e[0] * e[1] * e[2]) {
    std::mt19937 random(seed);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto x = static_cast<double>(i % e[2]);
      const auto y = static_cast<double>(i / e[2] % e[1]);
      const auto z = static_cast<double>(i / e[2] / e[1]);
      // Some of it smooth, some of it still, some of it noise.
      const double wave = std::sin(0.2 * x + 0.1 * z) * std::cos(0.15 * y - 0.3 * z);
      const double noise = x + y > 60 && y < 30 ? static_cast<double>(random() % 4096) / 4096 : 0;
      values[i] = static_cast<float>(x < 20 && y > 10 ? 0 : 10 * wave + noise);
    }
    spec.dtype = DType::f32;
    spec.most = extents;
    spec.bound = bound;
    spec.kernels = &kernels::stencil_kernels(kernels::IsaLevel::baseline);
    ConstBox3 box;
    box.data = values.data();
    box.extents = extents;
    box.strides = {extents[1] * extents[2], extents[2]};
    bytes = encoded_chunk(spec, box);
  }

  /// Decoded with some kernels; nothing when that fails.
  std::vector<float> decoded(const Bytes& stored, const kernels::StencilKernels& kernels) const {
    ChunkSpec with = spec;
    with.kernels = &kernels;
    std::vector<float> back(values.size(), -1.0F);
    const Scratch scratch(decode_scratch_bytes(with));
    MutableBox3 box;
    box.data = back.data();
    box.extents = extents;
    box.strides = {extents[1] * extents[2], extents[2]};
    const Status status = decode_chunk(with, stored, box, scratch.span());
    EXPECT_TRUE(status.ok() || status.code() == StatusCode::corrupt) << status.text();
    return status.ok() ? back : std::vector<float>();
  }

  /// Of rows that may be taken side by side, what their values have to be below; 0 of others.
  double most(const kernels::StencilKernels& kernels) const {
    std::span<const std::uint8_t> rest(bytes);
    if (rest[0] != static_cast<std::uint8_t>(Mode::raster)) return 0;
    rest = rest.subspan(1);
    RasterModel model;
    const kernels::StencilExtents e = kernels::stencil_extents(extents);
    if (!read_raster_model(rest, e, model).ok()) return 0;
    Arena arena(nullptr);
    const RasterWaves waves(arena, e);
    if (!waves.serve(model, kernels)) return 0;
    return std::ldexp(model.format.unit(), 51 - static_cast<int>(model.format.weight_bits + kWeightSumBits) - 1);
  }
};

bool same(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

// Rows that fill waves, and that do not; columns that are fewer than a wave's rows reach back, and more.
const std::vector<Extents>& shapes() {
  static const std::vector<Extents> list{{9, 40, 100}, {12, 65, 48}, {3, 33, 256}, {2, 129, 128}, {10, 18, 130},
                                         {30, 50, 24}, {8, 64, 61},  {5, 24, 200}, {40, 17, 47}};
  return list;
}

TEST(Stencil_Waves, OfAnyShapeAndBound_GiveTheSameValues) {
  std::size_t taken = 0;
  unsigned seed = 1;
  for (const Extents& extents : shapes()) {
    for (const double bound : {2e-4, 3e-6}) {
      const Chunk chunk(extents, bound, seed++);
      SCOPED_TRACE(::testing::Message() << extents[0] << "x" << extents[1] << "x" << extents[2] << " " << bound);
      const auto expected = chunk.decoded(chunk.bytes, *chunk.spec.kernels);
      ASSERT_EQ(expected.size(), chunk.values.size());
      for (std::size_t i = 0; i < expected.size(); ++i)
        ASSERT_LE(std::fabs(static_cast<double>(expected[i]) - static_cast<double>(chunk.values[i])), bound) << i;
      for_instruction_sets([&](const kernels::StencilKernels& kernels) {
        taken += chunk.most(kernels) > 0 ? 1 : 0;
        ASSERT_TRUE(same(chunk.decoded(chunk.bytes, kernels), expected));
      });
    }
  }
  if (!kernels::isa_available(kernels::IsaLevel::avx512)) GTEST_SKIP() << "rows side by side need AVX-512";
  EXPECT_GE(taken, shapes().size());
}

TEST(Stencil_Waves, OfAlteredBytes_GiveTheSameValuesOrAreRefusedAlike) {
  if (!kernels::isa_available(kernels::IsaLevel::avx512)) GTEST_SKIP() << "rows side by side need AVX-512";
  const auto& vectors = kernels::stencil_kernels(kernels::IsaLevel::avx512);
  std::mt19937 random(91);
  std::size_t ok = 0;
  std::size_t refused = 0;
  std::size_t large = 0;
  const Chunk chunk({4, 36, 100}, 3e-6, 90);
  const double most = chunk.most(vectors);
  ASSERT_GT(most, 0);
  const int rounds = quern::testing::kInstrumented ? 150 : 1500;
  for (int round = 0; round < rounds; ++round) {
    Bytes altered = chunk.bytes;
    // Weights and distributions in every other round, then any byte.
    const std::size_t within = round % 2 == 0 ? 400 : altered.size();
    for (auto n = 1 + random() % 3; n > 0; --n)
      altered[random() % within] ^= static_cast<std::uint8_t>(1u << random() % 8);
    const auto expected = chunk.decoded(altered, *chunk.spec.kernels);
    const auto back = chunk.decoded(altered, vectors);
    ASSERT_TRUE(same(back, expected)) << round;
    ++(expected.empty() ? refused : ok);
    if (expected.empty()) continue;
    large += std::ranges::any_of(expected, [&](float v) { return std::fabs(static_cast<double>(v)) > most; }) ? 1 : 0;
  }
  EXPECT_GT(refused, 10u);
  EXPECT_GT(ok, 10u);
  EXPECT_GT(large, 0u);  // whose sums are not exact in any order
}

}  // namespace
}  // namespace quern::codec::stencil::test
