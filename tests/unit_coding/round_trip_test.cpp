// A codec that knows nothing of others codes residuals through coding/ and gets them back.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "coding/stream_writer.h"
#include "coding/token_tables.h"
#include "tests/unit_coding/delta_codec.h"
#include "tests/unit_coding/instruction_sets.h"
#include "tests/unit_coding/samples.h"

namespace quern::coding {
namespace {

using test::for_instruction_sets;
using test::Grid;
using test::Turns;

void expect_round_trip(const Grid& grid, double jump, Turns turns) {
  const std::vector<double> values = test::sample_values(grid, 17, jump);
  const ValueFormat format = test::sample_format();
  Vector<std::uint8_t> first;
  for_instruction_sets([&](const kernels::ResidualKernels& kernels) {
    const Vector<std::uint8_t> bytes = test::encode(values, grid, format, turns, kernels);
    ASSERT_FALSE(bytes.empty());
    if (first.empty()) first = bytes;
    EXPECT_EQ(bytes, first) << "bytes depend on the instruction set";
    std::vector<double> back(values.size());
    const Status status = test::decode(bytes, grid, turns, kernels, back);
    ASSERT_TRUE(status.ok()) << status.text();
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_LE(std::fabs(back[i] - values[i]), format.step / 2) << "element " << i;
  });
}

TEST(Coding_RoundTrip, GridsOfAllSizes_ValuesWithinHalfAStep) {
  for (const Grid& grid : {Grid{1, 1}, Grid{1, 700}, Grid{700, 1}, Grid{3, 50}, Grid{64, 640}, Grid{37, 1231}})
    for (const Turns turns : {Turns::rows, Turns::points}) expect_round_trip(grid, 1000, turns);
}

TEST(Coding_RoundTrip, ResidualsOfAllMagnitudes_ValuesWithinHalfAStep) {
  for (const double jump : {0.0, 1.0, 300.0, 1e5, 2.6e8})
    for (const Turns turns : {Turns::rows, Turns::points}) expect_round_trip({50, 400}, jump, turns);
}

TEST(Coding_RoundTrip, ManyValues_TakeAboutTheirEntropy) {
  // Differences of noise that has 128 steps at most: between 6 and 8 bits each.
  const Grid grid{64, 640};
  const std::vector<double> values = test::sample_values(grid, 18, 0);
  const auto bytes =
      test::encode(values, grid, test::sample_format(), Turns::rows, kernels::residual_kernels(kernels::best_isa()));
  EXPECT_LT(bytes.size(), grid.elems());
  EXPECT_GT(bytes.size(), grid.elems() * 6 / 8);
}

TEST(Coding_RoundTrip, AnyNumberOfThreads_SameBytes) {
  const Grid grid{120, 300};
  const std::vector<double> values = test::sample_values(grid, 19);
  const auto alone = test::encode_pieces(values, grid, test::sample_format(), 12, 1);
  for (const unsigned threads : {2u, 3u, 8u})
    EXPECT_EQ(test::encode_pieces(values, grid, test::sample_format(), 12, threads), alone) << threads;
}

/// Rows of a coder whose symbols are all in bin 5, for the writer alone.
struct RowCoder {
  std::vector<std::int32_t> codes;
  std::vector<std::uint16_t> symbols;
  std::vector<kernels::RansEncodeEntry> entries{kernels::kResidualSymbols};
  std::vector<std::uint32_t> packed = std::vector<std::uint32_t>(kernels::kResidualSymbols);

  explicit RowCoder(std::size_t count) : codes(count), symbols(count) {
    for (std::size_t i = 0; i < count; ++i) {
      codes[i] = static_cast<std::int32_t>(i * i % 31) - 15;
      symbols[i] =
          static_cast<std::uint16_t>(5 * kernels::kTokenStride + kernels::token_of(kernels::magnitude_of(codes[i])));
    }
    Distributions distributions{};
    distributions[5] = {16, 2, 50, 2000};
    fill_token_entries(distributions, view());
  }
  kernels::ResidualEntries view() { return {entries.data(), packed.data()}; }
};

TEST(Coding_StreamWriter, SideBySideOrInTurn_SameWords) {
  RowCoder coder(8 * 500);
  // One row holds nearly everything, so that its stream's share of a small room is too small.
  const std::vector<std::uint32_t> ends{10, 20, 3900, 3910, 3920, 3940, 3970, 4000};
  const CodedRows rows{coder.codes.data(), coder.symbols.data(), ends.size(), ends.data()};
  const auto write = [&](std::size_t words, Vector<std::uint8_t>& out) {
    std::vector<std::uint16_t> room(words);
    StreamWriter streams(room, 2);
    if (!streams.encode_rows(kernels::residual_kernels(kernels::best_isa()), coder.view(), rows)) return false;
    Writer writer(out);
    streams.append_sizes(writer);
    streams.append_words(out);
    return true;
  };
  Vector<std::uint8_t> ample;
  ASSERT_TRUE(write(4 * 4 * coder.codes.size(), ample));
  const std::size_t least = ample.size() / 2;
  Vector<std::uint8_t> tight;
  ASSERT_TRUE(write(least + 8, tight));
  EXPECT_EQ(tight, ample);
  Vector<std::uint8_t> none;
  EXPECT_FALSE(write(least / 2, none));
}

TEST(Coding_StreamWriter, TooLittleRoom_IsTold) {
  RowCoder coder(4000);
  std::vector<std::uint16_t> room(400);
  StreamWriter streams(room, 1);
  EXPECT_FALSE(streams.encode(kernels::residual_kernels(kernels::best_isa()), coder.view(), coder.symbols.data(),
                              coder.codes.data(), coder.codes.size(), 0));
}

TEST(Coding_StreamWriter, StreamsForBytes_OneAKibibyteAndNoMoreThanRows) {
  EXPECT_EQ(choose_stream_bits(0), 0u);
  EXPECT_EQ(choose_stream_bits(2047), 0u);
  EXPECT_EQ(choose_stream_bits(2048), 1u);
  EXPECT_EQ(choose_stream_bits(UINT64_C(1) << 40), kMaxStreamBits);
  EXPECT_EQ(choose_stream_bits(UINT64_C(1) << 40, 7), 2u);
}

}  // namespace
}  // namespace quern::coding
