// Golden tensors decode to their values, and are what this version writes; those in former/ are what it wrote before.
#include <gtest/gtest.h>

#include "tests/unit_tensor/golden_tensor.h"

namespace quern::codec::tensor {
namespace {

TEST(Tensor_Golden, DecodesAndIsWrittenAgain) {
  std::size_t found = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(QUERN_GOLDEN_TENSORS)) {
    if (entry.is_directory()) continue;
    const GoldenTensor golden = read_golden(entry.path());
    ASSERT_FALSE(golden.values.empty()) << entry.path();
    TensorInputs inputs;
    inputs.base = golden.base;
    inputs.companion = golden.companion;
    Bytes out(golden.values.size());
    AlignedBuffer scratch;
    const Status status =
        decode_chunk(golden.description, golden.mode, golden.side, 0, golden.chunk, inputs, out, scratch);
    ASSERT_TRUE(status.ok()) << entry.path() << ": " << status.text();
    EXPECT_EQ(out, golden.values) << entry.path();
    ++found;
    if (entry.path().parent_path().filename() == "former") continue;

    inputs.values = golden.values;
    TensorRequest request;
    request.mode = golden.mode;
    const auto plan = plan_tensor(golden.description, request, inputs);
    ASSERT_TRUE(plan.ok()) << entry.path();
    EXPECT_TRUE(std::equal(plan->side.begin(), plan->side.end(), golden.side.begin(), golden.side.end()))
        << entry.path();
    Bytes chunk(chunk_bound(golden.description, 0));
    const auto size = encode_chunk(*plan, inputs, 0, chunk, scratch);
    ASSERT_TRUE(size.ok()) << entry.path();
    chunk.resize(*size);
    EXPECT_EQ(chunk, golden.chunk) << entry.path();
  }
  EXPECT_GE(found, 16u);
}

}  // namespace
}  // namespace quern::codec::tensor
