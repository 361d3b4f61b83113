// Whole chunks through every instruction set: identical bytes, identical elements, bounds kept, damage refused or
// decoded within the box.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kernels/lorenzo/cpu/lorenzo.h"
#include "tests/unit_kernels/chunk_cases.h"

namespace quern::kernels {
namespace {

using testing::ChunkCase;

struct Engine {
  explicit Engine(IsaLevel level) : kernels(lorenzo_kernels(level)) {
    scratch.resize(std::max(kernels.encode_scratch_bytes, kernels.decode_scratch_bytes) + 64);
  }
  void* aligned() {
    const auto at = reinterpret_cast<std::uintptr_t>(scratch.data());
    return scratch.data() + ((64 - at % 64) % 64);
  }
  std::vector<std::uint8_t> encode(const ChunkCase& c) {
    std::vector<std::uint8_t> out(max_lorenzo_chunk_bytes(c.rules.element, c.tiles()));
    out.resize(kernels.encode(c.rules, c.elements.data(), c.box, out.data(), aligned()));
    return out;
  }
  bool decode(const ChunkCase& c, const std::vector<std::uint8_t>& in, std::vector<std::uint8_t>& out) {
    out.assign(c.elements.size(), 0xa5);
    return kernels.decode(c.rules, in.data(), in.size(), out.data(), c.box, aligned());
  }
  const LorenzoKernels& kernels;
  std::vector<std::uint8_t> scratch;
};

TEST(Chunk, EveryCase_AllInstructionSetsGiveTheSameBytesAndElements) {
  Engine baseline(IsaLevel::baseline);
  for (const ChunkCase& c : testing::chunk_cases()) {
    SCOPED_TRACE(c.name);
    const auto bytes = baseline.encode(c);
    std::vector<std::uint8_t> elements, others;
    ASSERT_TRUE(baseline.decode(c, bytes, elements));
    if (c.rules.quantizer == QuantizerKind::exact) {
      ASSERT_EQ(elements, c.expected_exact());
    }
    for (std::size_t level = 1; level < kIsaLevels; ++level) {
      if (!isa_available(static_cast<IsaLevel>(level))) continue;
      Engine run(static_cast<IsaLevel>(level));
      ASSERT_EQ(run.encode(c), bytes) << isa_name(static_cast<IsaLevel>(level));
      ASSERT_TRUE(run.decode(c, bytes, others));
      ASSERT_EQ(others, elements) << isa_name(static_cast<IsaLevel>(level));
    }
  }
}

TEST(Chunk, MutatedBytes_AreRefusedOrDecodedAlikeByAllInstructionSets) {
  std::mt19937_64 random(testing::kChunkSeed);
  for (const ChunkCase& c : testing::chunk_cases()) {
    SCOPED_TRACE(c.name + " seed " + std::to_string(testing::kChunkSeed));
    Engine baseline(IsaLevel::baseline);
    const auto bytes = baseline.encode(c);
    for (int round = 0; round < 12; ++round) {
      auto damaged = bytes;
      if (round % 3 == 0) damaged.resize(random() % damaged.size());
      for (int flips = 0; flips < round % 3 && !damaged.empty(); ++flips)
        damaged[random() % std::min<std::size_t>(damaged.size(), 64u << (random() % 8))] ^=
            static_cast<std::uint8_t>(1 + random() % 255);
      std::vector<std::uint8_t> elements, others;
      const bool good = baseline.decode(c, damaged, elements);
      for (std::size_t level = 1; level < kIsaLevels; ++level) {
        if (!isa_available(static_cast<IsaLevel>(level))) continue;
        Engine run(static_cast<IsaLevel>(level));
        ASSERT_EQ(run.decode(c, damaged, others), good);
        if (good) {
          ASSERT_EQ(others, elements);
        }
      }
    }
  }
}

}  // namespace
}  // namespace quern::kernels
