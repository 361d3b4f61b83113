// Which chunks of an array plans try encodings on.
#include "libcompress/core/sampled_chunks.h"

#include <gtest/gtest.h>

#include <vector>

namespace quern {
namespace {

/// First elements of the chunks that are visited of 8 x 6 values that are their own places, in 4 chunks of 2 x 6, where
/// the sample holds the first `held` ones.
std::vector<std::uint8_t> visited(std::uint64_t held, std::uint64_t most) {
  std::vector<std::uint8_t> values(48);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint8_t>(i);
  const PlainSample sample(values.data(), DType::u8, held);
  PlanRequest request;
  request.dtype = DType::u8;
  request.sample = &sample;
  ChunkGrid grid;
  grid.extents = {1, 8, 6};
  grid.chunk = {1, 2, 6};
  std::vector<std::uint8_t> first;
  const auto count = for_sampled_chunks(request, grid, most, [&](const ConstBox3& box) -> Status {
    first.push_back(*static_cast<const std::uint8_t*>(box.data));
    return {};
  });
  EXPECT_EQ(count.value(), first.size());
  return first;
}

using Places = std::vector<std::uint8_t>;

TEST(SampledChunks, WholeSample_SpreadsThem) {
  EXPECT_EQ(visited(48, 2), (Places{12, 36}));
  EXPECT_EQ(visited(48, 9), (Places{0, 12, 24, 36}));
}

TEST(SampledChunks, PartOfTheSample_LeavesOutWhatItDoesNotHold) { EXPECT_EQ(visited(47, 2), (Places{12})); }

TEST(SampledChunks, SampleWithoutAnyOfThem_GivesTheFirstItHolds) {
  EXPECT_EQ(visited(23, 2), (Places{0}));
  EXPECT_EQ(visited(12, 1), (Places{0}));
  EXPECT_EQ(visited(11, 2), Places{});
}

}  // namespace
}  // namespace quern
