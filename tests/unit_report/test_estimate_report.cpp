// The page of estimates: well-formed, every number of the report in it, and codecs that keep every bit as marks.
#include <gtest/gtest.h>

#include <string>

#include "cli/report/estimate_report.h"
#include "tests/unit_report/markup.h"

namespace quern::report {
namespace {

Estimate lossy(const std::string& codec, double bound, double ratio, double psnr) {
  Estimate out;
  out.codec = codec;
  out.bound = {BoundKind::rel, bound};
  out.absolute = bound * 40;
  out.ratio = {ratio * 0.5, ratio, ratio * 2};
  out.psnr_db = Interval{psnr - 1, psnr, psnr + 1};
  out.ssim = Interval{0.5, 0.75, 0.875};
  out.compress_mb_per_s = out.decompress_mb_per_s = {100, 200, 300};
  return out;
}

EstimatedArray two_codecs() {
  EstimatedArray out{"<T & \"q\">", "50x100 of float32", {}};
  out.report.range = 40;
  out.report.sampled = 12345;
  for (const double bound : {1e-2, 1e-3}) {
    out.report.estimates.push_back(lossy("stencil", bound, 1234 * bound, -20 / bound));
    out.report.estimates.push_back(lossy("lorenzo", bound, 777 * bound, 41.5));
  }
  Estimate exact;
  exact.codec = "lossless";
  exact.bound = {BoundKind::lossless, 0};
  exact.ratio = {1.1, 1.25, 1.5};
  exact.compress_mb_per_s = exact.decompress_mb_per_s = {100, 200, 300};
  exact.wide = true;
  out.report.estimates.push_back(exact);
  out.report.notes.push_back("the array is unlike those of the training & more");
  return out;
}

std::size_t count_of(const std::string& text, const std::string& word) {
  std::size_t n = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

TEST(EstimateReport, TwoCodecs_PageIsWellFormedAndHoldsEveryNumber) {
  const std::string page = estimate_report_html({two_codecs(), two_codecs()}, "quern <1>");
  EXPECT_EQ(test::markup_fault(page), "");
  EXPECT_EQ(count_of(page, "<section>"), 2U);
  EXPECT_EQ(count_of(page, "<svg"), 4U);
  for (const char* text : {"12.34 (6.17 to 24.68)", "1.234 (0.617 to 2.468)", "7.77 (3.885 to 15.54)", "relative 0.001",
                           "0.04", "41.5 (40.5 to 42.5)", "1.25 (1.1 to 1.5)", "lossless (wide)", "exact",
                           "&lt;T &amp; &quot;q&quot;&gt;", "unlike those of the training &amp; more"})
    EXPECT_GE(count_of(page, text), 2U) << text;
  EXPECT_EQ(count_of(page, "quern &lt;1&gt;"), 1U);
  EXPECT_EQ(count_of(page, "class=\"mark-name\""), 2U);
  // A line for each codec in the first picture, and one with its two quantiles in the second.
  EXPECT_EQ(count_of(page, "<path class=\"curve"), 2U * (2 + 6));
}

TEST(EstimateReport, NothingIsLost_ThereAreNoPlots) {
  EstimatedArray array = two_codecs();
  array.report.estimates.erase(array.report.estimates.begin(), array.report.estimates.end() - 1);
  const std::string page = estimate_report_html({array}, "quern");
  EXPECT_EQ(test::markup_fault(page), "");
  EXPECT_EQ(count_of(page, "<svg"), 0U);
  EXPECT_EQ(count_of(page, "1.25 (1.1 to 1.5)"), 1U);
}

}  // namespace
}  // namespace quern::report
