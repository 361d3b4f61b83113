// The codec for arrays: the conformance suite, and its parameters.
#include <gtest/gtest.h>

#include "examples/codec/array_codec.h"
#include "tests/conformance/codec_conformance.h"
#include "tests/support/instrumented.h"

namespace quern::codec::packing {
namespace {

class PackingConformance : public ::testing::TestWithParam<DType> {};

TEST_P(PackingConformance, EveryShapeDataAndBound_KeepsItsPromises) {
  testing::expect_conformance(array_codec(), GetParam());
}

TEST_P(PackingConformance, Threads_GiveTheSameBytes) {
  testing::expect_same_bytes_for_threads(array_codec(), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Types, PackingConformance, ::testing::ValuesIn(testing::all_dtypes()),
                         [](const auto& type) { return std::string(dtype_name(type.param)); });

TEST(ArrayCodec, ParametersThatBreakARule_AreCorrupt) {
  const auto code_of = [](const Vector<std::uint8_t>& params, std::uint16_t version = 1) {
    OpenRequest request;
    request.shape = testing::shape_of({5});
    request.version = version;
    request.params = params;
    return array_codec().open(request).status().code();
  };
  EXPECT_EQ(code_of({7}), StatusCode::ok);
  EXPECT_EQ(code_of({3}), StatusCode::corrupt);
  EXPECT_EQ(code_of({13}), StatusCode::corrupt);
  EXPECT_EQ(code_of({}), StatusCode::corrupt);
  EXPECT_EQ(code_of({7, 7}), StatusCode::corrupt);
  EXPECT_EQ(code_of({7}, 2), StatusCode::unsupported_version);
}

TEST(ArrayCodec, SmoothArray_IsMadeSmaller) {
  const ArrayCodec* const codecs[] = {&array_codec()};
  const Registry registry(codecs);
  const testing::OwnedArray array =
      testing::make_array(DType::f32, testing::shape_of({100, 200}), testing::Data::smooth);
  CompressOptions options;
  options.bound = {BoundKind::rel, 1e-3};
  options.codec = "packing";
  const auto stream = testing::compress_to_bytes(array, options, registry, 1, nullptr);
  EXPECT_LT(stream.size(), array.bytes.size() / 3);
}

}  // namespace
}  // namespace quern::codec::packing
