// Searches that begin where an estimator says: they meet their targets whatever it says, and with the library's own
// they encode less often.
#include <cmath>
#include <vector>

#include <quern/estimate.h>

#include "tests/support/array_cases.h"
#include "tests/unit_pipeline/support.h"

namespace quern::testing {
namespace {

/// A smooth field with a little noise.
OwnedArray field(const Shape& shape) {
  OwnedArray a{Vector<std::uint8_t>(static_cast<std::size_t>(shape.elems() * 4)), DType::f32, shape};
  std::mt19937 rng(3);
  const std::uint64_t width = shape[shape.rank() - 1];
  for (std::uint64_t i = 0; i < shape.elems(); ++i) {
    const double x = static_cast<double>(i % width), y = static_cast<double>(i / width);
    store_element(a, i, 20 * std::sin(0.11 * x) * std::cos(0.06 * y) + 1e-2 * static_cast<double>(rng() % 1000) / 1000);
  }
  return a;
}

struct Made {
  CompressReport report;
  Vector<std::uint8_t> stream;
};

Made make(const OwnedArray& a, const ErrorBound& target, const Registry& registry, const Execution& execution = {}) {
  Made made;
  VectorSink sink(made.stream);
  const auto report = compress(a.view(), with_bound(target.kind, target.value), registry, execution, sink);
  EXPECT_TRUE(report.ok()) << report.status().text();
  if (report.ok()) made.report = *report;
  return made;
}

/// With code of its own, from the stream alone.
double surplus_of(const OwnedArray& a, const Made& made, const ErrorBound& target) {
  if (target.kind == BoundKind::ratio)
    return static_cast<double>(a.bytes.size()) / static_cast<double>(made.stream.size()) / target.value - 1;
  OwnedArray back{Vector<std::uint8_t>(a.bytes.size()), a.dtype, a.shape};
  MemorySource source(made.stream);
  EXPECT_TRUE(decompress(source, {back.bytes.data(), a.dtype, a.shape}, builtin_codecs(), {}).ok());
  double lo = INFINITY, hi = -INFINITY, sum = 0;
  for (std::uint64_t i = 0; i < a.shape.elems(); ++i) {
    const double x = load_element(a, i), y = load_element(back, i);
    lo = std::min(lo, x);
    hi = std::max(hi, x);
    sum += (x - y) * (x - y);
  }
  return 20 * std::log10(hi - lo) - 10 * std::log10(sum / static_cast<double>(a.shape.elems())) - target.value;
}

const ErrorBound kTargets[] = {
    {BoundKind::psnr, 40}, {BoundKind::psnr, 75}, {BoundKind::ratio, 6}, {BoundKind::ratio, 20}};

/// Says the same of every codec, moved by `octaves` of the bound.
class Stubborn final : public QualityEstimator {
 public:
  explicit Stubborn(double octaves) : octaves_(octaves) {}
  Result<EstimateReport> estimate(const ArrayView&, const EstimateOptions& options, const Execution&) const override {
    EstimateReport report;
    for (const char* codec : {"lorenzo", "stencil"})
      for (const ErrorBound& bound : options.bounds) {
        Estimate e;
        e.codec = codec;
        e.bound = bound;
        const double width = options.range->max - options.range->min;
        e.absolute = bound.value * width;
        const double octave = std::log2(bound.value) + octaves_;
        e.psnr_db = Interval{-6 * octave, -6 * octave, -6 * octave};
        const double ratio = 32 / std::max(1.0, -octave);
        e.ratio = {ratio, ratio, ratio};
        report.estimates.push_back(e);
      }
    return report;
  }

 private:
  double octaves_;
};

TEST(Forecast, WrongOnes_MissNoTarget) {
  const OwnedArray a = field(shape_of({20, 60, 60}));
  unsigned turn = 0;
  for (const double octaves : {-9.0, 9.0}) {
    const Stubborn wrong(octaves);
    const Registry registry(builtin_codecs().all(), &wrong);
    for (const ErrorBound& target : kTargets) {
      if (++turn % 3 != 1) continue;
      const Made made = make(a, target, registry);
      EXPECT_GE(surplus_of(a, made, target), 0) << octaves << " " << target.value;
      EXPECT_LE(surplus_of(a, made, target), target.kind == BoundKind::psnr ? 0.3 : 0.03);
    }
  }
}

class Failing final : public QualityEstimator {
 public:
  Result<EstimateReport> estimate(const ArrayView&, const EstimateOptions&, const Execution&) const override {
    return Status(StatusCode::unsupported_version, "no model");
  }
};

TEST(Forecast, EstimatorThatFails_IsAsNone) {
  const OwnedArray a = field(shape_of({20, 60, 60}));
  const Failing failing;
  const Registry with(builtin_codecs().all(), &failing);
  const Registry without(builtin_codecs().all());
  for (const ErrorBound& target : {kTargets[0], kTargets[2]}) {
    const Made made = make(a, target, with);
    const Made same = make(a, target, without);
    EXPECT_EQ(made.stream, same.stream);
    EXPECT_EQ(made.report.encodings, same.report.encodings);
  }
}

TEST(Forecast, OfTheLibrary_SavesEncodings) {
  const OwnedArray a = field(shape_of({20, 60, 80}));
  const Registry without(builtin_codecs().all());
  std::uint32_t with_it = 0, without_it = 0;
  for (const ErrorBound& target : {kTargets[1], kTargets[3]}) {
    const Made made = make(a, target, builtin_codecs());
    const Made before = make(a, target, without);
    EXPECT_GE(surplus_of(a, made, target), 0) << target.value;
    EXPECT_LE(made.stream.size(), before.stream.size() * 102 / 100) << target.value;
    with_it += made.report.encodings;
    without_it += before.report.encodings;
  }
  EXPECT_LT(5 * with_it, 4 * without_it);
}

TEST(Forecast, ThreadsAndMemory_DoNotChangeTheBytes) {
  const OwnedArray a = field(shape_of({20, 60, 80}));
  const ErrorBound target{BoundKind::psnr, 60};
  const Made one = make(a, target, builtin_codecs());
  EXPECT_EQ(make(a, target, builtin_codecs(), with_threads(3)).stream, one.stream);
  Execution execution;
  execution.memory_limit = UINT64_C(64) << 20;
  EXPECT_EQ(make(a, target, builtin_codecs(), execution).stream, one.stream);
}

}  // namespace
}  // namespace quern::testing
