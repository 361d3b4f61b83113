// Damaged bytes: every flip and every truncation ends in a status or in values, and nothing is written beyond them.
// The memory sanitizers watch what is read.
#include <gtest/gtest.h>

#include <memory>

#include "tests/support/instrumented.h"
#include "tests/unit_tensor/tensor_cases.h"

namespace quern::codec::tensor {
namespace {

struct Case {
  TensorDescription description;
  Mode mode;
  Bytes side;
  Bytes chunk;
  Bytes base;
  Bytes values;
};

Case make_case(ElementType type, std::size_t elems, const char* kind, Mode mode, int zstd_level = 0) {
  Case c{description_of(type, elems), mode, {}, {}, {}, make_values(type, elems, kind)};
  c.base = drifted(c.values, element_bytes(type), 5);
  TensorInputs inputs;
  inputs.values = c.values;
  inputs.base = c.base;
  TensorRequest request;
  request.mode = mode;
  request.zstd_level = zstd_level;
  const auto plan = plan_tensor(c.description, request, inputs);
  EXPECT_TRUE(plan.ok());
  c.side.assign(plan->side.begin(), plan->side.end());
  c.chunk.resize(chunk_bound(c.description, 0));
  AlignedBuffer scratch;
  const auto size = encode_chunk(*plan, inputs, 0, c.chunk, scratch);
  EXPECT_TRUE(size.ok());
  c.chunk.resize(*size);
  return c;
}

Status decode(const Case& c, const Bytes& side, const Bytes& chunk, AlignedBuffer& scratch) {
  // Memory of exactly the size, so that a sanitizer sees every byte beyond.
  const std::unique_ptr<std::uint8_t[]> exact(new std::uint8_t[chunk.size()]);
  std::copy(chunk.begin(), chunk.end(), exact.get());
  const std::size_t bytes = c.values.size();
  const std::unique_ptr<std::uint8_t[]> out(new std::uint8_t[bytes]);
  TensorInputs inputs;
  inputs.base = c.base;
  return decode_chunk(c.description, c.mode, side, 0, {exact.get(), chunk.size()}, inputs, {out.get(), bytes}, scratch);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  all.push_back(make_case(ElementType::f32, 3000, "weights", Mode::planes));
  all.push_back(make_case(ElementType::f32, 3000, "weights", Mode::delta));
  all.push_back(make_case(ElementType::f32, 9000, "weights", Mode::planes));
  all.push_back(make_case(ElementType::f32, 9000, "weights", Mode::delta));
  all.push_back(make_case(ElementType::f32, 3000, "runs", Mode::planes));
  all.push_back(make_case(ElementType::bf16, 40000, "weights", Mode::planes));
  all.push_back(make_case(ElementType::i64, 700, "small", Mode::planes));
  all.push_back(make_case(ElementType::boolean, 3000, "noise", Mode::planes));
  all.push_back(make_case(ElementType::f32, 2000, "runs", Mode::planes, 3));
  all.push_back(make_case(ElementType::f16, 500, "noise", Mode::raw));
  all.push_back(make_case(ElementType::f64, 500, "constant", Mode::constant));
  return all;
}

TEST(Tensor_Hostile, EveryFlippedByteEnds) {
  AlignedBuffer scratch;
  for (const Case& c : cases()) {
    ASSERT_TRUE(decode(c, c.side, c.chunk, scratch).ok()) << mode_name(c.mode);
    // Heads and tables byte for byte, the rest in steps.
    const std::size_t step = testing::kInstrumented ? 53 : 3;
    for (std::size_t i = 0; i < c.chunk.size(); i += i < 600 ? 1 : step)
      for (const unsigned flip : {0x01, 0x80, 0xff}) {
        Bytes damaged = c.chunk;
        damaged[i] = static_cast<std::uint8_t>(damaged[i] ^ flip);
        const Status status = decode(c, c.side, damaged, scratch);
        EXPECT_TRUE(status.ok() || status.code() == StatusCode::corrupt) << i << ": " << status.text();
      }
    for (std::size_t i = 0; i < c.side.size(); ++i) {
      Bytes damaged = c.side;
      damaged[i] ^= 0xff;
      (void)decode(c, damaged, c.chunk, scratch);
    }
  }
}

TEST(Tensor_Hostile, TwoStatesForManySymbols_AreRefused) {
  AlignedBuffer scratch;
  const Case few = make_case(ElementType::f32, 8192, "weights", Mode::planes);
  Case many = make_case(ElementType::f32, 8193, "weights", Mode::planes);
  // Behind the form stands the kind of the highest plane.
  ASSERT_EQ(few.chunk[1], 5);
  ASSERT_EQ(many.chunk[1], 3);
  EXPECT_TRUE(decode(many, many.side, many.chunk, scratch).ok());
  many.chunk[1] = 5;
  EXPECT_EQ(decode(many, many.side, many.chunk, scratch).code(), StatusCode::corrupt);
}

TEST(Tensor_Hostile, EveryTruncationFails) {
  AlignedBuffer scratch;
  for (const Case& c : cases()) {
    for (std::size_t size = 0; size < c.chunk.size(); size += size < 600 ? 1 : 37)
      EXPECT_EQ(decode(c, c.side, Bytes(c.chunk.begin(), c.chunk.begin() + static_cast<std::ptrdiff_t>(size)), scratch)
                    .code(),
                StatusCode::corrupt)
          << mode_name(c.mode) << ' ' << size;
    Bytes longer = c.chunk;
    longer.push_back(0);
    EXPECT_EQ(decode(c, c.side, longer, scratch).code(), StatusCode::corrupt) << mode_name(c.mode);
    longer = c.side;
    longer.push_back(0);
    EXPECT_EQ(decode(c, longer, c.chunk, scratch).code(), StatusCode::corrupt) << mode_name(c.mode);
  }
}

TEST(Tensor_Hostile, NoiseForAChunkFails) {
  AlignedBuffer scratch;
  Case c = make_case(ElementType::f32, 3000, "weights", Mode::planes);
  std::mt19937 random(11);
  for (int trial = 0; trial < 2000; ++trial) {
    Bytes noise(random() % 4000);
    for (auto& byte : noise) byte = static_cast<std::uint8_t>(random());
    if (!noise.empty()) noise[0] = 1;
    for (std::size_t k = 1; k < 5 && k < noise.size(); ++k) noise[k] %= 5;
    (void)decode(c, c.side, noise, scratch);
  }
}

TEST(Tensor_Hostile, ScalesOutOfRangeAreRefused) {
  const TensorDescription description = description_of(ElementType::f32, 10);
  for (const std::uint32_t bits : {0u, 0x7fc00000u, 0x7f800000u, 0xbf800000u, 0x40000001u, 0x3b7fffffu}) {
    Bytes side(4);
    put(side, 0, 4, bits);
    EXPECT_EQ(tensor_needs(description, Mode::delta, side).status().code(), StatusCode::corrupt) << bits;
  }
  Bytes side(4);
  put(side, 0, 4, 0x3f800000u);
  EXPECT_TRUE(tensor_needs(description, Mode::delta, side).ok());
}

}  // namespace
}  // namespace quern::codec::tensor
