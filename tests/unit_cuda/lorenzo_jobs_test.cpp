// Tiles that warps decode by their jobs, on the simulator: residuals of every number of planes, dense and sparse, in
// arrays at every alignment; payloads at the very end of the memory that holds them; bytes changed at random. All is
// held against the CPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kernels/lorenzo/tile_code.h"
#include "tests/unit_cuda/cuda_grid.h"

namespace quern::kernels {
namespace {

using testing::CudaGrid;
using testing::EncodedGrid;
using testing::GridCase;

/// Noise of up to `bits` bits on some of the elements, so that low planes are dense and high ones sparse.
std::int64_t rough_value(unsigned bits, std::mt19937_64& random) {
  const std::uint64_t share = random() % 8;
  const unsigned own = share == 0 ? bits : share < 3 ? bits / 2 : bits / 4;
  const auto range = std::int64_t{1} << own;
  return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(2 * range)) - range;
}

/// An array of such values whose steps are integers.
GridCase rough_case(Element element, TileShape tile, const CudaGrid& grid, unsigned bits, std::mt19937_64& random) {
  GridCase c =
      testing::make_grid_case(element, QuantizerKind::absolute, tile, grid, testing::Content::constant, random);
  if (testing::is_float_element(element))
    c.rules.params = element == Element::f64 ? testing::float_params<double>(0.5) : testing::float_params<float>(0.5);
  else
    c.rules.params =
        element_bytes(element) == 8 ? testing::int_params<std::uint64_t>(0) : testing::int_params<std::uint32_t>(0);
  const std::size_t size = element_bytes(element);
  for (std::size_t at = 0; at < c.elements.size(); at += size) {
    const std::uint64_t pattern = testing::pattern_of(element, static_cast<double>(rough_value(bits, random)));
    std::memcpy(c.elements.data() + at, &pattern, size);
  }
  c.name += " bits " + std::to_string(bits);
  return c;
}

CudaGrid grid_of(TileShape tile, std::uint64_t width) {
  switch (tile) {
    case TileShape::line: return {{1, 2, 32 * width}, {1, 1, 2048}};
    case TileShape::plane: return {{1, 40, width}, {1, 32, 64}};
    case TileShape::block: break;
  }
  return {{6, 9, width}, {4, 8, 64}};
}

class LorenzoJobs : public quern::testing::CudaTest {
 protected:
  testing::CpuGrid cpu_;
  std::mt19937_64 random_{testing::kChunkSeed};
  std::uint64_t seed_ = 0;

  /// Decodes on both; damaged chunks are the same, and elements where there is no damage.
  void compare(const GridCase& c, const EncodedGrid& in, std::size_t& damaged_chunks) {
    simt::reset([&] {
      simt::Options options;
      options.seed = ++seed_;
      return options;
    }());
    SCOPED_TRACE(c.name + " seed " + std::to_string(seed_));
    std::vector<std::uint8_t> wanted(c.elements.size(), 0xa5), got = wanted;
    std::vector<std::uint32_t> wanted_damage, damage;
    cpu_.decode(c, in, wanted, wanted_damage);
    testing::decode_on_device(c, in, got, damage);
    ASSERT_EQ(simt::failure(), "");
    ASSERT_EQ(damage, wanted_damage);
    testing::for_each_chunk(c, [&](std::size_t number, std::size_t offset, const ChunkBox& box) {
      if (damage[number] != 0) return;
      for (std::uint64_t z = 0; z < box.extents[0]; ++z)
        for (std::uint64_t y = 0; y < box.extents[1]; ++y) {
          const std::size_t size = element_bytes(c.rules.element);
          const std::size_t at = offset + (z * box.strides[0] + y * box.strides[1]) * size;
          ASSERT_TRUE(std::equal(got.begin() + static_cast<std::ptrdiff_t>(at),
                                 got.begin() + static_cast<std::ptrdiff_t>(at + box.extents[2] * size),
                                 wanted.begin() + static_cast<std::ptrdiff_t>(at)));
        }
    });
    damaged_chunks += static_cast<std::size_t>(std::count(damage.begin(), damage.end(), 1u));
  }

