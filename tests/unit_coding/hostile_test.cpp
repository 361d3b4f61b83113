// Bytes that no encoder wrote: decoding ends, stays inside what it was given, and allocates no more than the grid says.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "coding/stream_reader.h"
#include "tests/fuzz/fuzz_common.h"
#include "tests/support/guarded.h"
#include "tests/support/instrumented.h"
#include "tests/unit_coding/delta_codec.h"
#include "tests/unit_coding/instruction_sets.h"
#include "tests/unit_coding/samples.h"

namespace quern::coding {
namespace {

using test::for_instruction_sets;
using test::Grid;
using test::Turns;

const Grid kGrid{12, 500};

bool refused(StatusCode code) { return code == StatusCode::corrupt || code == StatusCode::truncated; }

/// Decodes bytes that end where a page begins that nobody may touch. Every instruction set says the same.
StatusCode decode_guarded(std::span<const std::uint8_t> bytes, Turns turns) {
  const quern::testing::Guarded<std::uint8_t> guarded(bytes.size(), true);
  std::copy(bytes.begin(), bytes.end(), guarded.data());
  std::vector<double> first;
  StatusCode code = StatusCode::ok;
  for_instruction_sets([&](const kernels::ResidualKernels& kernels) {
    std::vector<double> values(kGrid.elems());
    const fuzz::AllocationWatch watch;
    const Status status = test::decode(guarded.span(), kGrid, turns, kernels, values);
    EXPECT_LE(watch.peak(), test::most_decode_bytes(kGrid));
    if (first.empty()) {
      code = status.code();
      first = values;
    }
    EXPECT_EQ(status.code(), code);
    if (status.ok()) EXPECT_EQ(values, first);
  });
  return code;
}

Vector<std::uint8_t> sample_bytes(Turns turns) {
  return test::encode(test::sample_values(kGrid, 23), kGrid, test::sample_format(), turns,
                      kernels::residual_kernels(kernels::best_isa()));
}

TEST(Coding_Hostile, CutAtAnyLength_IsRefused) {
  for (const Turns turns : {Turns::rows, Turns::points}) {
    const Vector<std::uint8_t> bytes = sample_bytes(turns);
    ASSERT_EQ(decode_guarded(bytes, turns), StatusCode::ok);
    ASSERT_GT(bytes.size(), 4096u);
    const std::size_t step = quern::testing::kInstrumented ? 37 : 1;
    for (std::size_t length = 0; length < bytes.size(); length += length < 600 ? 1 : step)
      ASSERT_TRUE(refused(decode_guarded({bytes.data(), length}, turns))) << length;
  }
}

TEST(Coding_Hostile, AnyFlippedBit_EndsInBounds) {
  for (const Turns turns : {Turns::rows, Turns::points}) {
    Vector<std::uint8_t> bytes = sample_bytes(turns);
    std::size_t refusals = 0;
    std::size_t tried = 0;
    for (std::size_t i = 0; i < bytes.size(); i += i < 600 ? 1 : 23) {
      for (const unsigned flip : {1u, 16u, 255u}) {
        bytes[i] ^= static_cast<std::uint8_t>(flip);
        const StatusCode code = decode_guarded(bytes, turns);
        ASSERT_TRUE(code == StatusCode::ok || refused(code)) << i;
        refusals += refused(code) ? 1 : 0;
        ++tried;
        bytes[i] ^= static_cast<std::uint8_t>(flip);
      }
    }
    // Most flipped bits derail a stream, which then does not end in its first state; signs and low bits do not.
    EXPECT_GT(refusals, tried / 2);
  }
}

TEST(Coding_Hostile, AnyBytes_EndInBounds) {
  std::mt19937 random(29);
  for (int round = 0; round < (quern::testing::kInstrumented ? 100 : 1000); ++round) {
    Vector<std::uint8_t> bytes = sample_bytes(Turns::points);
    bytes.resize(random() % 3000 + 100);
    for (std::size_t i = random() % 100; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(random());
    const StatusCode code = decode_guarded(bytes, round % 2 == 0 ? Turns::rows : Turns::points);
    ASSERT_TRUE(code == StatusCode::ok || refused(code));
  }
}

TEST(Coding_Hostile, StreamsWithoutRoomOrState_AreRefused) {
  const auto open = [](std::vector<std::uint8_t> bytes) {
    StreamReader streams;
    return streams.open(bytes).code();
  };
  EXPECT_EQ(open({0, 0, 0, 1, 0}), StatusCode::ok);
  EXPECT_EQ(open({}), StatusCode::truncated);
  EXPECT_EQ(open({0}), StatusCode::corrupt);                             // no state
  EXPECT_EQ(open({0, 0, 0, 0, 0}), StatusCode::corrupt);                 // a state below the floor
  EXPECT_EQ(open({0, 0, 0, 1, 0, 7}), StatusCode::corrupt);              // half a word
  EXPECT_EQ(open({6, 0, 0, 1, 0}), StatusCode::corrupt);                 // 64 streams
  EXPECT_EQ(open({1, 2, 0, 0, 1, 0, 0, 0, 1, 0}), StatusCode::ok);       // two of them
  EXPECT_EQ(open({1, 1, 0, 0, 1, 0, 0, 0, 1, 0}), StatusCode::corrupt);  // the first is too short
  EXPECT_EQ(open({1, 3, 0, 0, 1, 0, 0, 0, 1, 0}), StatusCode::corrupt);  // the last is too short
  EXPECT_EQ(open({1, 9, 0, 0, 1, 0, 0, 0, 1, 0}), StatusCode::corrupt);  // more than there are
  EXPECT_EQ(open({1, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7F}), StatusCode::corrupt);
}

}  // namespace
}  // namespace quern::coding
