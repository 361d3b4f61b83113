// Codec auto: which codecs are tried for which goal, and that the best of them is written.
#include <algorithm>
#include <cmath>
#include <set>

#include "libcompress/pipeline/search/sample_array.h"
#include "tests/support/array_cases.h"
#include "tests/unit_pipeline/support.h"

namespace quern::testing {
namespace {

Array wave(DType dtype, std::initializer_list<std::uint64_t> extents, double noise = 0.02) {
  Array a(dtype, shape_of(Vector<std::uint64_t>(extents)));
  OwnedArray owned{Vector<std::uint8_t>(a.bytes.size()), dtype, a.shape};
  std::mt19937 rng(5);
  std::uniform_real_distribution<double> spread(-noise, noise);
  for (std::uint64_t i = 0; i < a.shape.elems(); ++i) {
    const double x = static_cast<double>(i % 61), y = static_cast<double>(i / 61 % 47);
    store_element(owned, i, 60 + 40 * std::sin(0.11 * x + 0.05 * y) + 10 * std::cos(0.2 * y) + spread(rng));
  }
  a.bytes = owned.bytes;
  return a;
}

CompressOptions with_goal(BoundKind kind, double value, const char* goal) {
  CompressOptions options = with_bound(kind, value);
  options.goal = goal;
  return options;
}

std::uint64_t bytes_of(const Array& a, CompressOptions options, const char* codec) {
  options.codec = codec;
  return compress_ok(a, options, builtin_codecs()).size();
}

std::set<std::string> names_of(const CompressReport& report) {
  std::set<std::string> names;
  for (const CodecTrial& trial : report.tried) names.insert(trial.codec);
  return names;
}

void expect_within(const Array& a, const Array& b, double bound) {
  const OwnedArray x{a.bytes, a.dtype, a.shape}, y{b.bytes, b.dtype, b.shape};
  for (std::uint64_t i = 0; i < a.shape.elems(); ++i)
    ASSERT_LE(std::abs(load_element(x, i) - load_element(y, i)), bound) << i;
}

TEST(CodecAuto, GoalRatio_WritesTheSmallestOfAll) {
  for (const DType dtype : {DType::f32, DType::f64, DType::u8, DType::i16, DType::f16}) {
    SCOPED_TRACE(dtype_name(dtype));
    const Array a = wave(dtype, {9, 47, 61});
    const CompressOptions options = with_goal(BoundKind::abs, 1, "ratio");
    CompressReport report;
    const auto stream = compress_ok(a, options, builtin_codecs(), {}, &report);
    EXPECT_EQ(stream.size(), std::min(bytes_of(a, options, "lorenzo"), bytes_of(a, options, "stencil")));
    EXPECT_LE(stream.size(), bytes_of(a, with_bound(BoundKind::lossless), "lossless"));
    EXPECT_EQ(names_of(report), (std::set<std::string>{"lorenzo", "lossless", "stencil"}));
    EXPECT_EQ(report.reason, CodecReason::smallest);
    for (const CodecTrial& trial : report.tried) {
      EXPECT_GE(trial.bytes, stream.size()) << trial.codec;
      if (trial.codec == report.codec) {
        EXPECT_EQ(trial.bytes, stream.size());
      }
    }
    // The stream says all that a decoder needs; whose goal it was is not in it.
    expect_within(a, decompress_ok(stream, a.dtype, a.shape, builtin_codecs()), 1);
    CompressOptions named = options;
    named.codec = report.codec;
    EXPECT_EQ(compress_ok(a, named, builtin_codecs()), stream);
  }
}

TEST(CodecAuto, GoalSpeed_TriesOneFastCodecAlone) {
  const Array a = wave(DType::f32, {9, 47, 61});
  for (const BoundKind kind :
       {BoundKind::abs, BoundKind::rel, BoundKind::pwrel, BoundKind::psnr, BoundKind::ratio, BoundKind::lossless}) {
    CompressReport report;
    const double value = kind == BoundKind::psnr ? 60 : kind == BoundKind::ratio ? 6 : 1e-3;
    compress_ok(a, with_goal(kind, value, "speed"), builtin_codecs(), {}, &report);
    EXPECT_EQ(report.codec, "lorenzo") << bound_kind_name(kind);
    EXPECT_TRUE(report.tried.empty());
    EXPECT_EQ(report.reason, CodecReason::fastest);
  }
}

TEST(CodecAuto, WhatTheRatioTierDoesNotTake_FallsToTheOthers) {
  for (const DType dtype : {DType::i64, DType::u64}) {
    CompressReport report;
    compress_ok(wave(dtype, {9, 47, 61}), with_goal(BoundKind::abs, 1, "ratio"), builtin_codecs(), {}, &report);
    EXPECT_EQ(names_of(report), (std::set<std::string>{"lorenzo", "lossless"}));
  }
  CompressReport report;
  compress_ok(wave(DType::f32, {9, 47, 61}), with_goal(BoundKind::pwrel, 1e-3, "ratio"), builtin_codecs(), {}, &report);
  EXPECT_EQ(names_of(report), (std::set<std::string>{"lorenzo", "lossless"}));
  EXPECT_EQ(report.codec, "lorenzo");
  compress_ok(wave(DType::f32, {9, 47, 61}), with_bound(BoundKind::lossless), builtin_codecs(), {}, &report);
  EXPECT_EQ(report.codec, "lossless");
  EXPECT_EQ(report.reason, CodecReason::exact);
}

TEST(CodecAuto, BoundBelowTheLastBits_IsLossless) {
  const Array a = wave(DType::f32, {9, 47, 61}, 1);
  CompressReport report;
  const auto stream = compress_ok(a, with_goal(BoundKind::abs, 1e-12, "ratio"), builtin_codecs(), {}, &report);
  EXPECT_EQ(report.codec, "lossless");
  EXPECT_EQ(report.enforced.kind, BoundKind::lossless);
  EXPECT_EQ(decompress_ok(stream, a.dtype, a.shape, builtin_codecs()).bytes, a.bytes);
}

TEST(CodecAuto, GoalPsnr_TakesTheMostQualityForItsSize) {
  const Array a = wave(DType::f32, {9, 47, 61});
  CompressReport report;
  compress_ok(a, with_goal(BoundKind::rel, 1e-3, "psnr"), builtin_codecs(), {}, &report);
  EXPECT_EQ(report.reason, CodecReason::best_quality);
  ASSERT_TRUE(report.psnr_db.has_value());
  const auto score = [&](const CodecTrial& trial) {
    return *trial.psnr_db / 6.0206 - 8 * static_cast<double>(trial.bytes) / static_cast<double>(a.shape.elems());
  };
  double chosen = 0, best = -1e300;
  for (const CodecTrial& trial : report.tried) {
    if (!trial.psnr_db) continue;
    best = std::max(best, score(trial));
    if (trial.codec == report.codec) chosen = score(trial);
  }
  EXPECT_NEAR(chosen, best, 1e-9);
}

TEST(CodecAuto, MasksAndFillValues_ComeBackWhateverIsChosen) {
  Array a = wave(DType::f32, {9, 47, 61});
  spoil(a, -999);
  for (const char* goal : {"ratio", "psnr", "speed"}) {
    CompressOptions options = with_goal(BoundKind::rel, 1e-3, goal);
    options.fill_bits = {std::bit_cast<std::uint32_t>(-999.0f)};
    CompressReport report;
    const auto stream = compress_ok(a, options, builtin_codecs(), {}, &report);
    const Array b = decompress_ok(stream, a.dtype, a.shape, builtin_codecs());
    EXPECT_GT(report.masked_elems, 600u);
    for (std::uint64_t i = 0; i < a.shape.elems(); ++i) {
      float x = 0, y = 0;
      std::memcpy(&x, a.bytes.data() + 4 * i, 4);
      std::memcpy(&y, b.bytes.data() + 4 * i, 4);
      if (!std::isfinite(x) || x == -999) {
        ASSERT_EQ(std::memcmp(&a.bytes[4 * i], &b.bytes[4 * i], 4), 0) << i;
      } else {
        ASSERT_LE(std::abs(static_cast<double>(x) - y), report.enforced.value) << i;
      }
    }
  }
}

TEST(CodecAuto, SettingsGoToThoseThatKnowThem) {
  const Array a = wave(DType::f32, {9, 47, 61});
  CompressOptions options = with_goal(BoundKind::abs, 0.1, "ratio");
  options.settings = {{"layout", "1d"}};
  CompressReport report;
  compress_ok(a, options, builtin_codecs(), {}, &report);
  EXPECT_EQ(names_of(report), (std::set<std::string>{"lorenzo", "stencil"}));
  options.settings = {{"colour", "blue"}};
  Vector<std::uint8_t> out;
  VectorSink sink(out);
  EXPECT_EQ(compress(a.view(), options, builtin_codecs(), {}, sink).status().code(), StatusCode::unknown_setting);
  EXPECT_TRUE(out.empty());
}

TEST(CodecAuto, ThreadsAndMemory_DoNotChangeTheChoice) {
  const Array a = wave(DType::f32, {30, 47, 61});
  const CompressOptions options = with_goal(BoundKind::rel, 1e-3, "ratio");
  const auto expected = compress_ok(a, options, builtin_codecs());
  EXPECT_EQ(compress_ok(a, options, builtin_codecs(), with_threads(3)), expected);
  // From too little for any codec to enough: the same bytes or a refusal.
  int succeeded = 0;
  for (std::uint64_t limit = 1 << 16; limit < UINT64_C(1) << 31; limit += limit / 4) {
    Execution execution;
    execution.memory_limit = limit;
    Vector<std::uint8_t> out;
    VectorSink sink(out);
    const auto report = compress(a.view(), options, builtin_codecs(), execution, sink);
    if (report.ok()) {
      EXPECT_EQ(out, expected) << limit;
      ++succeeded;
    } else {
      EXPECT_EQ(report.status().code(), StatusCode::memory_limit);
    }
  }
  EXPECT_GT(succeeded, 10);
}

TEST(CodecAuto, Pushed_GivesTheBytesOfOneShot) {
  const Array a = wave(DType::f32, {9, 47, 61});
  const CompressOptions options = with_goal(BoundKind::abs, 0.1, "ratio");
  CompressReport expected_report;
  const auto expected = compress_ok(a, options, builtin_codecs(), {}, &expected_report);
  Vector<std::uint8_t> out;
  VectorSink sink(out);
  auto encoder = Encoder::create(a.dtype, a.shape, options, builtin_codecs(), {}, sink);
  ASSERT_TRUE(encoder.ok());
  for (std::size_t at = 0; at < a.bytes.size(); at += 4000)
    ASSERT_TRUE((*encoder)->push({a.bytes.data() + at, std::min<std::size_t>(4000, a.bytes.size() - at)}).ok());
  const auto report = (*encoder)->finish();
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(out, expected);
  EXPECT_EQ(report->codec, expected_report.codec);
  EXPECT_EQ(report->reason, expected_report.reason);
  EXPECT_EQ(report->tried.size(), expected_report.tried.size());
}

TEST(CodecAuto, Cancelled_WritesNothing) {
  const Array a = wave(DType::f32, {9, 47, 61});
  Execution execution;
  int calls = 0;
  execution.progress = [&](std::uint64_t, std::uint64_t) { return ++calls < 2; };
  Vector<std::uint8_t> out;
  VectorSink sink(out);
  EXPECT_EQ(compress(a.view(), with_bound(BoundKind::abs, 0.1), builtin_codecs(), execution, sink).status().code(),
            StatusCode::cancelled);
  EXPECT_TRUE(out.empty());
}

TEST(CodecAuto, NoValues_AreStored) {
  for (const BoundKind kind : {BoundKind::abs, BoundKind::rel, BoundKind::psnr, BoundKind::lossless}) {
    CompressReport report;
    const auto stream =
        compress_ok(Array(DType::f32, shape_of({3, 0})), with_bound(kind, 1), builtin_codecs(), {}, &report);
    EXPECT_EQ(report.codec, "stored");
    EXPECT_LE(stream.size(), 256u);
  }
}

TEST(SampleArray, BoxesComeFromAllOver_AsTheyLie) {
  Array a(DType::u32, shape_of({100, 8, 6}));
  for (std::uint32_t i = 0; i < a.shape.elems(); ++i) std::memcpy(a.bytes.data() + 4 * i, &i, 4);
  const auto sample = make_sample_array(a.view(), 1200);
  ASSERT_TRUE(sample.ok());
  // Four boxes of 7 x 7 x 6.
  ASSERT_EQ(sample->view.shape, shape_of({28, 7, 6}));
  std::set<std::uint32_t> planes;
  std::uint32_t first = 0;
  for (std::uint32_t i = 0; i < sample->view.elems(); ++i) {
    const std::uint32_t at = i % (7 * 7 * 6);
    std::uint32_t value = 0;
    std::memcpy(&value, sample->memory.data() + 4 * std::size_t{i}, 4);
    if (at == 0) first = value;
    ASSERT_EQ(value, first + 48 * (at / 42) + 6 * (at / 6 % 7) + at % 6);
    planes.insert(value / 48);
  }
  EXPECT_EQ(planes.size(), 28u);
  EXPECT_LT(*planes.begin(), 25u);
  EXPECT_GT(*planes.rbegin(), 70u);
}

TEST(SampleArray, LongPlanesAndLines_AreCutToo) {
  for (const auto& shape :
       {shape_of({2, 5000, 20}), shape_of({200000}), shape_of({1, 1, 200000}), shape_of({7, 30000})}) {
    const Array a(DType::u8, shape);
    const auto sample = make_sample_array(a.view(), 10000);
    ASSERT_TRUE(sample.ok());
    EXPECT_GE(sample->view.elems(), 9000u) << shape.text();
    EXPECT_LE(sample->view.elems(), 10000u) << shape.text();
    const auto part = leading_part(a.view(), 10000);
    ASSERT_TRUE(part.ok());
    EXPECT_GE(part->elems(), 9000u) << shape.text();
    EXPECT_LE(part->elems(), 10000u) << shape.text();
    EXPECT_EQ(part->data, a.bytes.data());
  }
}

}  // namespace
}  // namespace quern::testing
