// Bytes that no encoder writes, on the simulator: accepted or refused as on the CPU, chunk by chunk, without a step
// outside of the buffers (which end where the data ends; see tests/simt/README.md).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tests/unit_cuda/cuda_grid.h"

namespace quern::kernels {
namespace {

using testing::EncodedGrid;
using testing::GridCase;

class LorenzoCudaDamage : public quern::testing::CudaTest {
 protected:
  testing::CpuGrid cpu_;
  std::mt19937_64 random_{testing::kChunkSeed};

  /// What a refused chunk leaves in its part of the array is not defined: both get the same there.
  static void blank_damaged(const GridCase& c, const std::vector<std::uint32_t>& damaged,
                            std::vector<std::uint8_t>& elements) {
    const std::size_t size = element_bytes(c.rules.element);
    testing::for_each_chunk(c, [&](std::size_t number, std::size_t offset, const ChunkBox& box) {
      if (damaged[number] == 0) return;
      for (std::uint64_t z = 0; z < box.extents[0]; ++z)
        for (std::uint64_t y = 0; y < box.extents[1]; ++y)
          std::memset(elements.data() + offset + (z * box.strides[0] + y * box.strides[1]) * size, 0,
                      box.extents[2] * size);
    });
  }

  /// Number of damaged chunks, the same on both.
  void compare(const GridCase& c, const EncodedGrid& in, std::size_t& damaged_chunks) {
    simt::reset([&] {
      simt::Options options;
      options.seed = random_();
      return options;
    }());
    std::vector<std::uint8_t> wanted(c.elements.size(), 0xa5), got = wanted;
    std::vector<std::uint32_t> wanted_damage, damage;
    cpu_.decode(c, in, wanted, wanted_damage);
    testing::decode_on_device(c, in, got, damage);
    ASSERT_EQ(simt::failure(), "");
    ASSERT_EQ(damage, wanted_damage);
    blank_damaged(c, damage, wanted);
    blank_damaged(c, damage, got);
    ASSERT_EQ(got, wanted);
    damaged_chunks += static_cast<std::size_t>(std::count(damage.begin(), damage.end(), 1u));
  }
};

TEST_F(LorenzoCudaDamage, FlippedBytes_AreCheckedAsOnTheCpu) {
  std::size_t damaged = 0;
  testing::for_each_grid_case([&](const GridCase& c) {
    if (HasFatalFailure()) return;
    SCOPED_TRACE(c.name + " seed " + std::to_string(testing::kChunkSeed));
    EncodedGrid bytes = cpu_.encode(c);
    for (std::size_t flips = 0; flips < bytes.offsets.size(); ++flips) {
      // Near the beginning of a chunk, where the heads of its tiles are.
      const std::uint64_t begin = bytes.offsets[random_() % (bytes.offsets.size() - 1)];
      const std::uint64_t reach = std::min<std::uint64_t>(bytes.bytes.size() - begin, 8u << (random_() % 10));
      bytes.bytes[begin + random_() % reach] ^= static_cast<std::uint8_t>(1 + random_() % 255);
    }
    compare(c, bytes, damaged);
  });
  EXPECT_GT(damaged, 100u);
}

TEST_F(LorenzoCudaDamage, ChunksOfOtherLengths_AreCheckedAsOnTheCpu) {
  std::size_t damaged = 0;
  testing::for_each_grid_case([&](const GridCase& c) {
    if (HasFatalFailure() || random_() % 3 != 0) return;
    SCOPED_TRACE(c.name + " seed " + std::to_string(testing::kChunkSeed));
    EncodedGrid bytes = cpu_.encode(c);
    // Every chunk ends too early, or too late, or holds the end of the one before.
    for (std::size_t i = 1; i < bytes.offsets.size(); ++i)
      bytes.offsets[i] = bytes.offsets[i - 1] + random_() % (bytes.bytes.size() - bytes.offsets[i - 1] + 1);
    bytes.raw.assign(bytes.raw.size(), false);
    compare(c, bytes, damaged);
  });
  EXPECT_GT(damaged, 50u);
}

}  // namespace
}  // namespace quern::kernels
