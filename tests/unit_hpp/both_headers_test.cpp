// The wrapper and the library's own C++ headers in one file: the library's names win, the wrapper's are under quernxx.
#include <type_traits>

#include <gtest/gtest.h>

#include <quern/compress.h>
#include <quern/library.h>
#include <quern/metrics.h>
#include <quern/survey.h>
#include <quern/quern.hpp>

namespace {

static_assert(std::is_same_v<decltype(quern::StreamInfo::dtype), quern::DType>, "the library's own");
static_assert(std::is_same_v<quernxx::StreamInfo, quern_stream_info>, "the wrapper's");
static_assert(std::is_same_v<quern::Error, quernxx::Error>, "a name that only the wrapper has");

TEST(BothHeaders, EitherInterface_WritesTheSameStream) {
  std::vector<float> values(500);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 17) * 0.25f;
  quernxx::Context context;
  const auto wrapped =
      quernxx::compress(context, quernxx::Params("abs=0.01"), quernxx::ConstArray(values.data(), {500}));

  std::vector<std::uint8_t> stream;
  quern::VectorSink sink(stream);
  quern::CompressOptions options;
  options.bound = {quern::BoundKind::abs, 0.01};
  const std::uint64_t extent = values.size();
  const auto shape = quern::Shape::make({&extent, 1});
  ASSERT_TRUE(shape.ok());
  const auto report =
      quern::compress({values.data(), quern::DType::f32, shape.value()}, options, quern::builtin_codecs(), {}, sink);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(wrapped, stream);
}

}  // namespace
