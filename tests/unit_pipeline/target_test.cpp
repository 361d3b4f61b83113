// PSNR and ratio as targets, with the codecs of the library: what was asked for is reached, and not by far.
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "tests/support/array_cases.h"
#include "tests/support/instrumented.h"
#include "tests/support/thorough.h"
#include "tests/unit_pipeline/support.h"

namespace quern::testing {
namespace {

/// A turbulent-looking field with structure at all scales; with `gaps`, a block of it holds a fill value and NaN.
OwnedArray field(DType dtype, const Shape& shape, bool gaps) {
  OwnedArray a{Vector<std::uint8_t>(static_cast<std::size_t>(shape.elems() * dtype_bytes(dtype))), dtype, shape};
  std::mt19937 rng(11);
  const std::uint64_t width = shape[shape.rank() - 1];
  double level = 0;
  for (std::uint64_t i = 0; i < shape.elems(); ++i) {
    level = 0.9 * level + (static_cast<double>(rng() % 2001) - 1000) / 1000;
    const double x = static_cast<double>(i % width), y = static_cast<double>(i / width);
    store_element(a, i, 60 + 30 * std::sin(0.13 * x) * std::cos(0.07 * y) + 3 * level);
    if (gaps && i % width < 9) store_element(a, i, is_float(dtype) ? std::numeric_limits<double>::quiet_NaN() : 0);
    if (gaps && i % width == 20) store_element(a, i, 0);
  }
  return a;
}

/// Range-based PSNR over valid values, with code of its own.
double psnr_of(const OwnedArray& a, const OwnedArray& b, bool zero_is_fill) {
  double lo = INFINITY, hi = -INFINITY, sum = 0, count = 0;
  for (std::uint64_t i = 0; i < a.shape.elems(); ++i) {
    const double x = load_element(a, i), y = load_element(b, i);
    if (!std::isfinite(x) || (zero_is_fill && x == 0)) continue;
    lo = std::min(lo, x);
    hi = std::max(hi, x);
    sum += (x - y) * (x - y);
    count += 1;
  }
  return sum == 0 ? INFINITY : 20 * std::log10(hi - lo) - 10 * std::log10(sum / count);
}

struct Made {
  CompressReport report;
  OwnedArray back;
  double ratio = 0;
};

Made make(const OwnedArray& a, const CompressOptions& options, const Execution& execution = {}) {
  Made made;
  Vector<std::uint8_t> stream;
  VectorSink sink(stream);
  const auto report = compress(a.view(), options, builtin_codecs(), execution, sink);
  EXPECT_TRUE(report.ok()) << report.status().text();
  if (!report.ok()) return made;
  made.report = *report;
  EXPECT_EQ(report->output_bytes, stream.size());
  made.ratio = static_cast<double>(a.bytes.size()) / static_cast<double>(stream.size());
  made.back = {Vector<std::uint8_t>(a.bytes.size()), a.dtype, a.shape};
  MemorySource source(stream);
  // Nothing but the stream is known to the decoder.
  EXPECT_TRUE(decompress(source, {made.back.bytes.data(), a.dtype, a.shape}, builtin_codecs(), {}).ok());
  return made;
}

CompressOptions asking(BoundKind kind, double value, const char* codec, bool zero_is_fill = false) {
  CompressOptions options = with_bound(kind, value);
  options.codec = codec;
  if (zero_is_fill) options.fill_bits = {0};
  return options;
}

/// All targets in thorough tests, else one of them, another each turn.
std::vector<double> in_turns(std::vector<double> targets, unsigned turn) {
  if (!quern::testing::thorough()) targets = {targets[turn % targets.size()]};
  return targets;
}

TEST(PsnrTarget, NeverMissed_OverTypesShapesMasksAndCodecs) {
  const Shape shapes[] = {shape_of({5, 28, 36}), shape_of({66, 76}), shape_of({5000})};
  unsigned number = 0;  // of the case
  for (const DType dtype :
       {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i16, DType::u8, DType::i32, DType::i64}) {
    if (quern::testing::kInstrumented && dtype != DType::f32) continue;
    for (const Shape& shape : shapes)
      for (const bool gaps : {false, true}) {
        const OwnedArray a = field(dtype, shape, gaps);
        for (const char* codec : {"auto", "stencil", "lorenzo"}) {
          if (codec[0] == 's' && dtype == DType::i64) continue;
          for (const double target : in_turns({35.0, 60.0}, number + number / 6)) {
            SCOPED_TRACE(std::string(dtype_name(dtype)) + " " + shape.text() + (gaps ? " gaps " : " ") + codec);
            const Made made = make(a, asking(BoundKind::psnr, target, codec, gaps));
            const double psnr = psnr_of(a, made.back, gaps);
            EXPECT_GE(psnr, target);
            ASSERT_TRUE(made.report.psnr_db.has_value());
            if (std::isfinite(psnr)) {
              EXPECT_NEAR(*made.report.psnr_db, psnr, 1e-6);
            }
            // Where bounds are dense the target is met closely; few steps of an integer, or bits of a half, are not.
            if (dtype == DType::f32 || dtype == DType::f64) {
              EXPECT_LE(psnr, target + 0.3);
            }
          }
          ++number;
        }
      }
  }
}

TEST(PsnrTarget, Auto_IsNoLargerThanEitherCodecBySearch) {
  const OwnedArray a = field(DType::f32, shape_of({7, 40, 50}), true);
  for (const double target : {30.0, 50.0, 80.0, 120.0}) {
    const Made chosen = make(a, asking(BoundKind::psnr, target, "auto"));
    const Made fast = make(a, asking(BoundKind::psnr, target, "lorenzo"));
    const Made slow = make(a, asking(BoundKind::psnr, target, "stencil"));
    const std::uint64_t least = std::min(fast.report.output_bytes, slow.report.output_bytes);
    // The searches begin elsewhere and end within their tolerance: 0.3 dB are a twentieth of a bit a value.
    const double tolerance = 0.05 / 8 * static_cast<double>(a.shape.elems());
    EXPECT_LE(static_cast<double>(chosen.report.output_bytes), static_cast<double>(least) + tolerance) << target;
    EXPECT_EQ(chosen.report.reason, CodecReason::smallest);
    EXPECT_EQ(chosen.report.tried.size(), 3u);
  }
}

// Its ways of coding differ by several dB under one bound: the search measures them, and none asked for alone is
// smaller.
TEST(PsnrTarget, EveryWayOfACodec_IsNoSmallerThanItsChoice) {
  const Shape shape = shape_of({24, 32, 34});
  std::set<std::string> best;
  for (const double noise : {0.0, 2.0}) {
    OwnedArray a{Vector<std::uint8_t>(static_cast<std::size_t>(4 * shape.elems())), DType::f32, shape};
    std::mt19937 rng(5);
    for (std::uint64_t i = 0; i < shape.elems(); ++i) {
      const auto x = static_cast<double>(i % 34), y = static_cast<double>(i / 34 % 32),
                 z = static_cast<double>(i / 1088);
      const double rough = noise * (static_cast<double>(rng() % 2001) - 1000) / 1000;
      store_element(a, i, 30 * std::sin(0.13 * x + 0.05 * z) * std::cos(0.07 * y) + rough);
    }
    for (const double target : {40.0, 70.0, 100.0}) {
      const Made chosen = make(a, asking(BoundKind::psnr, target, "stencil"));
      std::uint64_t least = UINT64_MAX;
      std::string way;
      for (const char* layout : {"levels", "wavelet", "raster", "planes"}) {
        CompressOptions options = asking(BoundKind::psnr, target, "stencil");
        options.settings.push_back({"layout", layout});
        const Made made = make(a, options);
        EXPECT_GE(psnr_of(a, made.back, false), target) << layout;
        if (made.report.output_bytes < least) way = layout;
        least = std::min(least, made.report.output_bytes);
      }
      best.insert(way);
      EXPECT_GE(psnr_of(a, chosen.back, false), target);
      // Searches that begin elsewhere end within their tolerance.
      EXPECT_LE(static_cast<double>(chosen.report.output_bytes), 1.02 * static_cast<double>(least)) << target << way;
      EXPECT_EQ(chosen.report.tried.size(), 0u);  // one codec, however many ways it has
    }
  }
  EXPECT_GE(best.size(), 2u);
}

TEST(PsnrTarget, BeyondAllBits_IsLossless) {
  const OwnedArray a = field(DType::f32, shape_of({40, 50}), false);
  for (const char* codec : {"auto", "stencil"}) {
    const Made made = make(a, asking(BoundKind::psnr, 9000, codec));
    EXPECT_EQ(made.back.bytes, a.bytes);
    EXPECT_EQ(made.report.enforced.kind, BoundKind::lossless);
    EXPECT_EQ(*made.report.psnr_db, INFINITY);
  }
}

TEST(RatioTarget, WithinThreePercent_OrItIsSaidWhatIsPossible) {
  unsigned number = 0;  // of the case
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::i16, DType::u8, DType::i64})
    for (const bool gaps : {false, true}) {
      if (quern::testing::kInstrumented && (dtype != DType::f32 || !gaps)) continue;
      const OwnedArray a = field(dtype, shape_of({8, 40, 50}), gaps);
      for (const char* codec : {"auto", "stencil", "lorenzo"}) {
        if (codec[0] == 's' && dtype == DType::i64) continue;
        for (const double target : in_turns({3.0, 10.0, 40.0}, number + number / 3)) {
          SCOPED_TRACE(std::string(dtype_name(dtype)) + (gaps ? " gaps " : " ") + codec + " " + std::to_string(target));
          const CompressOptions options = asking(BoundKind::ratio, target, codec, gaps);
          Vector<std::uint8_t> stream;
          VectorSink sink(stream);
          const auto report = compress(a.view(), options, builtin_codecs(), {}, sink);
          if (!report.ok()) {
            EXPECT_EQ(report.status().code(), StatusCode::bound_not_met);
            EXPECT_LT(static_cast<double>(report.status().first()), 1000 * target);
            EXPECT_GT(report.status().first(), 1000);
            EXPECT_TRUE(stream.empty());
            continue;
          }
          const double ratio = static_cast<double>(a.bytes.size()) / static_cast<double>(stream.size());
          EXPECT_GE(ratio, target);
          if (ratio <= 1.03 * target || report->enforced.kind == BoundKind::lossless) continue;
          ASSERT_TRUE(report->ratio_below.has_value());
          EXPECT_LT(*report->ratio_below, target);
          // Smooth sizes leave no such gap for wide types.
          EXPECT_TRUE(is_integer(dtype) || dtype == DType::f16 || target > 20) << ratio;
        }
        ++number;
      }
    }
}

