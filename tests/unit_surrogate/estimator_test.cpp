// The answers: ordered, monotone, honest about what is not known.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include <quern/estimate.h>

#include "surrogate/model.h"
#include "tests/unit_surrogate/fields.h"
#include "tests/unit_surrogate/patch_models.h"

namespace quern {
namespace {

using test::view;
using test::waves;

EstimateReport estimates_of(const ArrayView& array, const std::vector<double>& bounds, std::size_t threads = 1) {
  EstimateOptions options;
  for (const double bound : bounds) options.bounds.push_back({BoundKind::rel, bound});
  Execution execution;
  execution.threads = threads;
  auto out = builtin_estimator().estimate(array, options, execution);
  EXPECT_TRUE(out.ok()) << out.status().text();
  return out.ok() ? std::move(out).value() : EstimateReport{};
}

void expect_ordered(const Interval& i) {
  EXPECT_LE(i.low, i.value);
  EXPECT_LE(i.value, i.high);
  EXPECT_TRUE(std::isfinite(i.low) && std::isfinite(i.high));
}

void expect_sane(const EstimateReport& report) {
  for (const Estimate& e : report.estimates) {
    expect_ordered(e.ratio);
    EXPECT_GT(e.ratio.low, 0);
    if (e.psnr_db) expect_ordered(*e.psnr_db);
    if (e.ssim) expect_ordered(*e.ssim);
    expect_ordered(e.compress_mb_per_s);
    expect_ordered(e.decompress_mb_per_s);
  }
}

TEST(Estimator, Bounds_GiveMonotoneNumbers) {
  const std::vector<float> values = waves(20, 64, 64, 0.02);
  const auto report = estimates_of(view(values, "20x64x64"), {1e-1, 3e-2, 1e-2, 1e-3, 3e-4, 1e-5, 1e-6});
  expect_sane(report);
  for (std::size_t i = 1; i < report.estimates.size(); ++i) {
    const Estimate& wide = report.estimates[i - 1];
    const Estimate& tight = report.estimates[i];
    if (wide.codec != tight.codec) continue;
    EXPECT_GE(wide.ratio.value, tight.ratio.value) << i;
    EXPECT_LE(wide.psnr_db->value, tight.psnr_db->value) << i;
    EXPECT_LE(wide.ssim->value, tight.ssim->value) << i;
  }
}

TEST(Estimator, Threads_DoNotChangeEstimates) {
  const std::vector<float> values = waves(30, 100, 120, 0.02);
  const ArrayView array = view(values, "30x100x120");
  const auto one = estimates_of(array, {1e-2, 1e-4}, 1);
  const auto three = estimates_of(array, {1e-2, 1e-4}, 3);
  ASSERT_EQ(one.estimates.size(), three.estimates.size());
  for (std::size_t i = 0; i < one.estimates.size(); ++i) {
    EXPECT_EQ(one.estimates[i].ratio.value, three.estimates[i].ratio.value);
    EXPECT_EQ(one.estimates[i].ratio.low, three.estimates[i].ratio.low);
    if (one.estimates[i].psnr_db) {
      EXPECT_EQ(one.estimates[i].psnr_db->value, three.estimates[i].psnr_db->value);
    }
  }
}

TEST(Estimator, PsnrIsNeverBelowWhatTheBoundGives) {
  const std::vector<float> values = waves(1, 200, 300, 1);
  for (const Estimate& e : estimates_of(view(values, "200x300"), {1e-1, 1e-3, 1e-5}).estimates)
    if (e.psnr_db) {
      EXPECT_GE(e.psnr_db->low, -20 * std::log10(e.bound.value) - 0.05);
    }
}

TEST(Estimator, CompressedForReal_RatioIsNearTheInterval) {
  const std::vector<float> values = waves(24, 60, 60, 0.02);
  const ArrayView array = view(values, "24x60x60");
  for (const Estimate& e : estimates_of(array, {1e-3, 1e-4}).estimates) {
    CompressOptions options;
    options.codec = e.codec;
    options.bound = e.bound;
    Vector<std::uint8_t> stream;
    VectorSink sink(stream);
    const auto made = compress(array, options, builtin_codecs(), Execution{}, sink);
    ASSERT_TRUE(made.ok());
    const double ratio = static_cast<double>(array.bytes()) / static_cast<double>(made->output_bytes);
    EXPECT_GT(ratio, e.ratio.low / 1.6) << e.codec << " " << e.bound.value;
    EXPECT_LT(ratio, e.ratio.high * 1.6) << e.codec << " " << e.bound.value;
  }
}

TEST(Estimator, OfSampledArrays_IntervalsOfLorenzoAreNotNarrow) {
  const std::vector<float> values = waves(64, 80, 96, 0.02);
  const auto report = estimates_of(view(values, "64x80x96"), {1e-2, 1e-3, 1e-4});
  std::size_t found = 0;
  for (const Estimate& e : report.estimates) {
    if (e.codec != "lorenzo") continue;
    ++found;
    EXPECT_GE(e.ratio.high / e.ratio.value, 1.31) << e.bound.value;
    EXPECT_GE(e.ratio.value / e.ratio.low, 1.31) << e.bound.value;
  }
  EXPECT_EQ(found, 3U);
  EXPECT_GT(report.sampled, 3U << 15);  // the copy that is encoded counts, too
}

TEST(Estimator, WhereTheRangeOverflows_LorenzoIsNotRun_AndIntervalsAreWide) {
  std::vector<double> values(10000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = (static_cast<double>(i % 200) / 100 - 1) * 1.7e308;
  const ArrayView array{values.data(), DType::f64, Shape::parse("100x100").value()};
  const auto report = estimates_of(array, {1e-3});
  expect_sane(report);
  EXPECT_FALSE(report.estimates.empty());
  for (const Estimate& e : report.estimates) EXPECT_TRUE(e.wide) << e.codec;
  EXPECT_TRUE(std::any_of(report.notes.begin(), report.notes.end(),
                          [](const std::string& note) { return note.find("lorenzo") != std::string::npos; }));
}

TEST(Estimator, StrangeArrays_GetWideIntervalsAndANote) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<std::pair<std::vector<float>, const char*>> cases = {{std::vector<float>(5000, 3.5F), "50x100"},
                                                                         {std::vector<float>(5000, nan), "50x100"},
                                                                         {{1.0F}, "1"},
                                                                         {{1.0F, 2.0F}, "1x2x1"}};
  for (const auto& [values, shape] : cases) {
    const auto report = estimates_of(view(values, shape), {1e-3});
    expect_sane(report);
    EXPECT_FALSE(report.estimates.empty());
    EXPECT_FALSE(report.notes.empty()) << shape;
    for (const Estimate& e : report.estimates) EXPECT_TRUE(e.wide) << shape;
  }
}

TEST(Estimator, BoundsFarOutside_AreMarked) {
  const std::vector<float> values = waves(1, 100, 100, 0.1);
  const auto report = estimates_of(view(values, "100x100"), {1e-3, 1e-12, 50});
  expect_sane(report);
  for (const Estimate& e : report.estimates)
    if (e.bound.kind == BoundKind::rel) {
      EXPECT_EQ(e.wide, e.bound.value != 1e-3) << e.bound.value;
    }
  EXPECT_FALSE(report.notes.empty());
}

TEST(Estimator, Integers_UnderOne_AreExact) {
  std::vector<std::int32_t> values(10000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int32_t>(i * i % 977);
  const ArrayView array{values.data(), DType::i32, Shape::parse("100x100").value()};
  EstimateOptions options;
  options.bounds = {{BoundKind::abs, 0.5}, {BoundKind::abs, 4}};
  const auto report = builtin_estimator().estimate(array, options, Execution{});
  ASSERT_TRUE(report.ok());
  for (const Estimate& e : report->estimates)
    if (e.bound.kind == BoundKind::abs) {
      EXPECT_EQ(e.psnr_db.has_value(), e.bound.value > 1);
    }
}

TEST(Estimator, PeersOfAModel_StandBesideTheCodecs) {
  surrogate::Model model = surrogate::read_model(surrogate::builtin_model()).value();
  model.deep.reset();
  model.codecs.push_back(*model.by_name("stencil"));
  model.codecs.back().codec = "theirs";
  model.codecs.back().version = 0;
  model.codecs.back().foreign = true;
  model.codecs.back().types = 1U << static_cast<unsigned>(DType::f32);
  const auto bytes = surrogate::write_model(model);
  const std::vector<float> values = waves(20, 64, 64, 0.02);
  EstimateOptions options;
  options.bounds = {{BoundKind::rel, 1e-3}};
  options.codecs = {"theirs", "stencil"};
  options.model = bytes;
  const auto found = builtin_estimator().estimate(view(values, "20x64x64"), options, Execution{});
  ASSERT_TRUE(found.ok()) << found.status().text();
  ASSERT_EQ(found->estimates.size(), 2U);
  EXPECT_EQ(found->estimates[0].ratio.value, found->estimates[1].ratio.value);
  const std::vector<double> doubles(values.begin(), values.end());
  const auto other = builtin_estimator().estimate({doubles.data(), DType::f64, Shape::parse("20x64x64").value()},
                                                  options, Execution{});
  ASSERT_TRUE(other.ok()) << other.status().text();
  ASSERT_EQ(other->estimates.size(), 1U);
  EXPECT_EQ(other->estimates[0].codec, "stencil");
}

TEST(Estimator, PeersWithStepsOfPowersOfTwo_AreTheSameBetweenThem) {
  surrogate::Model model = surrogate::read_model(surrogate::builtin_model()).value();
  model.deep.reset();
  model.codecs = {*model.by_name("stencil")};
  model.codecs.front().codec = "theirs";
  model.codecs.front().version = 0;
  model.codecs.front().foreign = true;
  model.codecs.front().types = 1U << static_cast<unsigned>(DType::f32);
  const std::vector<float> values = waves(20, 64, 64, 0.02);
  std::vector<double> shares;
  const auto ratios = [&](bool power_steps) {
    shares.clear();
    model.codecs.front().power_steps = power_steps;
    const auto bytes = surrogate::write_model(model);
    EstimateOptions options;
    for (const double bound : {0x1p-7, 0x1.8p-7, 0x1.fp-7, 0x1p-6}) options.bounds.push_back({BoundKind::abs, bound});
    options.model = bytes;
    std::vector<double> out;
    const auto found = builtin_estimator().estimate(view(values, "20x64x64"), options, Execution{});
    EXPECT_TRUE(found.ok()) << found.status().text();
    if (found.ok())
      for (const Estimate& e : found->estimates) {
        out.push_back(e.ratio.value);
        shares.push_back(e.max_error_share.value);
      }
    return out;
  };
  const std::vector<double> rounded = ratios(true);
  // The largest error is the same under the bounds between two powers, so its share of a larger one is smaller.
  ASSERT_EQ(shares.size(), 4U);
  EXPECT_GT(shares[0], 0);
  EXPECT_NEAR(shares[1], shares[0] / 1.5, 1e-3);
  EXPECT_NEAR(shares[2], shares[0] / 1.9375, 1e-3);
  const std::vector<double> plain = ratios(false);
  ASSERT_EQ(rounded.size(), 4U);
  ASSERT_EQ(plain.size(), 4U);
  EXPECT_EQ(rounded[0], plain[0]);
  EXPECT_EQ(rounded[1], plain[0]);
  EXPECT_EQ(rounded[2], plain[0]);
  EXPECT_EQ(rounded[3], plain[3]);
  EXPECT_GT(plain[1], plain[0]);
}

TEST(Estimator, DeepFeatures_AreForModelsThatHaveThem) {
  const std::vector<float> values = waves(24, 60, 60, 0.02);
  const ArrayView array = view(values, "24x60x60");
  surrogate::Model model = surrogate::read_model(surrogate::builtin_model()).value();
  const auto estimate = [&](EstimateFeatures features) {
    const auto bytes = surrogate::write_model(model);
    EstimateOptions options;
    options.bounds = {{BoundKind::rel, 1e-3}};
    options.model = bytes;
    options.features = features;
    options.speeds = false;
    return builtin_estimator().estimate(array, options, Execution{});
  };
  model.deep.reset();
  EXPECT_EQ(estimate(EstimateFeatures::deep).status().code(), StatusCode::unsupported);
  const auto plain = estimate(EstimateFeatures::usual);
  ASSERT_TRUE(plain.ok());
  // Networks for which deep features count nothing say the same as those without, up to the order of sums; networks
  // whose answer is one of the deep features alone do not.
  model.deep = test::idle_deep_part(model);
  const auto idle = estimate(EstimateFeatures::deep);
  ASSERT_TRUE(idle.ok()) << idle.status().text();
  ASSERT_EQ(idle->estimates.size(), plain->estimates.size());
  for (std::size_t i = 0; i < plain->estimates.size(); ++i)
    EXPECT_NEAR(idle->estimates[i].ratio.value / plain->estimates[i].ratio.value, 1, 2e-3);
  for (surrogate::CodecModel& codec : model.deep->codecs)
    for (surrogate::Head& head : codec.experts) head.last.bias[0] += 1;  // a bit more a value is twice the size
  const auto deep = estimate(EstimateFeatures::deep);
  const auto usual = estimate(EstimateFeatures::usual);
  model.deep->usual = true;
  const auto usually_deep = estimate(EstimateFeatures::usual);
  const auto counts = estimate(EstimateFeatures::counts);
  ASSERT_TRUE(deep.ok() && usual.ok() && usually_deep.ok() && counts.ok());
  EXPECT_EQ(usual->estimates.front().ratio.value, plain->estimates.front().ratio.value);
  EXPECT_EQ(counts->estimates.front().ratio.value, plain->estimates.front().ratio.value);
  EXPECT_LT(deep->estimates.front().ratio.value, 0.7 * plain->estimates.front().ratio.value);
  EXPECT_EQ(usually_deep->estimates.front().ratio.value, deep->estimates.front().ratio.value);
}

TEST(Estimator, DeepFeaturesOfTheModelThatShips_GiveFiniteOrderedIntervals) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  const auto is_same = [](const Estimate& a, const Estimate& b) {
    return a.codec == b.codec && a.ratio.low == b.ratio.low && a.ratio.value == b.ratio.value &&
           a.ratio.high == b.ratio.high && a.max_error_share.value == b.max_error_share.value;
  };
  const auto check = [&](const ArrayView& array, const char* what) {
    SCOPED_TRACE(what);
    EstimateOptions options;
    options.bounds = {{BoundKind::rel, 1e-2}, {BoundKind::rel, 1e-4}};
    options.features = EstimateFeatures::deep;
    options.all_codecs = true;
    options.speeds = false;
    std::vector<EstimateReport> reports;
    for (const std::size_t threads : {1, 4}) {
      Execution execution;
      execution.threads = threads;
      auto found = builtin_estimator().estimate(array, options, execution);
      ASSERT_TRUE(found.ok()) << found.status().text();
      reports.push_back(std::move(found).value());
    }
    ASSERT_FALSE(reports[0].estimates.empty());
    expect_sane(reports[0]);
    for (const Estimate& e : reports[0].estimates) expect_ordered(e.max_error_share);
    EXPECT_TRUE(std::equal(reports[0].estimates.begin(), reports[0].estimates.end(), reports[1].estimates.begin(),
                           reports[1].estimates.end(), is_same));
  };
  std::vector<float> values = waves(20, 64, 64, 0.02);
  check(view(values, "20x64x64"), "cubes");
  check(view(values, "1280x64"), "squares");
  check(view(values, "81920"), "one axis");
  for (std::size_t i = 0; i < values.size(); i += 7) values[i] = i % 2 == 0 ? nan : infinity;
  check(view(values, "20x64x64"), "NaN and infinity");
  check(view({3.0F}, "1x1x1"), "one value");
  std::vector<double> doubles(values.size());
  for (std::size_t i = 0; i < doubles.size(); i += 3) doubles[i] = 1e-310;
  check({doubles.data(), DType::f64, Shape::parse("20x64x64").value()}, "subnormal numbers");
  std::vector<std::int32_t> integers(values.size());
  for (std::size_t i = 0; i < integers.size(); ++i) integers[i] = static_cast<std::int32_t>(i * i % 977);
  check({integers.data(), DType::i32, Shape::parse("20x64x64").value()}, "i32");
}

TEST(Estimator, CodecsThatAutoNeverTakes_AreNamedOrAskedForAll) {
  const std::vector<float> values = waves(1, 100, 100, 0.1);
  EstimateOptions options;
  options.bounds = {{BoundKind::rel, 1e-3}};
  const auto codecs = [&] {
    std::vector<std::string> out;
    const auto found = builtin_estimator().estimate(view(values, "100x100"), options, Execution{});
    EXPECT_TRUE(found.ok()) << found.status().text();
    if (found.ok())
      for (const Estimate& e : found->estimates) out.push_back(e.codec);
    std::sort(out.begin(), out.end());
    return out;
  };
  EXPECT_EQ(codecs(), (std::vector<std::string>{"lorenzo", "lossless", "stencil"}));
  options.all_codecs = true;
  EXPECT_EQ(codecs(), (std::vector<std::string>{"interp", "lorenzo", "lossless", "stencil"}));
  options.all_codecs = false;
  options.codecs = {"interp"};
  EXPECT_EQ(codecs(), std::vector<std::string>{"interp"});
  options.codecs = {"autoencoder"};
  EXPECT_EQ(builtin_estimator().estimate(view(values, "100x100"), options, Execution{}).status().code(),
            StatusCode::unsupported);
}

TEST(Estimator, WhatCannotBeMeant_IsRefused) {
  const std::vector<float> values = waves(1, 10, 10, 0.1);
  const ArrayView array = view(values, "10x10");
  const auto status = [&](const EstimateOptions& options, const ArrayView& of) {
    return builtin_estimator().estimate(of, options, Execution{}).status().code();
  };
  EstimateOptions options;
  options.bounds = {{BoundKind::rel, 0}};
  EXPECT_EQ(status(options, array), StatusCode::invalid_bound);
  options.bounds = {{BoundKind::pwrel, 0.1}};
  EXPECT_EQ(status(options, array), StatusCode::invalid_bound);
  options.bounds = {{BoundKind::rel, 0.1}};
  options.codecs = {"nosuch"};
  EXPECT_EQ(status(options, array), StatusCode::unknown_codec);
  options.codecs.clear();
  EXPECT_EQ(status(options, view({}, "0x10")), StatusCode::invalid_shape);
  const std::vector<std::uint8_t> noise(500, 7);
  options.model = noise;
  EXPECT_EQ(status(options, array), StatusCode::bad_magic);
}

}  // namespace
}  // namespace quern
