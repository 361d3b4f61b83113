// The codec for records: parameters, and sections of every type and bound through the pipeline.
#include <gtest/gtest.h>

#include <quern/metrics.h>
#include <quern/records.h>

#include "examples/codec/record_codec.h"
#include "tests/conformance/bound_cases.h"
#include "tests/support/array_cases.h"

namespace quern::codec::packing {
namespace {

RecordLayout two_sections() {
  RecordLayout layout;
  layout.items = 10;
  layout.segment_items = 10;
  RecordSection values;
  values.name = "values";
  values.items = 10;
  values.item_elems = 3;
  RecordSection rows = values;
  rows.name = "rows";
  rows.item_elems = 1000;
  layout.sections = {values, rows};
  return layout;
}

TEST(RecordCodec, Parameters_AreAStrideForEachSection) {
  const RecordLayout layout = two_sections();
  SerialRunner runner;
  const auto encoder = record_codec().plan({&layout, {}, &runner, {}});
  ASSERT_TRUE(encoder.ok());
  const auto params = (*encoder)->params();
  EXPECT_EQ(Vector<std::uint8_t>(params.begin(), params.end()), (Vector<std::uint8_t>{7, 3, 1}));
}

TEST(RecordCodec, ParametersThatBreakARule_AreCorrupt) {
  const RecordLayout layout = two_sections();
  const auto code_of = [&](const Vector<std::uint8_t>& params, std::uint16_t version = 1) {
    return record_codec().open({&layout, version, params}).status().code();
  };
  EXPECT_EQ(code_of({7, 3, 1}), StatusCode::ok);
  EXPECT_EQ(code_of({3, 3, 1}), StatusCode::corrupt);
  EXPECT_EQ(code_of({13, 3, 1}), StatusCode::corrupt);
  EXPECT_EQ(code_of({7, 0, 1}), StatusCode::corrupt);
  EXPECT_EQ(code_of({7, 65, 1}), StatusCode::corrupt);
  EXPECT_EQ(code_of({7, 3}), StatusCode::corrupt);
  EXPECT_EQ(code_of({7, 3, 1, 1}), StatusCode::corrupt);
  EXPECT_EQ(code_of({}), StatusCode::corrupt);
  EXPECT_EQ(code_of({7, 3, 1}, 2), StatusCode::unsupported_version);
}

TEST(RecordCodec, UnknownSettings_AreRefused) {
  const RecordLayout layout = two_sections();
  SerialRunner runner;
  const auto encoder = record_codec().plan({&layout, {}, &runner, {{"level", "9"}}});
  EXPECT_EQ(encoder.status().code(), StatusCode::unknown_setting);
}

/// One section of a type, a kind of data and a bound, there and back.
void expect_section(DType dtype, testing::Data data, const ErrorBound& bound) {
  const testing::OwnedArray array = testing::make_array(dtype, testing::shape_of({311, 3}), data);
  RecordLayout layout;
  layout.items = 311;
  layout.segment_items = 100;
  RecordSection section;
  section.name = "values";
  section.dtype = dtype;
  section.items = 311;
  section.item_elems = 3;
  section.requested = bound;
  layout.sections = {section};
  const SectionData views[] = {{array.bytes, {}}};
  RecordOptions options;
  options.codec = &record_codec();
  Vector<std::uint8_t> stream;
  VectorSink sink(stream);
  const auto report = compress_records(layout, views, options, {}, sink);
  ASSERT_TRUE(report.ok()) << report.status().text();
  const RecordCodec* const codecs[] = {&record_codec()};
  const RecordRegistry registry(codecs);
  MemorySource source(stream);
  const auto reader = RecordReader::open(source, registry, {});
  ASSERT_TRUE(reader.ok()) << reader.status().text();
  Vector<std::uint8_t> back(array.bytes.size(), 0xA5);
  const Status read = (*reader)->read_items(0, 0, 311, back);
  ASSERT_TRUE(read.ok()) << read.text();
  const auto check =
      check_bound(array.view(), {back.data(), dtype, array.shape}, report->layout.sections[0].enforced, {}, {});
  ASSERT_TRUE(check.ok());
  EXPECT_EQ(check->violations, 0u);
  EXPECT_EQ(check->specials_lost, 0u);
}

TEST(RecordCodec, EveryTypeDataAndBound_KeepsItsPromises) {
  for (const DType dtype : testing::all_dtypes())
    for (const testing::Data data : testing::all_data())
      for (const testing::BoundCase& bound : testing::bounds_for(dtype)) {
        SCOPED_TRACE(std::string(dtype_name(dtype)) + " " + data_name(data) + " " + bound.name);
        expect_section(dtype, data, bound.bound);
        if (HasFailure()) return;
      }
}

}  // namespace
}  // namespace quern::codec::packing
