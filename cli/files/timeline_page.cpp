#include "cli/files/timeline_page.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/report/html.h"

namespace quern::cli {
namespace {

constexpr double kWidth = 1100, kLane = 22, kLeft = 90;

std::string colour_of(const TimelinePage& page, const std::string& what) {
  for (const auto& [kind, colour] : page.colours)
    if (kind == what) return colour;
  return "#a7c957";
}

std::string picture(const TimelinePage& page, const Timeline& timeline, double longest) {
  const double scale = (kWidth - kLeft) / longest;
  const double height = static_cast<double>(timeline.lanes.size()) * kLane;
  std::string out =
      fmt::format("<svg width=\"{}\" height=\"{}\" font-size=\"12\" role=\"img\">\n", kWidth, height + 20);
  for (std::size_t lane = 0; lane < timeline.lanes.size(); ++lane)
    out += fmt::format("<text x=\"0\" y=\"{}\">{}</text>\n", (static_cast<double>(lane) + 0.7) * kLane,
                       report::escape(timeline.lanes[lane]));
  for (const TimelineSpan& span : timeline.spans) {
    if (span.begin > longest) continue;
    const double end = std::min(span.end, longest);
    out += fmt::format(
        "<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\" fill=\"{}\"><title>{}: {:.2f} "
        "ms</title></rect>\n",
        kLeft + span.begin * scale, static_cast<double>(span.lane) * kLane + 2,
        std::max((end - span.begin) * scale, 0.4), kLane - 4, colour_of(page, span.what), report::escape(span.what),
        (end - span.begin) * 1000);
  }
  for (int i = 0; i <= 4; ++i)
    out += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"{}\">{:.0f} ms</text>\n",
                       kLeft + (kWidth - kLeft) * i / 4, height + 14, i == 4 ? "end" : "middle", longest * 250 * i);
  return out + "</svg>\n";
}

}  // namespace

std::string timeline_page(const TimelinePage& page) {
  double longest = 1e-3;
  for (const Timeline& timeline : page.timelines)
    for (const TimelineSpan& span : timeline.spans)
      if (span.lane == 0) longest = std::max(longest, span.end);
  std::string out = report::page_head(page.title);
  out += fmt::format("<h1>{}</h1>\n<p>", report::escape(page.title));
  for (const auto& [what, colour] : page.colours)
    out += fmt::format("<span style=\"background:{};padding:0 0.6em\">&nbsp;</span> {} &nbsp; ", colour,
                       report::escape(what));
  out += fmt::format("</p>\n<p>{}</p>\n", report::escape(page.remark));
  for (const Timeline& timeline : page.timelines)
    out += fmt::format("<h2>{}</h2>\n<p>{}</p>\n{}", report::escape(timeline.name), report::escape(timeline.figures),
                       picture(page, timeline, longest));
  return out + report::page_foot();
}

}  // namespace quern::cli
