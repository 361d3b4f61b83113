// The lorenzo kernels without races, by what CUDA orders: not only in the orders that happened, but in all that the
// same synchronization allows.
#include <gtest/gtest.h>

#include <cstdint>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "tests/unit_cuda/cuda_grid.h"

namespace quern::kernels {
namespace {

using testing::Content;
using testing::EncodedGrid;
using testing::GridCase;

class LorenzoCudaRaces : public quern::testing::CudaTest {};

TEST_F(LorenzoCudaRaces, EncodingAndDecodingWholeAndDamagedBytes_HaveNone) {
  testing::CpuGrid cpu;
  std::mt19937_64 random(testing::kChunkSeed);
  simt::Options options;
  options.watch_races = true;
  std::size_t turn = 0;
  for (const Element element : {Element::u8, Element::f16, Element::i16, Element::f32, Element::f64, Element::i64})
    for (const TileShape tile : testing::kAllTiles)
      for (const QuantizerKind kind : testing::kAllQuantizers) {
        if (kind == QuantizerKind::pointwise && !testing::is_float_element(element)) continue;
        // Contents by turns: every element type meets all of them, floating point does so under every tile shape.
        constexpr Content kContents[] = {Content::specials, Content::smooth, Content::mostly_refused};
        const Content content = kContents[turn++ % std::size(kContents)];
        const GridCase c =
            testing::make_grid_case(element, kind, tile, testing::awkward_grids(tile)[1], content, random);
        SCOPED_TRACE(c.name + " seed " + std::to_string(options.seed));
        simt::reset(options);
        const EncodedGrid expected = cpu.encode(c);
        const EncodedGrid encoded = testing::encode_to_slots(c);
        ASSERT_EQ(simt::failure(), "");
        ASSERT_EQ(encoded.bytes, expected.bytes);
        std::vector<std::uint8_t> elements(c.elements.size());
        std::vector<std::uint32_t> damaged;
        testing::decode_on_device(c, encoded, elements, damaged);
        ASSERT_EQ(simt::failure(), "");
        EncodedGrid flipped = encoded;
        for (int flips = 0; flips < 3; ++flips) flipped.bytes[random() % flipped.bytes.size()] ^= 0x55;
        testing::decode_on_device(c, flipped, elements, damaged);
        ASSERT_EQ(simt::failure(), "");
        ++options.seed;
      }
}

}  // namespace
}  // namespace quern::kernels
