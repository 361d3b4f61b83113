// The parts of the page, each against something known.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <numbers>
#include <random>

#include <zlib.h>

#include "cli/report/color_map.h"
#include "cli/report/error_survey.h"
#include "cli/report/html.h"
#include "cli/report/pair_reader.h"
#include "cli/report/plot.h"
#include "cli/report/png.h"
#include "cli/report/slices.h"
#include "cli/report/spectrum.h"
#include "tests/unit_report/markup.h"

namespace quern::report {
namespace {

Shape shape_of(std::initializer_list<std::uint64_t> extents) {
  return Shape::make({extents.begin(), extents.size()}).value();
}

std::uint32_t big_endian(const std::vector<std::uint8_t>& bytes, std::size_t at) {
  return std::uint32_t{bytes[at]} << 24 | std::uint32_t{bytes[at + 1]} << 16 | std::uint32_t{bytes[at + 2]} << 8 |
         bytes[at + 3];
}

TEST(Png, Chunks_HaveRightLengthsChecksumsAndPixels) {
  IndexedImage image{3, 2, {0, 1, 2, 2, 1, 0}};
  const std::vector<Color> palette{{1, 2, 3}, {4, 5, 6}, {7, 8, 9}};
  const auto bytes = encode_png(image, palette);
  std::vector<std::string> types;
  std::vector<std::uint8_t> packed;
  for (std::size_t at = 8; at < bytes.size();) {
    const std::uint32_t length = big_endian(bytes, at);
    types.emplace_back(bytes.begin() + static_cast<std::ptrdiff_t>(at) + 4,
                       bytes.begin() + static_cast<std::ptrdiff_t>(at) + 8);
    EXPECT_EQ(crc32(0, bytes.data() + at + 4, length + 4), big_endian(bytes, at + 8 + length));
    const std::uint8_t* body = bytes.data() + at + 8;
    if (types.back() == "IDAT") packed.assign(body, body + length);
    if (types.back() == "PLTE") {
      EXPECT_EQ(0, std::memcmp(body, "\1\2\3\4\5\6\7\10\11", 9));
    }
    if (types.back() == "IHDR") {
      EXPECT_EQ(big_endian(bytes, at + 8), 3u);
      EXPECT_EQ(big_endian(bytes, at + 12), 2u);
    }
    at += 12 + length;
  }
  EXPECT_EQ(types, (std::vector<std::string>{"IHDR", "PLTE", "IDAT", "IEND"}));
  std::vector<std::uint8_t> rows(8);
  uLongf size = rows.size();
  ASSERT_EQ(uncompress(rows.data(), &size, packed.data(), packed.size()), Z_OK);
  EXPECT_EQ(rows, (std::vector<std::uint8_t>{0, 0, 1, 2, 0, 2, 1, 0}));
}

TEST(Base64, KnownTexts) {
  const auto encode = [](std::string_view text) {
    return base64({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  };
  EXPECT_EQ(encode(""), "");
  EXPECT_EQ(encode("f"), "Zg==");
  EXPECT_EQ(encode("fo"), "Zm8=");
  EXPECT_EQ(encode("foo"), "Zm9v");
  EXPECT_EQ(encode("foobar"), "Zm9vYmFy");
}

TEST(Escape, MarkupAndBrokenBytes_AreMadeHarmless) {
  EXPECT_EQ(escape("a<b> & \"c\""), "a&lt;b&gt; &amp; &quot;c&quot;");
  EXPECT_EQ(escape("°C µ"), "°C µ");
  EXPECT_EQ(escape("\xff|\xc3|\x01|\xed\xa0\x80"), "?|?|?|???");
}

TEST(Number, SpecialsAndDigits) {
  EXPECT_EQ(number(0.1), "0.1");
  EXPECT_EQ(number(-2.5), "−2.5");
  EXPECT_EQ(number(-0.0), "0");
  EXPECT_EQ(number(1.0 / 3, 3), "0.333");
  EXPECT_EQ(number(123456), "123456");
  EXPECT_EQ(number(1e6), "1e6");
  EXPECT_EQ(number(-2.5e-7), "−2.5e−7");
  EXPECT_EQ(number(1e100), "1e100");
  EXPECT_EQ(number(5e-300), "5e−300");
  EXPECT_EQ(number(std::nan("")), "NaN");
  EXPECT_EQ(number(-HUGE_VAL), "−∞");
  EXPECT_EQ(count(1234567), "1\u202f234\u202f567");
  EXPECT_EQ(count(123), "123");
}

double luminance(const Color& color) { return 0.2126 * color[0] + 0.7152 * color[1] + 0.0722 * color[2]; }

TEST(SequentialPalette, GrowsLighterAllTheWay) {
  const auto palette = sequential_palette();
  ASSERT_EQ(palette.size(), 256u);
  for (int i = 8; i < kLevels; ++i) EXPECT_GT(luminance(palette[i]), luminance(palette[i - 8])) << i;
}

TEST(DivergingPalette, IsLightInTheMiddleAndSymmetricInStrength) {
  const auto palette = diverging_palette();
  EXPECT_GT(luminance(palette[kLevels / 2]), 235);
  EXPECT_GT(palette[0][2], palette[0][0]);
  EXPECT_GT(palette[kLevels - 1][0], palette[kLevels - 1][2]);
}

TEST(LevelOf, EndsMiddleAndOddScales) {
  EXPECT_EQ(level_of(-1, -1, 1), 0);
  EXPECT_EQ(level_of(1, -1, 1), kLevels - 1);
  EXPECT_EQ(level_of(5, -1, 1), kLevels - 1);
  EXPECT_NEAR(level_of(0, -1, 1), kLevels / 2, 1);
  EXPECT_NEAR(level_of(3, 3, 3), kLevels / 2, 1);
  EXPECT_EQ(level_of(std::nan(""), 0, 1), kInvalidIndex);
  const double huge = std::numeric_limits<double>::max();
  EXPECT_NEAR(level_of(0, -huge, huge), kLevels / 2, 1);
}

TEST(FourierTransform, AgreesWithTheSum) {
  for (const std::size_t n : {1u, 2u, 8u, 32u}) {
    std::mt19937 random(4);
    std::normal_distribution<double> normal;
    std::vector<std::complex<double>> values(n);
    for (auto& value : values) value = {normal(random), normal(random)};
    auto transformed = values;
    fourier_transform(transformed);
    for (std::size_t k = 0; k < n; ++k) {
      std::complex<double> sum = 0;
      for (std::size_t i = 0; i < n; ++i)
        sum += values[i] * std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(i * k) / static_cast<double>(n));
      EXPECT_NEAR(std::abs(sum - transformed[k]), 0, 1e-11);
    }
  }
}

/// f64 array and the same with `change` applied.
struct Pair {
  Shape shape;
  std::vector<double> x;
  std::vector<double> y;
  ArrayView original() const { return {x.data(), DType::f64, shape}; }
  ArrayView reconstructed() const { return {y.data(), DType::f64, shape}; }
};

TEST(PowerSpectra, SineWave_PeaksAtItsFrequency) {
  for (const bool plane : {false, true}) {
    Pair pair{plane ? shape_of({60, 100}) : shape_of({3000}), {}, {}};
    for (std::uint64_t i = 0; i < pair.shape.elems(); ++i) {
      pair.x.push_back(5 + std::sin(2 * std::numbers::pi * 0.2 * static_cast<double>(i % (plane ? 100 : 3000))));
      pair.y.push_back(pair.x.back() / 2);
    }
    const PairReader reader(pair.original(), pair.reconstructed(), {});
    const Spectra spectra = power_spectra(reader);
    const auto peak = std::max_element(spectra.original.begin(), spectra.original.end()) - spectra.original.begin();
    EXPECT_NEAR(spectra.frequency[peak], 0.2, 0.02) << plane;
    EXPECT_NEAR(spectra.reconstructed[peak] / spectra.original[peak], 0.25, 1e-9);
    EXPECT_NEAR(spectra.error[peak] / spectra.original[peak], 0.25, 1e-9);
  }
}

TEST(PowerSpectra, WhiteNoise_HasThePowerOfItsVariance) {
  std::mt19937 random(8);
  std::normal_distribution<double> normal(0, 3);
  Pair pair{shape_of({128, 128}), {}, {}};
  for (std::uint64_t i = 0; i < pair.shape.elems(); ++i) pair.x.push_back(normal(random));
  pair.y = pair.x;
  const Spectra spectra = power_spectra(PairReader(pair.original(), pair.reconstructed(), {}));
  double mean = 0;
  for (const double power : spectra.original) mean += power / static_cast<double>(spectra.original.size());
  EXPECT_NEAR(mean, 9, 1);
}

TEST(ChoosePlanes, EveryRank) {
  EXPECT_TRUE(choose_planes(Shape()).empty());
  EXPECT_TRUE(choose_planes(shape_of({9})).empty());
  EXPECT_TRUE(choose_planes(shape_of({9, 0, 3})).empty());
  EXPECT_EQ(choose_planes(shape_of({4, 5})).size(), 1u);
  EXPECT_EQ(choose_planes(shape_of({1, 4, 5})).size(), 1u);
  const auto volume = choose_planes(shape_of({13, 4, 5}));
  ASSERT_EQ(volume.size(), 3u);
  EXPECT_EQ(volume[1].first, 6u * 20);
  EXPECT_EQ(volume[1].where, "[6, :, :]");
  const auto many = choose_planes(shape_of({2, 3, 2, 2, 2, 7, 4, 5}));
  ASSERT_EQ(many.size(), 3u);
  EXPECT_EQ(many[1].where, "[1, 1, 1, 1, 1, 3, :, :]");
  EXPECT_EQ(many[1].first, (((((1u * 3 + 1) * 2 + 1) * 2 + 1) * 2 + 1) * 7 + 3) * 20);
}

TEST(RenderPlane, LargePlane_KeepsMeansAndLargestErrors) {
  Pair pair{shape_of({1030, 2}), std::vector<double>(2060, 1.0), std::vector<double>(2060, 1.0)};
  pair.x[2 * 500] = std::nan("");
  pair.y[2 * 700] = 1.5;
  pair.y[2 * 701] = 0.75;
  pair.y[2 * 900] = HUGE_VAL;
  const PairReader reader(pair.original(), pair.reconstructed(), {});
  const PlanePixels pixels = render_plane(reader, choose_planes(pair.shape)[0]);
  EXPECT_EQ(pixels.width, 2u);
  EXPECT_EQ(pixels.height, kMaxPixels);
  for (const double value : pixels.original) EXPECT_EQ(value, 1.0);
  EXPECT_EQ(*std::min_element(pixels.error.begin(), pixels.error.end()), -0.5);
  EXPECT_EQ(std::count(pixels.reconstructed.begin(), pixels.reconstructed.end(), HUGE_VAL), 1);
}

TEST(PairReader, EveryType_ReadsValuesErrorsAndFills) {
  const auto read_one = [](DType dtype, std::uint64_t x, std::uint64_t y, std::vector<std::uint64_t> fills) {
    PairRun run;
    const Shape one = shape_of({1});
    PairReader({&x, dtype, one}, {&y, dtype, one}, fills).read(0, 1, 1, run);
    return run;
  };
  EXPECT_EQ(read_one(DType::f16, 0x3c00, 0x3800, {}).error[0], 0.5);
  EXPECT_EQ(read_one(DType::f16, 0x0001, 0, {}).original[0], 0x1p-24);
  EXPECT_EQ(read_one(DType::bf16, 0x3f80, 0xbf80, {}).error[0], 2.0);
  EXPECT_EQ(read_one(DType::i8, 0x80, 0x7f, {}).error[0], -255.0);
  EXPECT_EQ(read_one(DType::u16, 65535, 0, {}).original[0], 65535.0);
  EXPECT_EQ(read_one(DType::i64, UINT64_C(1) << 63, INT64_MAX, {}).error[0], -0x1p64);
  EXPECT_EQ(read_one(DType::u64, UINT64_MAX, UINT64_MAX - 1, {}).error[0], 1.0);
  EXPECT_TRUE(std::isnan(read_one(DType::f16, 0x8000, 0x8000, {0}).original[0]));
  EXPECT_TRUE(std::isnan(read_one(DType::i16, 0xfc19, 0xfc19, {0xfc19}).error[0]));
  EXPECT_TRUE(std::isnan(read_one(DType::f32, 0x7f800000, 0, {}).original[0]));
}

TEST(SurveyErrors, CountsEveryElementOnce) {
  Pair pair{shape_of({3, 4}), std::vector<double>(12, 1.0), std::vector<double>(12, 1.0)};
  pair.y[0] = 0.0;       // error 1, slice 0
  pair.y[5] = 1.5;       // error -1/2, slice 1
  pair.y[6] = HUGE_VAL;  // beyond
  pair.x[11] = std::nan("");
  const PairReader reader(pair.original(), pair.reconstructed(), {});
  const ErrorSurvey survey = survey_errors(reader, {.range = 2.0, .max_error = 1.0, .relative = false});
  std::uint64_t total = 0;
  for (const std::uint64_t n : survey.counts) total += n;
  EXPECT_EQ(total, 10u);
  EXPECT_EQ(survey.beyond, 1u);
  EXPECT_EQ(survey.counts.back(), 1u);
  EXPECT_EQ(survey.counts[survey.counts.size() / 2], 8u);
  EXPECT_EQ(survey.counts[survey.counts.size() / 4], 1u);
  ASSERT_EQ(survey.slice_psnr.size(), 3u);
  EXPECT_DOUBLE_EQ(survey.slice_psnr[0], 20 * std::log10(2.0) - 10 * std::log10(0.25));
  EXPECT_EQ(survey.slice_psnr[1], -HUGE_VAL);
  EXPECT_EQ(survey.slice_psnr[2], HUGE_VAL);
  EXPECT_EQ(survey.slices_without_error, 1u);
}

TEST(SurveyErrors, ManySlices_AreGroupedByTheWorst) {
  Pair pair{shape_of({6000}), std::vector<double>(6000, 1.0), std::vector<double>(6000, 1.5)};
  pair.y[4321] = 3.0;
  const ErrorSurvey survey =
      survey_errors(PairReader(pair.original(), pair.reconstructed(), {}), {.range = 1.0, .max_error = 2.0});
  ASSERT_EQ(survey.slice_psnr.size(), 600u);
  EXPECT_DOUBLE_EQ(survey.slice_psnr[432], -20 * std::log10(2.0));
  EXPECT_DOUBLE_EQ(survey.slice_psnr[431], 20 * std::log10(2.0));
}

TEST(RenderPlot, OddData_StaysWellFormed) {
  const double nan = std::nan("");
  const double huge = std::numeric_limits<double>::max();
  for (const bool logarithmic : {false, true})
    for (const std::vector<double>& y : {std::vector<double>{},
                                         {1.0},
                                         {0.0, 0.0},
                                         {nan, nan},
                                         {1.0, nan, 2.0},
                                         {-huge, huge},
                                         {1e-320, 1e-310},
                                         {HUGE_VAL, 1.0},
                                         {1e15, 1e15 + 1}}) {
      Plot plot;
      plot.title = "a < b & c";
      plot.log_y = logarithmic;
      Series series{"curve", {}, y, 0, false, false};
      for (std::size_t i = 0; i < y.size(); ++i) series.x.push_back(static_cast<double>(i));
      plot.series = {series};
      const std::string svg = render(plot);
      EXPECT_EQ(test::markup_fault(svg), "");
      EXPECT_EQ(svg.find("nan"), std::string::npos) << svg;
      EXPECT_EQ(svg.find("inf"), std::string::npos) << svg;
    }
}

TEST(RenderPlot, Curve_GoesThroughItsCornersInOrder) {
  Plot plot;
  plot.series = {{"", {0, 1, 2}, {0, 1, 0}, 1, false, false}};
  const std::string svg = render(plot);
  const std::size_t at = svg.find("class=\"curve s1\"");
  ASSERT_NE(at, std::string::npos);
  double x[3];
  double y[3];
  const std::size_t path = svg.find("d=\"M", at);
  ASSERT_EQ(std::sscanf(svg.c_str() + path, "d=\"M%lf %lfL%lf %lfL%lf %lf", &x[0], &y[0], &x[1], &y[1], &x[2], &y[2]),
            6);
  EXPECT_LT(x[0], x[1]);
  EXPECT_LT(x[1], x[2]);
  EXPECT_NEAR(x[2] - x[1], x[1] - x[0], 0.2);
  EXPECT_LT(y[1], y[0]) << "larger values are drawn higher";
  EXPECT_EQ(y[0], y[2]);
}

TEST(MarkupFault, FindsFaults) {
  EXPECT_EQ(test::markup_fault("<a><b x=\"1\"/>&amp;</a>"), "");
  for (const char* bad : {"<a>", "<a></b>", "<a x=1></a>", "<a>&</a>", "<a", "text", "<a><b></a></b>"})
    EXPECT_NE(test::markup_fault(bad), "") << bad;
}

}  // namespace
}  // namespace quern::report
