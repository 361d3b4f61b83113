// The whole page: well-formed, complete and self-contained for arrays of every shape and for odd values.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "cli/report/compare_report.h"
#include "tests/unit_report/markup.h"

namespace quern::report {
namespace {

Shape shape_of(std::initializer_list<std::uint64_t> extents) {
  return Shape::make({extents.begin(), extents.size()}).value();
}

struct Arrays {
  Shape shape;
  std::vector<float> x;
  std::vector<float> y;
  ArrayView original() const { return {x.data(), DType::f32, shape}; }
  ArrayView reconstructed() const { return {y.data(), DType::f32, shape}; }
};

Arrays wavy(const Shape& shape) {
  Arrays arrays{shape, {}, {}};
  for (std::uint64_t i = 0; i < shape.elems(); ++i) {
    arrays.x.push_back(std::sin(0.1f * static_cast<float>(i)) * 10);
    arrays.y.push_back(std::round(arrays.x.back() * 8) / 8);
  }
  return arrays;
}

std::string page(const Arrays& arrays, const ReportOptions& options = {}) {
  QualityOptions quality_options;
  quality_options.validity.fill_bits = options.fill_bits;
  auto quality = measure_quality(arrays.original(), arrays.reconstructed(), quality_options, {});
  EXPECT_TRUE(quality.ok());
  const std::string html = compare_report_html(arrays.original(), arrays.reconstructed(), *quality, options);
  EXPECT_EQ(test::markup_fault(html), "") << arrays.shape.text();
  EXPECT_EQ(html.find("http"), std::string::npos) << "the page refers to nothing outside";
  EXPECT_EQ(html.find("<script"), std::string::npos);
  EXPECT_NE(html.find("id=\"metrics\""), std::string::npos);
  return html;
}

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(CompareReport, ThreeAxes_HasEveryPart) {
  ReportOptions options;
  options.variable = "temperature";
  options.units = "K";
  options.bound = EnforcedBound{BoundKind::abs, 0.0625};
  options.facts = {{"Codec", "lorenzo"}, {"Ratio", "12.5"}};
  const std::string html = page(wavy(shape_of({12, 20, 30})), options);
  for (const char* part : {"id=\"slices\"", "id=\"histogram\"", "id=\"slice-psnr\"", "id=\"spectrum\"",
                           "id=\"autocorrelation\"", "PSNR", "SSIM", "temperature [K]", "lorenzo", "+bound", "−bound",
                           "[6, :, :]", "Error [K]", "cycles per element", "largest error / bound"})
    EXPECT_NE(html.find(part), std::string::npos) << part;
  EXPECT_EQ(occurrences(html, "data:image/png;base64,"), 3u * 3 + 3);
}

TEST(CompareReport, OneAxis_IsDrawnAsCurves) {
  for (const std::uint64_t n : {2u, 7u, 50u, 5000u}) {
    const std::string html = page(wavy(shape_of({n})));
    EXPECT_NE(html.find("id=\"values\""), std::string::npos);
    EXPECT_NE(html.find("id=\"errors\""), std::string::npos);
    EXPECT_EQ(html.find("id=\"slices\""), std::string::npos);
    EXPECT_EQ(html.find("id=\"slice-psnr\""), std::string::npos);
    EXPECT_EQ(html.find("id=\"spectrum\"") != std::string::npos, n >= 8);
  }
}

TEST(CompareReport, TwoAndMoreAxes_AreDrawnAsPlanes) {
  const Shape shapes[] = {shape_of({40, 33}),   shape_of({3, 2000}),      shape_of({1, 9}),
                          shape_of({1, 1, 1}),  shape_of({2, 3, 20, 30}), shape_of({2, 1, 2, 3, 2, 4, 9, 10}),
                          shape_of({600, 700}), shape_of({5, 4, 3, 2, 1})};
  for (const Shape& shape : shapes) {
    const std::string html = page(wavy(shape));
    EXPECT_NE(html.find("id=\"slices\""), std::string::npos) << shape.text();
    EXPECT_EQ(html.find("id=\"values\""), std::string::npos) << shape.text();
  }
}

TEST(CompareReport, NoError_LeavesOutPicturesOfErrors) {
  auto arrays = wavy(shape_of({12, 20, 30}));
  arrays.y = arrays.x;
  const std::string html = page(arrays);
  for (const char* part :
       {"id=\"histogram\"", "id=\"slice-psnr\"", "id=\"autocorrelation\"", "nothing to draw", "lag 1"})
    EXPECT_EQ(html.find(part), std::string::npos) << part;
  EXPECT_NE(html.find("id=\"spectrum\""), std::string::npos);
}

TEST(CompareReport, NoElements_SaysSo) {
  for (const Shape& shape : {shape_of({0}), shape_of({3, 0, 4})})
    EXPECT_NE(page({shape, {}, {}}).find("no elements"), std::string::npos);
}

TEST(CompareReport, OneElement_Works) {
  page(wavy(Shape()));
  page(wavy(shape_of({1})));
}

TEST(CompareReport, AllNan_SaysSo) {
  for (const Shape& shape : {shape_of({30}), shape_of({9, 10}), shape_of({4, 9, 10})}) {
    const std::vector<float> gaps(shape.elems(), std::nanf(""));
    const std::string html = page({shape, gaps, gaps});
    EXPECT_NE(html.find("No element of the original is valid"), std::string::npos);
    EXPECT_EQ(html.find("id=\"histogram\""), std::string::npos);
  }
}

TEST(CompareReport, PerfectReconstruction_HasNoHistogram) {
  Arrays arrays = wavy(shape_of({4, 20, 30}));
  arrays.y = arrays.x;
  const std::string html = page(arrays);
  EXPECT_NE(html.find("∞ (no error)"), std::string::npos);
  EXPECT_EQ(html.find("id=\"histogram\""), std::string::npos);
  EXPECT_EQ(html.find("id=\"autocorrelation\""), std::string::npos);
}

TEST(CompareReport, OddValues_StayWellFormed) {
  const float largest = std::numeric_limits<float>::max();
  Arrays arrays = wavy(shape_of({4, 20, 30}));
  arrays.x[7] = std::nanf("");
  arrays.x[700] = HUGE_VALF;
  arrays.y[800] = HUGE_VALF;
  arrays.x[900] = largest;
  arrays.x[901] = -largest;
  arrays.y[902] = std::nanf("");
  const std::string html = page(arrays);
  EXPECT_NE(html.find("special values changed"), std::string::npos);
  EXPECT_EQ(html.find("nan"), std::string::npos);
  const std::vector<double> wide{-std::numeric_limits<double>::max(), 0, std::numeric_limits<double>::max(), 1e-320};
  const std::vector<double> back{0, 1e-310, std::numeric_limits<double>::max(), 0};
  for (const Shape& shape : {shape_of({4}), shape_of({2, 2})}) {
    const ArrayView x{wide.data(), DType::f64, shape};
    const ArrayView y{back.data(), DType::f64, shape};
    EXPECT_EQ(test::markup_fault(compare_report_html(x, y, *measure_quality(x, y, {}, {}), {})), "");
  }
}

TEST(CompareReport, BrokenBound_IsMarked) {
  ReportOptions options;
  options.bound = EnforcedBound{BoundKind::abs, 0.01};
  EXPECT_NE(page(wavy(shape_of({20, 30})), options).find("class=\"tile bad\""), std::string::npos);
  options.bound = EnforcedBound{BoundKind::abs, 0.07};
  EXPECT_EQ(page(wavy(shape_of({20, 30})), options).find("class=\"tile bad\""), std::string::npos);
}

TEST(CompareReport, RelativeBound_HasARelativeHistogram) {
  ReportOptions options;
  options.bound = EnforcedBound{BoundKind::pwrel, 0.1};
  EXPECT_NE(page(wavy(shape_of({20, 30})), options).find("Error / |original|"), std::string::npos);
}

TEST(CompareReport, NamesWithMarkup_AreEscaped) {
  ReportOptions options;
  options.original_name = "<img src=x onerror=alert(1)> & \"more\"";
  options.variable = "a<b";
  options.units = "\xff";
  options.facts = {{"<b>", "</table>"}};
  EXPECT_EQ(page(wavy(shape_of({20, 30})), options).find("<img src=x"), std::string::npos);
}

TEST(CompareReport, FillValues_AreGaps) {
  Arrays arrays = wavy(shape_of({20, 30}));
  for (std::size_t i = 0; i < 100; ++i) arrays.x[i] = arrays.y[i] = 9e30f;
  ReportOptions options;
  std::uint32_t bits = 0;
  std::memcpy(&bits, arrays.x.data(), 4);
  options.fill_bits = {bits};
  const std::string html = page(arrays, options);
  EXPECT_EQ(html.find("9e+30"), std::string::npos);
}

TEST(CompareReport, EveryType_Works) {
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64, DType::i8, DType::i16, DType::i32,
                            DType::i64, DType::u8, DType::u16, DType::u32, DType::u64}) {
    std::vector<std::uint64_t> x(400);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = i * UINT64_C(0x0123456789abcdef);
    std::vector<std::uint64_t> y = x;
    y[5] ^= UINT64_C(0x0101010101010101);
    const ArrayView a{x.data(), dtype, shape_of({4, 10, 10})};
    const ArrayView b{y.data(), dtype, shape_of({4, 10, 10})};
    EXPECT_EQ(test::markup_fault(compare_report_html(a, b, *measure_quality(a, b, {}, {}), {})), "")
        << dtype_name(dtype);
  }
}

}  // namespace
}  // namespace quern::report