TEST(RatioTarget, Auto_HasTheLeastBoundOrTheBestPsnr) {
  const OwnedArray a = field(DType::f32, shape_of({12, 60, 70}), false);
  const Made fast = make(a, asking(BoundKind::ratio, 8, "lorenzo"));
  const Made slow = make(a, asking(BoundKind::ratio, 8, "stencil"));
  CompressOptions options = asking(BoundKind::ratio, 8, "auto");
  const Made chosen = make(a, options);
  EXPECT_EQ(chosen.report.reason, CodecReason::least_bound);
  EXPECT_LE(chosen.report.enforced.value, 1.02 * std::min(fast.report.enforced.value, slow.report.enforced.value));
  options.goal = "psnr";
  const Made best = make(a, options);
  EXPECT_EQ(best.report.reason, CodecReason::best_quality);
  EXPECT_GE(psnr_of(a, best.back, false), std::max(psnr_of(a, fast.back, false), psnr_of(a, slow.back, false)) - 0.1);
}

TEST(RatioTarget, LosslessThatReachesIt_IsWritten) {
  OwnedArray a = field(DType::u8, shape_of({60, 70}), false);
  const Made made = make(a, asking(BoundKind::ratio, 1.05, "auto"));
  EXPECT_EQ(made.back.bytes, a.bytes);
  EXPECT_EQ(made.report.codec, "lossless");
}