  /// f for element types and tile shapes with residuals of few to many planes.
  template <class F>
  void for_each_rough_case(F&& f) {
    for (const Element element : {Element::f32, Element::i32, Element::i16, Element::f64})
      for (const TileShape tile : testing::kAllTiles)
        for (const unsigned bits : {3u, 7u, 8u, 12u, 15u, 16u, 17u, 18u, 20u, 21u, 23u, 27u}) {
          if (HasFatalFailure() || (element == Element::i16 && bits > 14) || (element == Element::f32 && bits > 21))
            continue;
          f(rough_case(element, tile, grid_of(tile, bits % 2 == 0 ? 96 : 75), bits, random_));
        }
  }
};

TEST_F(LorenzoJobs, EveryNumberOfPlanes_ElementsAsOnTheCpu) {
  std::size_t damaged = 0;
  unsigned most_planes = 0;
  bool planes_seen[65] = {};
  for_each_rough_case([&](const GridCase& c) {
    const EncodedGrid bytes = cpu_.encode(c);
    // The first head: form, then planes + 1.
    for (std::size_t i = 0; i + 1 < bytes.offsets.size(); ++i)
      if (!bytes.raw[i] && bytes.bytes[bytes.offsets[i]] == kFormTiles) {
        const unsigned a = bytes.bytes[bytes.offsets[i] + 1] & 0x7f;
        if (a != 0) planes_seen[a - 1] = true;
        most_planes = std::max(most_planes, a == 0 ? 0 : a - 1);
      }
    compare(c, bytes, damaged);
  });
  EXPECT_EQ(damaged, 0u);
  EXPECT_GT(most_planes, 24u);
  unsigned between = 0;
  for (unsigned p = 17; p <= 24; ++p) between += planes_seen[p] ? 1 : 0;
  EXPECT_GE(between, 4u);  // three bytes of residuals
}

TEST_F(LorenzoJobs, BytesChangedAtRandom_SameVerdictAndElementsAsOnTheCpu) {
  constexpr int kRounds = 3;
  std::size_t damaged = 0;
  for_each_rough_case([&](const GridCase& c) {
    const EncodedGrid whole = cpu_.encode(c);
    for (int round = 0; round < kRounds && !HasFatalFailure(); ++round) {
      EncodedGrid bytes = whole;
      for (std::size_t flips = 0; flips < bytes.offsets.size(); ++flips)
        bytes.bytes[random_() % bytes.bytes.size()] ^= static_cast<std::uint8_t>(1 + random_() % 255);
      compare(c, bytes, damaged);
    }
  });
  EXPECT_GT(damaged, 200u);
}

TEST_F(LorenzoJobs, LevelsChanged_SameVerdictAndElementsAsOnTheCpu) {
  // Bytes in the middle of payloads, where the levels of sparse planes are: one bit more or less in them.
  std::size_t damaged = 0;
  for_each_rough_case([&](const GridCase& c) {
    EncodedGrid bytes = cpu_.encode(c);
    for (std::size_t i = 0; i + 1 < bytes.offsets.size(); ++i) {
      const std::uint64_t size = bytes.offsets[i + 1] - bytes.offsets[i];
      if (!bytes.raw[i] && size > 4)
        bytes.bytes[bytes.offsets[i] + size / 4 + random_() % (size / 2)] ^=
            static_cast<std::uint8_t>(1u << random_() % 8);
    }
    compare(c, bytes, damaged);
  });
  EXPECT_GT(damaged, 20u);
}

TEST_F(LorenzoJobs, ManyChunks_HeadsReadByThreadsGiveTheSame) {
  // A thread each reads the heads of so many chunks.
  std::size_t damaged = 0;
  const CudaGrid grid{{1, 8200, 36}, {1, 1, 1024}};
  GridCase c = rough_case(Element::f32, TileShape::line, grid, 9, random_);
  EncodedGrid bytes = cpu_.encode(c);
  ASSERT_GE(bytes.raw.size(), 8192u);
  compare(c, bytes, damaged);
  EXPECT_EQ(damaged, 0u);
  for (std::size_t flips = 0; flips < 2000; ++flips)
    bytes.bytes[random_() % bytes.bytes.size()] ^= static_cast<std::uint8_t>(1 + random_() % 255);
  compare(c, bytes, damaged);
  EXPECT_GT(damaged, 100u);
}

}  // namespace
}  // namespace quern::kernels
