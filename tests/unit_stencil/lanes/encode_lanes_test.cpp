// Chunks in raster order encoded on the lanes of the emulator: the bytes of the host's encoder.
#include "tests/emulator/lane_encoding.h"
#include "tests/unit_stencil/encode_cases.h"

namespace quern::codec::stencil::test {
namespace {

using quern::testing::EmulatorState;
using quern::testing::EncodingOnLanes;

struct EmulatedRun {
  std::uint32_t warps = 1;
  bool watch = false;
  std::unique_ptr<EncodingOnLanes> lanes;
  std::size_t exception_count = 0;
  std::size_t lane_count = 0;
  std::size_t open_bits = 0;  ///< of the longest residual

  kernels::RasterEncodeResult encode(std::span<const std::uint8_t> job, std::uint32_t work_bytes, Bytes& elements,
                                     const Bytes& special) {
    lanes = std::make_unique<EncodingOnLanes>(work_bytes, warps, watch);
    const auto result = lanes->encode(job, elements.data(), special.empty() ? nullptr : special.data());
    exception_count = result.exceptions;
    for (const auto& level : result.counts)
      for (unsigned t = 0; t < kernels::kResidualTokens; ++t)
        if (level[t] != 0) open_bits = std::max<std::size_t>(open_bits, kernels::token_open_bits(t));
    return result;
  }
  std::vector<std::uint32_t> exceptions(std::uint32_t at, std::uint32_t count) { return lanes->exceptions(at, count); }
  std::vector<std::uint32_t> write_lanes(std::span<const std::uint8_t> job, std::vector<std::uint16_t>& words) {
    const auto lane_words = lanes->write_lanes(job, words);
    lane_count = static_cast<std::size_t>(
        std::count_if(lane_words.begin(), lane_words.end(), [](std::uint32_t n) { return n > 0; }));
    return lane_words;
  }
};

TEST(Stencil_EncodeOnLanes, EveryCase_BytesOfTheHost) {
  std::uint64_t seed = 1;
  std::size_t coded = 0;
  std::size_t raw = 0;
  std::size_t left = 0;
  std::size_t lattices = 0;
  std::size_t many_lanes = 0;
  std::size_t exceptions = 0;
  std::size_t open_bits = 0;
  for (const EncodeCase& c : encode_cases()) {
    SCOPED_TRACE(c.name);
    for (std::uint64_t chunk = 0; chunk < c.coding->chunks(); ++chunk) {
      EmulatorState::instance().reset(++seed);
      EmulatedRun run{1 + static_cast<std::uint32_t>(seed % 5), c.coding->data().size() < 200000, {}};
      Bytes out;
      Bytes elements;
      Bytes special;
      const Encoded encoded = encode_with(run, *c.coding, chunk, out, elements, special);
      EXPECT_EQ(EmulatorState::instance().poison_reads(), 0u);
      EXPECT_EQ(EmulatorState::instance().races(), 0u);
      const Bytes expected = c.coding->encode(chunk);
      switch (encoded) {
        case Encoded::host: ++left; break;
        case Encoded::raw:
          ++raw;
          ASSERT_EQ(expected[0], static_cast<std::uint8_t>(Mode::raw));
          break;
        case Encoded::coded:
          ++coded;
          lattices += expected[0] == static_cast<std::uint8_t>(Mode::lattice) ? 1 : 0;
          many_lanes += run.lane_count > 1 ? 1 : 0;
          exceptions += run.exception_count;
          open_bits = std::max(open_bits, run.open_bits);
          ASSERT_EQ(out, expected);
          break;
      }
    }
  }
  EXPECT_GT(coded, 25u);
  EXPECT_GT(raw, 0u);
  EXPECT_GT(left, 0u);
  EXPECT_GT(lattices, 1u);
  EXPECT_GT(many_lanes, 3u);
  EXPECT_GT(exceptions, 100u);
  EXPECT_EQ(open_bits, kernels::token_open_bits(kernels::kResidualTokens - 1));
}

}  // namespace
}  // namespace quern::codec::stencil::test
