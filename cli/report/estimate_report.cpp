// The page of estimates from top to bottom: for each array two plots, its notes, and the table.
#include "cli/report/estimate_report.h"

#include <algorithm>
#include <cmath>

#include "cli/report/html.h"
#include "cli/report/plot.h"

namespace quern::report {
namespace {

constexpr int kColors = 3;

std::string with_interval(const Interval& i, int digits) {
  return number(i.value, digits) + " (" + number(i.low, digits) + " to " + number(i.high, digits) + ")";
}

std::string bound_text(const Estimate& e) {
  if (e.bound.kind == BoundKind::lossless) return "lossless";
  return std::string(e.bound.kind == BoundKind::rel ? "relative " : "absolute ") + number(e.bound.value, 4);
}

/// Estimates of one codec, from the smallest bound to the largest.
struct CodecRows {
  std::string codec;
  std::vector<const Estimate*> rows;
};

/// The codecs that lose something, in the order of the report.
std::vector<CodecRows> lossy_codecs(const EstimateReport& report) {
  std::vector<CodecRows> out;
  for (const Estimate& e : report.estimates) {
    if (!e.psnr_db) continue;
    const auto known = std::find_if(out.begin(), out.end(), [&](const CodecRows& c) { return c.codec == e.codec; });
    if (known == out.end()) {
      out.push_back({e.codec, {&e}});
    } else {
      known->rows.push_back(&e);
    }
  }
  for (CodecRows& codec : out)
    std::stable_sort(codec.rows.begin(), codec.rows.end(),
                     [](const Estimate* a, const Estimate* b) { return a->absolute < b->absolute; });
  return out;
}

template <class X, class Y>
Series curve(const CodecRows& codec, int color, const std::string& name, bool dashed, X&& x, Y&& y) {
  Series out;
  out.name = name;
  out.color = color;
  out.dashed = dashed;
  for (const Estimate* e : codec.rows) {
    out.x.push_back(x(*e));
    out.y.push_back(y(*e));
  }
  return out;
}

/// Ratios of streams that keep every bit, as marks.
std::vector<Mark> exact_ratios(const EstimateReport& report) {
  std::vector<Mark> out;
  for (const Estimate& e : report.estimates)
    if (!e.psnr_db) out.push_back({e.ratio.value, e.codec});
  return out;
}

std::string quality_plot(const EstimateReport& report, const std::vector<CodecRows>& codecs) {
  Plot plot;
  plot.title = "PSNR against ratio";
  plot.x_label = "Ratio";
  plot.y_label = "PSNR [dB]";
  plot.log_x = true;
  plot.marks = exact_ratios(report);
  for (std::size_t i = 0; i < codecs.size(); ++i)
    plot.series.push_back(curve(
        codecs[i], static_cast<int>(i) % kColors, codecs[i].codec, i >= kColors,
        [](const Estimate& e) { return e.ratio.value; }, [](const Estimate& e) { return e.psnr_db->value; }));
  return render(plot);
}

std::string ratio_plot(const std::vector<CodecRows>& codecs) {
  Plot plot;
  plot.title = "Ratio against the bound";
  plot.x_label = "Largest error, in the array's units";
  plot.y_label = "Ratio";
  plot.log_x = plot.log_y = true;
  const auto bound = [](const Estimate& e) { return e.absolute; };
  for (std::size_t i = 0; i < codecs.size(); ++i) {
    const int color = static_cast<int>(i) % kColors;
    plot.series.push_back(
        curve(codecs[i], color, codecs[i].codec, false, bound, [](const Estimate& e) { return e.ratio.value; }));
    plot.series.push_back(curve(codecs[i], color, "", true, bound, [](const Estimate& e) { return e.ratio.low; }));
    plot.series.push_back(curve(codecs[i], color, "", true, bound, [](const Estimate& e) { return e.ratio.high; }));
  }
  return render(plot);
}

std::string estimates_table(const EstimateReport& report) {
  std::string out =
      "<div class=\"scroll\"><table>\n<tr><th>codec</th><th>bound</th><th>largest error</th><th>ratio (10 % to 90 "
      "%)</th><th>PSNR [dB] (10 % to 90 %)</th><th>SSIM</th><th>compress [MB/s]</th><th>decompress [MB/s]</th></tr>\n";
  for (const Estimate& e : report.estimates) {
    const std::string cells[] = {
        bound_text(e),
        e.psnr_db ? number(e.absolute, 4) : "0",
        with_interval(e.ratio, 4),
        e.psnr_db ? with_interval(*e.psnr_db, 4) : "exact",
        e.ssim ? number(e.ssim->value, 5) : "–",
        number(e.compress_mb_per_s.value, 3),
        number(e.decompress_mb_per_s.value, 3),
    };
    out += "<tr><th scope=\"row\">" + escape(e.codec + (e.wide ? " (wide)" : "")) + "</th>";
    for (const std::string& cell : cells) out += "<td>" + escape(cell) + "</td>";
    out += "</tr>\n";
  }
  return out + "</table></div>\n";
}

std::string section(const EstimatedArray& array) {
  const std::vector<CodecRows> codecs = lossy_codecs(array.report);
  std::string out = "<section>\n<h2>" + escape(array.name) + "</h2>\n<p class=\"note\">" + escape(array.kind) +
                    "; values span " + number(array.report.range) + "; " + count(array.report.sampled) +
                    " values were sampled. Dashed: the 10 % and the 90 % quantile.</p>\n";
  if (!codecs.empty())
    out += "<div class=\"pair\"><div>" + quality_plot(array.report, codecs) + "</div><div>" + ratio_plot(codecs) +
           "</div></div>\n";
  for (const std::string& note : array.report.notes) out += "<p class=\"note\">" + escape(note) + "</p>\n";
  return out + estimates_table(array.report) + "</section>\n";
}

}  // namespace

std::string estimate_report_html(const std::vector<EstimatedArray>& arrays, const std::string& footer) {
  std::string out = page_head("What compressing would give");
  out +=
      "<h1>What compressing would give</h1>\n<p class=\"soft\">Estimates from a sample. In the training, four of five "
      "true numbers lay within the intervals. The bound holds in any case.</p>\n";
  for (const EstimatedArray& array : arrays) out += section(array);
  return out + "<p class=\"note\">" + escape(footer) + "</p>\n" + page_foot();
}

}  // namespace quern::report
