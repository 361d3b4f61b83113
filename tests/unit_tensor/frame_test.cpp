// What callers may ask of the tensor codec, and what it answers: modes, inputs, sizes, needs.
#include <gtest/gtest.h>

#include "libcompress/core/task_runner.h"
#include "tests/unit_tensor/tensor_cases.h"

namespace quern::codec::tensor {
namespace {

TensorRequest asking_for(Mode mode) {
  TensorRequest request;
  request.mode = mode;
  return request;
}

TEST(TensorDescription_Chunks, CoverTheTensorInOrder) {
  for (const std::uint64_t elems : {0, 1, 131072, 131073, 262144}) {
    const TensorDescription description = description_of(ElementType::f64, elems);
    std::uint64_t next = 0;
    for (std::uint64_t i = 0; i < description.chunks(); ++i) {
      EXPECT_EQ(description.chunk_begin(i), next);
      EXPECT_GT(description.chunk_bytes(i), 0u);
      next += description.chunk_bytes(i);
    }
    EXPECT_EQ(next, description.bytes());
  }
  EXPECT_EQ((TensorDescription{ElementType::bf16, TensorShape()}).bytes(), 2u) << "a scalar is one element";
}

TEST(Tensor_Plan, BestIsConstantWhereAllIsTheSame) {
  for (const ElementType type : kAllTypes) {
    const Bytes values = make_values(type, 5000, "constant");
    TensorInputs inputs;
    inputs.values = values;
    const auto plan = plan_tensor(description_of(type, 5000), {}, inputs);
    ASSERT_TRUE(plan.ok());
    EXPECT_EQ(plan->mode, Mode::constant);
    EXPECT_EQ(plan->side.size(), element_bytes(type));
  }
}

TEST(Tensor_Plan, BestIsRawForNoise) {
  const Bytes values = make_values(ElementType::u32, 100000, "noise");
  TensorInputs inputs;
  inputs.values = values;
  const auto plan = plan_tensor(description_of(ElementType::u32, 100000), {}, inputs);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->mode, Mode::raw);
}

TEST(Tensor_Plan, BestTakesTheBaseWhereItHelpsAndOnlyThere) {
  const Bytes base = make_values(ElementType::f32, 100000, "weights", 1);
  const Bytes other = make_values(ElementType::f32, 100000, "weights", 2);
  const Bytes near = drifted(base, 4, 3);
  TensorInputs inputs;
  inputs.base = base;
  inputs.values = near;
  const TensorDescription description = description_of(ElementType::f32, 100000);
  auto plan = plan_tensor(description, {}, inputs);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->mode, Mode::delta);
  inputs.values = other;
  plan = plan_tensor(description, {}, inputs);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->mode, Mode::planes);
}

TEST(Tensor_Plan, DerivesRoundedCopiesAndFallsBackAtOneOther) {
  for (const ElementType type : {ElementType::bf16, ElementType::f16}) {
    const std::size_t elems = 600000;
    const Bytes master = make_values(ElementType::f32, elems, "weights");
    const TensorDescription description = description_of(type, elems);
    // What decoding makes of the master is by definition its copy; bf16 of ordinary floats is checked by hand below.
    TensorInputs inputs;
    inputs.companion = master;
    Bytes copy(2 * elems);
    AlignedBuffer scratch;
    for (std::uint64_t i = 0; i < description.chunks(); ++i)
      ASSERT_TRUE(decode_chunk(description, Mode::derived, {}, i, {}, inputs,
                               std::span(copy).subspan(description.chunk_begin(i), description.chunk_bytes(i)), scratch)
                      .ok());
    inputs.values = copy;
    auto plan = plan_tensor(description, {}, inputs);
    ASSERT_TRUE(plan.ok());
    EXPECT_EQ(plan->mode, Mode::derived);
    EXPECT_TRUE(plan->side.empty());
    copy[2 * elems - 2] ^= 1;
    plan = plan_tensor(description, {}, inputs);
    ASSERT_TRUE(plan.ok());
    EXPECT_EQ(plan->mode, Mode::planes);
    EXPECT_EQ(plan_tensor(description, asking_for(Mode::derived), inputs).status().code(), StatusCode::unsupported);
  }
}

