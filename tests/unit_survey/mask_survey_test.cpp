// What a survey counts, against what was put into the array and against a full decode.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include <quern/compress.h>
#include <quern/survey.h>

#include "libcompress/format/grid/header.h"

namespace quern {
namespace {

constexpr float kFill = -9999.0F;
constexpr std::uint64_t kFillBits = 0xC61C3C00;  // of kFill

Shape shape_of(const Vector<std::uint64_t>& extents) { return Shape::make(extents).value(); }

std::vector<float> ramp(std::uint64_t count) {
  std::vector<float> out(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(i % 1013) * 0.37F;
  return out;
}

Vector<std::uint8_t> compressed(const std::vector<float>& values, const Shape& shape, const CompressOptions& options) {
  Vector<std::uint8_t> stream;
  VectorSink sink(stream);
  const auto report =
      compress(ArrayView{values.data(), DType::f32, shape}, options, builtin_codecs(), Execution{}, sink);
  EXPECT_TRUE(report.ok()) << report.status().text();
  return stream;
}

CompressOptions absolute(double bound) {
  CompressOptions options;
  options.bound = {BoundKind::abs, bound};
  options.goal = "speed";  // what repeats is masked under a bound alone
  return options;
}

Result<MaskSurvey> survey(const Vector<std::uint8_t>& stream, const Execution& execution = {}) {
  MemorySource source(stream);
  return survey_masks(source, execution);
}

TEST(MaskSurvey, PlainValues_NothingIsMasked) {
  const auto found = survey(compressed(ramp(50000), shape_of({50000}), absolute(1e-3)));
  ASSERT_TRUE(found.ok()) << found.status().text();
  EXPECT_EQ(found->elems(), 0u);
  EXPECT_EQ(found->mask_bytes, 0u);
  EXPECT_EQ(found->masked_segments, 0u);
}

TEST(MaskSurvey, EveryKind_CountedAsWhatItIs) {
  auto values = ramp(std::uint64_t{120} * 100 * 60);
  for (std::size_t i = 0; i < 70000; ++i) values[i] = std::numeric_limits<float>::quiet_NaN();
  for (std::size_t i = 100000; i < 100123; ++i) values[i] = std::numeric_limits<float>::infinity();
  for (std::size_t i = 200000; i < 200045; ++i) values[i] = -std::numeric_limits<float>::infinity();
  for (std::size_t i = 300000; i < 333333; ++i) values[i] = kFill;
  CompressOptions options = absolute(1e-3);
  options.fill_bits = {kFillBits};
  options.settings = {{"mask", "1"}};
  const Shape shape = shape_of({120, 100, 60});
  const auto stream = compressed(values, shape, options);
  const auto found = survey(stream);
  ASSERT_TRUE(found.ok()) << found.status().text();
  EXPECT_EQ(found->nan_elems, 70000u);
  EXPECT_EQ(found->infinite_elems, 168u);
  EXPECT_EQ(found->fill_elems, 33333u);
  EXPECT_EQ(found->repeated_elems, 0u);
  EXPECT_GT(found->mask_bytes, 0u);
  EXPECT_LT(found->mask_bytes, stream.size());
  EXPECT_GE(found->masked_segments, 1u);
  EXPECT_EQ(found->level_masks, 0u);

  options.settings = {{"mask", "2"}};
  const auto by_levels = survey(compressed(values, shape, options));
  ASSERT_TRUE(by_levels.ok()) << by_levels.status().text();
  EXPECT_EQ(by_levels->elems(), found->elems());
  EXPECT_EQ(by_levels->masked_segments, found->masked_segments);
  EXPECT_EQ(by_levels->level_masks, found->masked_segments);
}

TEST(MaskSurvey, RepeatedLand_CountedAsRepeatedAndAsReported) {
  auto values = ramp(std::uint64_t{64} * 128 * 128);
  std::uint64_t land = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i / 128 * 7919 % 97 >= 40) continue;
    values[i] = 1e30F;
    ++land;
  }
  Vector<std::uint8_t> stream;
  VectorSink sink(stream);
  const Shape shape = shape_of({64, 128, 128});
  const auto report =
      compress(ArrayView{values.data(), DType::f32, shape}, absolute(1e-3), builtin_codecs(), Execution{}, sink);
  ASSERT_TRUE(report.ok());
  const auto found = survey(stream);
  ASSERT_TRUE(found.ok()) << found.status().text();
  EXPECT_EQ(found->elems(), report->masked_elems);
  EXPECT_EQ(found->repeated_elems, report->masked_elems);
  EXPECT_EQ(found->repeated_elems, land);
}

TEST(MaskSurvey, ManyKindsOfNan_VerbatimOnesAreCounted) {
  auto values = ramp(40000);
  for (std::uint32_t i = 0; i < 500; ++i) values[std::size_t{i} * 7] = std::bit_cast<float>(0x7FC00000U + i);
  const auto found = survey(compressed(values, shape_of({200, 200}), absolute(1e-3)));
  ASSERT_TRUE(found.ok()) << found.status().text();
  EXPECT_EQ(found->nan_elems, 500u);
}

TEST(MaskSurvey, WholeChunksMasked_EmptyChunksAreCounted) {
  const std::vector<float> values(std::size_t{1} << 20, std::numeric_limits<float>::quiet_NaN());
  const auto stream = compressed(values, shape_of({64, 128, 128}), absolute(1e-3));
  MemorySource source(stream);
  const auto info = inspect(source, builtin_codecs());
  ASSERT_TRUE(info.ok());
  const auto found = survey(stream);
  ASSERT_TRUE(found.ok()) << found.status().text();
  EXPECT_EQ(found->nan_elems, std::uint64_t{1} << 20);
  EXPECT_EQ(found->empty_chunks, info->chunks);
  EXPECT_EQ(found->masked_segments, info->segments);
}

TEST(MaskSurvey, ThreadsOffsetsAndProgress_SameCounts) {
  auto values = ramp(1 << 20);
  for (std::size_t i = 0; i < values.size(); i += 9) values[i] = std::numeric_limits<float>::quiet_NaN();
  const auto stream = compressed(values, shape_of({64, 128, 128}), absolute(1e-3));
  Vector<std::uint8_t> after(7, 0xAB);
  after.insert(after.end(), stream.begin(), stream.end());
  MemorySource source(after);
  Execution execution;
  execution.threads = 3;
  std::uint64_t last = 0;
  execution.progress = [&](std::uint64_t done, std::uint64_t total) {
    EXPECT_GT(done, last);
    EXPECT_LE(done, total);
    last = done;
    return true;
  };
  const auto one = survey(stream);
  const auto many = survey_masks(source, execution, 7);
  ASSERT_TRUE(one.ok() && many.ok());
  EXPECT_EQ(one->nan_elems, (values.size() + 8) / 9);
  EXPECT_EQ(many->nan_elems, one->nan_elems);
  EXPECT_EQ(many->mask_bytes, one->mask_bytes);
  EXPECT_GT(last, 0u);
  execution.progress = [](std::uint64_t, std::uint64_t) { return false; };
  EXPECT_EQ(survey_masks(source, execution, 7).status().code(), StatusCode::cancelled);
}

TEST(MaskSurvey, SmallMemory_RefusedBeforeAllocating) {
  auto values = ramp(1 << 20);
  values[5] = std::numeric_limits<float>::quiet_NaN();
  Execution execution;
  execution.memory_limit = 4096;
  const auto found = survey(compressed(values, shape_of({64, 128, 128}), absolute(1e-3)), execution);
  EXPECT_EQ(found.status().code(), StatusCode::memory_limit);
}

TEST(MaskSurvey, DamagedOrCutHeads_RefusedAndNamed) {
  auto values = ramp(1 << 20);
  // Without a pattern, so that the first mask is longer than what is damaged here.
  std::mt19937 random(3);
  for (float& value : values)
    if (random() % 9 == 0) value = std::numeric_limits<float>::quiet_NaN();
  const auto stream = compressed(values, shape_of({64, 128, 128}), absolute(1e-3));
  MemorySource source(stream);
  const auto header = read_header(source);
  ASSERT_TRUE(header.ok());
  for (std::uint64_t at = 0; at < header->bytes + 600; ++at) {
    SCOPED_TRACE(at);
    auto bad = stream;
    bad[static_cast<std::size_t>(at)] ^= 0x10;
    const auto found = survey(bad);
    ASSERT_FALSE(found.ok());
    const int code = static_cast<int>(found.status().code());
    EXPECT_TRUE(code >= 20 && code < 40) << found.status().text();
    const bool named = found.status().text().find("segment 0") != std::string::npos;
    EXPECT_TRUE(named || at < header->bytes) << found.status().text();
  }
  for (std::size_t bytes = 0; bytes < header->bytes + 100; ++bytes) {
    SCOPED_TRACE(bytes);
    EXPECT_FALSE(survey({stream.begin(), stream.begin() + static_cast<std::ptrdiff_t>(bytes)}).ok());
  }
}

TEST(MaskSurvey, EmptyArray_NothingIsMasked) {
  const auto found = survey(compressed({}, shape_of({5, 0, 3}), absolute(1)));
  ASSERT_TRUE(found.ok()) << found.status().text();
  EXPECT_EQ(found->elems(), 0u);
}

}  // namespace
}  // namespace quern
