// Chunks that a choice by encoding made are reused where elements and marks are the same; what comes back keeps its
// bound, whatever masks the pipeline found.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include <quern/compress.h>

namespace quern {
namespace {

struct Case {
  const char* name;
  std::vector<std::uint64_t> extents;
  std::vector<float> values;
};

std::uint64_t product(const std::vector<std::uint64_t>& extents) {
  std::uint64_t n = 1;
  for (const std::uint64_t extent : extents) n *= extent;
  return n;
}

Case smooth(const char* name, std::vector<std::uint64_t> extents) {
  std::vector<float> values(product(extents));
  const std::uint64_t columns = extents.back();
  std::uint32_t random = 1;
  for (std::size_t i = 0; i < values.size(); ++i) {
    random = random * 1664525u + 1013904223u;
    const auto x = static_cast<float>(i % columns);
    const auto y = static_cast<float>(i / columns);
    values[i] = std::sin(x / 9) * std::cos(y / 21) + 0.003F * static_cast<float>(random >> 16) / 65536;
  }
  return {name, std::move(extents), std::move(values)};
}

/// A value of many in every sixth row and column of a part of the outermost axis.
Case patches(float value, std::uint64_t part) {
  Case made = smooth("patches", {4, 48, 50, 54});
  for (std::size_t i = 0; i < made.values.size(); ++i) {
    const std::uint64_t z = i / 54 / 50 % 48;
    const std::uint64_t y = i / 54 % 50;
    if (i / 54 / 50 / 48 == part && z % 6 == 0 && y % 6 == 0) made.values[i] = value;
  }
  return made;
}

Case corner(float value, std::vector<std::uint64_t> extents) {
  Case made = smooth("corner", std::move(extents));
  const std::uint64_t columns = made.extents.back();
  for (std::size_t i = 0; i < made.values.size() / 5; ++i)
    if (i % columns < columns / 3) made.values[i] = value;
  return made;
}

std::vector<Case> cases() {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  return {patches(1e4F, 0),
          patches(1e6F, 3),
          corner(nan, {40, 50, 60}),
          corner(0, {300, 200}),
          corner(nan, {130, 130, 140}),
          smooth("several chunks", {1, 140, 1, 130, 130})};
}

void expect_kept(const Case& field, const CompressOptions& options) {
  const Shape shape = Shape::make(Vector<std::uint64_t>(field.extents.begin(), field.extents.end())).value();
  Vector<std::uint8_t> stream;
  VectorSink sink(stream);
  const ArrayView view{field.values.data(), DType::f32, shape};
  const auto report = compress(view, options, builtin_codecs(), Execution{}, sink);
  ASSERT_TRUE(report.ok()) << report.status().text();
  std::vector<float> back(field.values.size());
  MemorySource source(stream);
  const auto decoded = decompress(source, {back.data(), DType::f32, shape}, builtin_codecs(), Execution{});
  ASSERT_TRUE(decoded.ok()) << decoded.status().text();
  for (std::size_t i = 0; i < back.size(); ++i) {
    const double error = std::fabs(static_cast<double>(back[i]) - static_cast<double>(field.values[i]));
    const bool same = std::memcmp(&back[i], &field.values[i], sizeof(float)) == 0;
    ASSERT_TRUE(same || error <= options.bound.value) << "element " << i;
  }
}

TEST(KeptChunks, OfMaskedArraysAndSeveralChunks_ComeBackWithinTheBound) {
  for (const Case& field : cases()) {
    for (const unsigned effort : {4U, 6U}) {
      CompressOptions options;
      options.bound = {BoundKind::abs, 1e-3};
      options.codec = "stencil";
      options.effort = effort;
      SCOPED_TRACE(::testing::Message() << field.name << " effort " << effort);
      expect_kept(field, options);
    }
  }
}

TEST(KeptChunks, OfIdempotentStreams_ComeBackWithinTheBound) {
  for (const Case& field : {patches(1e4F, 1), corner(0, {300, 200})}) {
    CompressOptions options;
    options.bound = {BoundKind::abs, 1e-3};
    options.idempotent = true;
    SCOPED_TRACE(field.name);
    expect_kept(field, options);
  }
}

// The plan's own memory counts.
TEST(KeptChunks, AMemoryLimitBelowWhatTheChoiceNeeds_IsAnErrorThatSaysSo) {
  const Case field = smooth("limit", {40, 50, 60});
  const Shape shape = Shape::make(Vector<std::uint64_t>(field.extents.begin(), field.extents.end())).value();
  CompressOptions options;
  options.bound = {BoundKind::abs, 1e-3};
  options.codec = "stencil";
  Execution execution;
  execution.memory_limit = field.values.size() * 4;
  Vector<std::uint8_t> stream;
  VectorSink sink(stream);
  const ArrayView view{field.values.data(), DType::f32, shape};
  const auto report = compress(view, options, builtin_codecs(), execution, sink);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.status().code(), StatusCode::memory_limit);
}

}  // namespace
}  // namespace quern
