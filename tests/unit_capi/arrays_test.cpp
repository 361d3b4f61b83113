// Strided arrays, DLPack tensors, and descriptors that make no sense.
#include <cmath>
#include <cstring>
#include <numeric>

#include "tests/unit_capi/handles.h"

namespace quern::testing {
namespace {

std::vector<double> ramp(std::size_t n) {
  std::vector<double> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = std::sin(0.1 * static_cast<double>(i)) + static_cast<double>(i % 7);
  return values;
}

/// Mirrors of the public DLPack structs, written from its specification a second time.
struct Tensor {
  void* data;
  std::int32_t device_type;
  std::int32_t device_id;
  std::int32_t ndim;
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
  std::int64_t* shape;
  std::int64_t* strides;
  std::uint64_t byte_offset;
};

TEST(StridedArray, ColumnMajorAndPacked_GiveTheSameStream) {
  const auto context = make_context();
  const auto params = make_params("abs=1e-6");
  const std::uint64_t kRows = 19;
  const std::uint64_t kColumns = 23;
  const std::vector<double> column_major = ramp(kRows * kColumns);
  std::vector<double> row_major(column_major.size());
  for (std::uint64_t r = 0; r < kRows; ++r)
    for (std::uint64_t c = 0; c < kColumns; ++c) row_major[r * kColumns + c] = column_major[c * kRows + r];
  quern_array strided = make_array(QUERN_F64, {kRows, kColumns}, const_cast<double*>(column_major.data()));
  strided.strides[0] = 1;
  strided.strides[1] = static_cast<std::int64_t>(kRows);
  const auto stream = compressed(context.get(), params.get(), strided);
  EXPECT_EQ(stream,
            compressed(context.get(), params.get(), make_array(QUERN_F64, {kRows, kColumns}, row_major.data())));

  std::vector<double> back(column_major.size(), -1);
  strided.data = back.data();
  ASSERT_EQ(quern_decompress(context.get(), stream.data(), stream.size(), &strided), QUERN_OK);
  for (std::size_t i = 0; i < back.size(); ++i) EXPECT_LE(std::fabs(back[i] - column_major[i]), 1e-6) << i;
}

TEST(StridedArray, NegativeStridesAndGaps_TouchNothingElse) {
  const auto context = make_context();
  const auto params = make_params("lossless");
  std::vector<std::int16_t> memory(200);
  std::iota(memory.begin(), memory.end(), std::int16_t{100});
  quern_array array = make_array(QUERN_I16, {5, 6}, memory.data() + 150);
  array.strides[0] = -20;
  array.strides[1] = 3;
  const auto stream = compressed(context.get(), params.get(), array);
  std::vector<std::int16_t> back(200, -7);
  array.data = back.data() + 150;
  ASSERT_EQ(quern_decompress(context.get(), stream.data(), stream.size(), &array), QUERN_OK);
  std::size_t written = 0;
  for (std::int64_t i = 0; i < 200; ++i) {
    bool inside = false;
    for (std::int64_t r = 0; r < 5; ++r)
      for (std::int64_t c = 0; c < 6; ++c) inside = inside || 150 - 20 * r + 3 * c == i;
    EXPECT_EQ(back[static_cast<std::size_t>(i)], inside ? memory[static_cast<std::size_t>(i)] : -7) << i;
    written += inside ? 1 : 0;
  }
  EXPECT_EQ(written, 30u);
}

TEST(StridedArray, ZeroStrideOutput_IsRefused) {
  const auto context = make_context();
  const auto params = make_params("lossless");
  std::vector<float> values(12, 1.0f);
  const auto stream = compressed(context.get(), params.get(), make_array(QUERN_F32, {3, 4}, values.data()));
  quern_array array = make_array(QUERN_F32, {3, 4}, values.data());
  array.strides[1] = 1;
  EXPECT_EQ(quern_decompress(context.get(), stream.data(), stream.size(), &array), QUERN_ERROR_INVALID_ARGUMENT);
}

TEST(StridedArray, CopyCountsAgainstTheMemoryLimit) {
  quern_context_desc desc = QUERN_CONTEXT_DESC_INIT;
  desc.memory_limit = 1000;
  const auto context = make_context(&desc);
  const auto params = make_params("lossless");
  std::vector<double> values(400);
  quern_array array = make_array(QUERN_F64, {200}, values.data());
  array.strides[0] = 2;
  std::uint64_t size = 0;
  std::vector<std::uint8_t> stream(10000);
  EXPECT_EQ(quern_compress(context.get(), params.get(), &array, stream.data(), stream.size(), &size, nullptr),
            QUERN_ERROR_MEMORY_LIMIT);
}

TEST(ArrayInit, NonsenseIsRefusedWithAReason) {
  quern_array array;
  const std::uint64_t extents[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
  const std::uint64_t huge[2] = {UINT64_C(1) << 40, UINT64_C(1) << 40};
  EXPECT_EQ(quern_array_init(&array, QUERN_F32, 9, extents, nullptr), QUERN_ERROR_INVALID_SHAPE);
  EXPECT_EQ(quern_array_init(&array, QUERN_F32, 2, huge, nullptr), QUERN_ERROR_INVALID_SHAPE);
  EXPECT_EQ(quern_array_init(&array, 7, 1, extents, nullptr), QUERN_ERROR_INVALID_ARGUMENT);
  EXPECT_STRNE(quern_last_error(nullptr), "");
  EXPECT_EQ(quern_array_init(&array, -3, 1, extents, nullptr), QUERN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(quern_array_init(&array, QUERN_F32, 1, nullptr, nullptr), QUERN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(quern_array_init(nullptr, QUERN_F32, 1, extents, nullptr), QUERN_ERROR_INVALID_ARGUMENT);
}

TEST(ArrayUse, MissingDataDeviceMemoryAndWildStrides_AreRefused) {
  const auto context = make_context();
  const auto params = make_params("lossless");
  float value = 1;
  std::uint64_t size = 0;
  std::uint8_t stream[1000];
  const auto status = [&](const quern_array& array) {
    return quern_compress(context.get(), params.get(), &array, stream, sizeof(stream), &size, nullptr);
  };
  EXPECT_EQ(status(make_array(QUERN_F32, {1}, nullptr)), QUERN_ERROR_INVALID_ARGUMENT);
  quern_array array = make_array(QUERN_F32, {2}, &value);
  array.strides[0] = INT64_MIN;
  EXPECT_EQ(status(array), QUERN_ERROR_INVALID_ARGUMENT);
  array = make_array(QUERN_F32, {1}, &value);
  array.memory = 5;
  EXPECT_EQ(status(array), QUERN_ERROR_INVALID_ARGUMENT);
  array.memory = QUERN_MEMORY_CUDA;
  array.device = 1000;
  EXPECT_EQ(status(array), QUERN_ERROR_DEVICE_UNAVAILABLE);
}

TEST(DlPack, EveryElementType_IsKnownByCodeAndBits) {
  struct Case {
    std::uint8_t code;
    std::uint8_t bits;
    quern_dtype dtype;
  };
  const Case cases[] = {{0, 8, QUERN_I8},   {0, 16, QUERN_I16}, {0, 32, QUERN_I32}, {0, 64, QUERN_I64},
                        {1, 8, QUERN_U8},   {1, 16, QUERN_U16}, {1, 32, QUERN_U32}, {1, 64, QUERN_U64},
                        {2, 16, QUERN_F16}, {2, 32, QUERN_F32}, {2, 64, QUERN_F64}, {4, 16, QUERN_BF16}};
  std::int64_t shape[2] = {3, 4};
  for (const Case& c : cases) {
    Tensor tensor{&shape, 1, 0, 2, c.code, c.bits, 1, shape, nullptr, 0};
    quern_array array;
    ASSERT_EQ(quern_array_from_dlpack(&tensor, &array), QUERN_OK);
    EXPECT_EQ(array.dtype, c.dtype);
    EXPECT_EQ(array.rank, 2u);
    EXPECT_EQ(array.extents[1], 4u);
    tensor.lanes = 2;
    EXPECT_EQ(quern_array_from_dlpack(&tensor, &array), QUERN_ERROR_UNSUPPORTED);
  }
}

TEST(DlPack, ComplexTensorWithStridesAndOffset_BecomesAnExtraAxis) {
  std::vector<float> memory(100);
  std::int64_t shape[2] = {3, 4};
  std::int64_t strides[2] = {1, 3};
  Tensor tensor{memory.data(), 1, 0, 2, 5, 64, 1, shape, strides, 16};
  quern_array array;
  ASSERT_EQ(quern_array_from_dlpack(&tensor, &array), QUERN_OK);
  EXPECT_EQ(array.dtype, QUERN_F32);
  EXPECT_EQ(array.rank, 3u);
  EXPECT_EQ(array.extents[2], 2u);
  EXPECT_EQ(array.strides[0], 2);
  EXPECT_EQ(array.strides[1], 6);
  EXPECT_EQ(array.strides[2], 1);
  EXPECT_EQ(array.data, memory.data() + 4);
}

TEST(DlPack, ForeignDevicesAndBadShapes_AreRefused) {
  std::int64_t shape[2] = {3, -4};
  quern_array array;
  Tensor tensor{&shape, 1, 0, 2, 2, 32, 1, shape, nullptr, 0};
  EXPECT_EQ(quern_array_from_dlpack(&tensor, &array), QUERN_ERROR_INVALID_SHAPE);
  tensor.ndim = -1;
  EXPECT_EQ(quern_array_from_dlpack(&tensor, &array), QUERN_ERROR_INVALID_SHAPE);
  tensor.ndim = 1;
  tensor.device_type = 4;
  EXPECT_EQ(quern_array_from_dlpack(&tensor, &array), QUERN_ERROR_UNSUPPORTED);
  tensor.device_type = 2;
  ASSERT_EQ(quern_array_from_dlpack(&tensor, &array), QUERN_OK);
  EXPECT_EQ(array.memory, QUERN_MEMORY_CUDA);
}

}  // namespace
}  // namespace quern::testing
