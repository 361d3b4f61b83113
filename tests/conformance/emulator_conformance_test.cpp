// The code that warps run, on the emulator, over the whole conformance set: bytes and elements as on the CPU.
#include <gtest/gtest.h>

#include <string>

#include <quern/compress.h>

#include "tests/conformance/bound_cases.h"
#include "tests/conformance/emulated_lorenzo.h"
#include "tests/support/array_cases.h"
#include "tests/support/thorough.h"

namespace quern {
namespace {

using testing::BoundCase;
using testing::bounds_for;
using testing::Data;
using testing::OwnedArray;

class EmulatorConformance : public ::testing::TestWithParam<DType> {};

TEST_P(EmulatorConformance, EveryShapeDataAndBound_GivesTheSameBytesAndElements) {
  const DType dtype = GetParam();
  testing::EmulatorState::instance().reset(20261121);
  const testing::EmulatedLorenzo emulated;
  const ArrayCodec* const codecs[] = {&emulated};
  const Registry registry(codecs);
  auto turn = static_cast<std::size_t>(dtype);
  for (const Shape& shape : testing::edge_shapes()) {
    turn += 1;
    for (const Data data : testing::all_data()) {
      const OwnedArray array = testing::make_array(dtype, shape, data);
      turn += 1;  // the bounds of a type are even in number: every fourth one, others for the next kind of data
      for (const BoundCase& bound : bounds_for(dtype)) {
        if (!testing::thorough() && ++turn % 4 != 0) continue;
        SCOPED_TRACE(std::string(dtype_name(dtype)) + " " + shape.text() + " " + data_name(data) + " " + bound.name);
        CompressOptions options;
        options.bound = bound.bound;
        options.codec = "lorenzo";
        Vector<std::uint8_t> stream;
        VectorSink sink(stream);
        const auto result = compress(array.view(), options, registry, Execution{}, sink);
        ASSERT_TRUE(result.ok()) << result.status().text();
        OwnedArray back{Vector<std::uint8_t>(array.bytes.size(), 0xa5), array.dtype, array.shape};
        MemorySource source(stream);
        const auto decoded = decompress(source, {back.bytes.data(), back.dtype, back.shape}, registry, Execution{});
        ASSERT_TRUE(decoded.ok()) << decoded.status().text();
        ASSERT_FALSE(HasNonfatalFailure());
      }
    }
  }
  EXPECT_GT(emulated.chunks(), 1000u);
  EXPECT_EQ(testing::EmulatorState::instance().poison_reads(), 0u);
  EXPECT_EQ(testing::EmulatorState::instance().races(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Types, EmulatorConformance, ::testing::ValuesIn(testing::all_dtypes()),
                         [](const auto& type) { return std::string(dtype_name(type.param)); });

}  // namespace
}  // namespace quern
