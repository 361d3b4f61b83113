// Streams read through a callback, and what else a header holds: metadata and fill values.
#include <cstring>
#include <numeric>

#include "tests/unit_capi/handles.h"

namespace quern::testing {
namespace {

/// Bytes behind a quern_source, which counts what is read and fails where it is told to.
struct Counted {
  std::vector<std::uint8_t> bytes;
  std::uint64_t read = 0;
  std::uint64_t fails_from = UINT64_MAX;

  quern_source source() {
    quern_source out = QUERN_SOURCE_INIT;
    out.size = bytes.size();
    out.user = this;
    out.read = [](void* user, std::uint64_t offset, void* to, std::uint64_t size) {
      auto& self = *static_cast<Counted*>(user);
      if (offset + size > self.bytes.size() || offset >= self.fails_from) return 1;
      std::memcpy(to, self.bytes.data() + offset, size);
      self.read += size;
      return 0;
    };
    return out;
  }
};

class Source : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kRows = 256, kColumns = 1024;

  Source() : context(make_context()), values(kRows * kColumns) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 2654435761u % 1000003u);
  }

  Counted made(const char* text) {
    const auto params = make_params(text);
    return {compressed(context.get(), params.get(), make_array(QUERN_F32, {kRows, kColumns}, values.data()))};
  }

  ContextHandle context;
  std::vector<float> values;
};

TEST_F(Source, Region_IsThatOfTheMemory_AndReadsAFractionOfTheBytes) {
  values.resize(16 * values.size());  // several segments
  std::vector<float> more(values.begin(), values.begin() + kRows * kColumns);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = more[i % more.size()];
  const auto params = make_params("abs=1e-3 codec=lorenzo");
  Counted counted{
      compressed(context.get(), params.get(), make_array(QUERN_F32, {16 * kRows, kColumns}, values.data()))};
  const quern_source source = counted.source();
  const std::uint64_t begin[] = {10, 7}, end[] = {14, 1000};
  std::vector<float> box(4 * 993), same(box.size());
  quern_array array = make_array(QUERN_F32, {4, 993}, box.data());
  ASSERT_EQ(quern_source_region(context.get(), &source, begin, end, &array), QUERN_OK)
      << quern_last_error(context.get());
  quern_array other = make_array(QUERN_F32, {4, 993}, same.data());
  ASSERT_EQ(quern_decompress_region(context.get(), counted.bytes.data(), counted.bytes.size(), begin, end, &other),
            QUERN_OK);
  EXPECT_EQ(std::memcmp(box.data(), same.data(), box.size() * sizeof(float)), 0);
  EXPECT_NEAR(box[0], values[10 * kColumns + 7], 1e-3);
  EXPECT_LT(counted.read, counted.bytes.size() / 2);
}

TEST_F(Source, Level_IsThatOfTheMemory) {
  Counted counted = made("abs=1 codec=stencil layout=levels");
  const quern_source source = counted.source();
  std::uint64_t extents[QUERN_MAX_RANK] = {};
  ASSERT_EQ(quern_level_extents(context.get(), counted.bytes.data(), counted.bytes.size(), 1, nullptr, extents),
            QUERN_OK);
  std::vector<float> level(extents[0] * extents[1]), same(level.size());
  quern_array array = make_array(QUERN_F32, {extents[0], extents[1]}, level.data());
  ASSERT_EQ(quern_source_level(context.get(), &source, 1, &array), QUERN_OK) << quern_last_error(context.get());
  quern_array other = make_array(QUERN_F32, {extents[0], extents[1]}, same.data());
  ASSERT_EQ(quern_decompress_level(context.get(), counted.bytes.data(), counted.bytes.size(), 1, &other), QUERN_OK);
  EXPECT_EQ(std::memcmp(level.data(), same.data(), level.size() * sizeof(float)), 0);
  EXPECT_LT(counted.read, counted.bytes.size());
}

TEST_F(Source, FailingRead_IsAnIoError_AndACutStreamIsTruncated) {
  Counted counted = made("abs=1e-3 codec=lorenzo");
  quern_source source = counted.source();
  const std::uint64_t begin[] = {0, 0}, end[] = {kRows, kColumns};
  std::vector<float> all(values.size());
  quern_array array = make_array(QUERN_F32, {kRows, kColumns}, all.data());
  counted.fails_from = counted.bytes.size() / 2;
  EXPECT_EQ(quern_source_region(context.get(), &source, begin, end, &array), QUERN_ERROR_IO);
  counted.fails_from = UINT64_MAX;
  source.size /= 2;
  const quern_status cut = quern_source_region(context.get(), &source, begin, end, &array);
  EXPECT_GE(cut, QUERN_ERROR_BAD_MAGIC);
  EXPECT_LE(cut, QUERN_ERROR_TRAILING_DATA);
}

TEST_F(Source, WithoutAReader_IsRefused) {
  quern_source source = QUERN_SOURCE_INIT;
  const std::uint64_t corner[] = {0, 0};
  quern_array array = make_array(QUERN_F32, {1, 1}, values.data());
  EXPECT_EQ(quern_source_region(context.get(), &source, corner, corner, &array), QUERN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(quern_source_level(context.get(), nullptr, 1, &array), QUERN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(quern_source_level(nullptr, &source, 1, &array), QUERN_ERROR_INVALID_ARGUMENT);
}

TEST_F(Source, MetadataAndFills_ComeBackFromTheHeaderAlone) {
  const auto params = make_params("abs=1e-3");
  std::vector<std::uint8_t> text(5000, 'q');  // packed
  std::iota(text.begin(), text.begin() + 100, std::uint8_t{0});
  ASSERT_EQ(quern_params_set_metadata(params.get(), text.data(), text.size()), QUERN_OK);
  const float fills[] = {-999.f, 1e20f};
  for (const float& fill : fills) ASSERT_EQ(quern_params_add_fill(params.get(), QUERN_F32, &fill), QUERN_OK);
  const auto stream = compressed(context.get(), params.get(), make_array(QUERN_F32, {1000}, values.data()));
  quern_stream_info info = QUERN_STREAM_INFO_INIT;
  ASSERT_EQ(quern_inspect(stream.data(), stream.size(), &info), QUERN_OK);

  std::uint64_t needed = 0;
  EXPECT_EQ(quern_stream_metadata(stream.data(), info.header_bytes, nullptr, 0, &needed),
            QUERN_ERROR_DESTINATION_TOO_SMALL);
  ASSERT_EQ(needed, text.size());
  std::vector<std::uint8_t> back(needed);
  EXPECT_EQ(quern_stream_metadata(stream.data(), info.header_bytes, back.data(), back.size(), nullptr), QUERN_OK);
  EXPECT_EQ(back, text);
  ASSERT_EQ(info.fills, 2u);
  for (std::uint32_t i = 0; i < 2; ++i) {
    float fill = 0;
    EXPECT_EQ(quern_stream_fill(stream.data(), info.header_bytes, i, &fill), QUERN_OK);
    EXPECT_EQ(fill, fills[i]);
  }
  float fill = 0;
  EXPECT_EQ(quern_stream_fill(stream.data(), info.header_bytes, 2, &fill), QUERN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(quern_stream_fill(stream.data(), info.header_bytes - 1, 0, &fill), QUERN_ERROR_TRUNCATED);
}

}  // namespace
}  // namespace quern::testing