TEST(Targets, ThreadsAndMemory_DoNotChangeTheBytes) {
  const OwnedArray a = field(DType::f32, shape_of({7, 40, 50}), true);
  for (const CompressOptions& options : {asking(BoundKind::psnr, 50, "auto"), asking(BoundKind::ratio, 5, "auto")}) {
    const Made expected = make(a, options);
    EXPECT_EQ(make(a, options, with_threads(3)).back.bytes, expected.back.bytes);
    Execution execution;
    execution.memory_limit = UINT64_C(64) << 20;
    EXPECT_EQ(make(a, options, execution).report.output_bytes, expected.report.output_bytes);
  }
}

// Above eight million values the slow codec is searched on a sample first; the outcome is measured on all of them.
TEST(Targets, LargeArray_IsMetFromASample) {
  if (quern::testing::kInstrumented) GTEST_SKIP() << "takes minutes when instrumented";
  const OwnedArray a = field(DType::f32, shape_of({34, 500, 500}), false);
  const Made psnr = make(a, asking(BoundKind::psnr, 45, "stencil"), with_threads(2));
  EXPECT_GE(psnr_of(a, psnr.back, false), 45);
  EXPECT_LE(psnr_of(a, psnr.back, false), 45.3);
  const Made ratio = make(a, asking(BoundKind::ratio, 12, "stencil"), with_threads(2));
  EXPECT_GE(ratio.ratio, 12);
  EXPECT_LE(ratio.ratio, 12 * 1.03);
}

}  // namespace
}  // namespace quern::testing