TEST(Tensor_Derived, RoundsToNearestEven) {
  const std::uint32_t masters[] = {0x3f808000, 0x3f818000, 0x3f808001, 0x3f807fff, 0x7f7fffff,
                                   0x80000001, 0x7f800000, 0xff800001, 0x7fc12345};
  const std::uint16_t copies[] = {0x3f80, 0x3f82, 0x3f81, 0x3f80, 0x7f80, 0x8000, 0x7f80, 0xffc0, 0x7fc1};
  Bytes companion(sizeof(masters));
  for (std::size_t i = 0; i < std::size(masters); ++i) put(companion, i, 4, masters[i]);
  TensorInputs inputs;
  inputs.companion = companion;
  Bytes out(sizeof(copies));
  AlignedBuffer scratch;
  ASSERT_TRUE(
      decode_chunk(description_of(ElementType::bf16, std::size(copies)), Mode::derived, {}, 0, {}, inputs, out, scratch)
          .ok());
  for (std::size_t i = 0; i < std::size(copies); ++i)
    EXPECT_EQ(out[2 * i] | out[2 * i + 1] << 8, copies[i]) << std::hex << masters[i];
}

TEST(Tensor_Plan, RefusesInputsThatDoNotFit) {
  const Bytes values = make_values(ElementType::f32, 100, "weights");
  const TensorDescription description = description_of(ElementType::f32, 100);
  TensorInputs inputs;
  inputs.values = std::span(values).first(396);
  EXPECT_EQ(plan_tensor(description, {}, inputs).status().code(), StatusCode::invalid_argument);
  inputs.values = values;
  inputs.base = std::span(values).first(4);
  EXPECT_EQ(plan_tensor(description, {}, inputs).status().code(), StatusCode::invalid_argument);
  inputs.base = {};
  inputs.companion = values;
  inputs.companion_type = ElementType::f64;
  EXPECT_EQ(plan_tensor(description, {}, inputs).status().code(), StatusCode::invalid_argument);
  inputs.companion = {};
  EXPECT_EQ(plan_tensor(description, asking_for(Mode::delta), inputs).status().code(), StatusCode::unsupported);
  EXPECT_EQ(plan_tensor(description, asking_for(static_cast<Mode>(200)), inputs).status().code(),
            StatusCode::unsupported);
  EXPECT_EQ(plan_tensor({static_cast<ElementType>(77), description.shape}, {}, inputs).status().code(),
            StatusCode::invalid_argument);
}

TEST(Tensor_Decode, SaysWhichInputIsMissing) {
  const Bytes base = make_values(ElementType::f32, 5000, "weights");
  const Bytes values = drifted(base, 4, 3);
  const TensorDescription description = description_of(ElementType::f32, 5000);
  TensorInputs inputs;
  inputs.values = values;
  inputs.base = base;
  SerialRunner runner;
  const auto encoded = encode_tensor(description, asking_for(Mode::delta), inputs, runner);
  ASSERT_TRUE(encoded.ok());
  const auto needs = tensor_needs(description, Mode::delta, encoded->side);
  ASSERT_TRUE(needs.ok());
  EXPECT_TRUE(needs->base);
  EXPECT_FALSE(needs->companion);
  Bytes out(values.size());
  EXPECT_EQ(decode_tensor(description, *encoded, {}, out, runner).code(), StatusCode::invalid_argument);
}

TEST(Tensor_Encode, AsksForRoom) {
  const Bytes values = make_values(ElementType::f32, 5000, "weights");
  const TensorDescription description = description_of(ElementType::f32, 5000);
  TensorInputs inputs;
  inputs.values = values;
  const auto plan = plan_tensor(description, {}, inputs);
  ASSERT_TRUE(plan.ok());
  Bytes out(chunk_bound(description, 0));
  AlignedBuffer scratch;
  EXPECT_EQ(encode_chunk(*plan, inputs, 0, std::span(out).first(out.size() - 1), scratch).status().code(),
            StatusCode::destination_too_small);
  EXPECT_EQ(encode_chunk(*plan, inputs, 1, out, scratch).status().code(), StatusCode::invalid_argument);
  EXPECT_TRUE(encode_chunk(*plan, inputs, 0, out, scratch).ok());
}

}  // namespace
}  // namespace quern::codec::tensor
