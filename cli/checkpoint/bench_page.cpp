#include "cli/checkpoint/bench_page.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/report/html.h"

namespace quern::cli {
namespace {

constexpr double kWidth = 1100, kLane = 22, kLeft = 90;
constexpr const char* kLanes[] = {"trainer", "capture", "coding", "publish"};

const char* colour(const std::string& what) {
  if (what == "forward") return "#8ecae6";
  if (what == "backward") return "#219ebc";
  if (what == "update") return "#023047";
  if (what == "fence" || what == "save") return "#d62828";
  if (what == "submit") return "#f77f00";
  if (what == "capture") return "#fcbf49";
  if (what == "tier") return "#386641";
  return what == "publish" ? "#6a994e" : "#a7c957";
}

std::string picture(const BenchTimeline& timeline, double longest) {
  const double scale = (kWidth - kLeft) / longest;
  std::string out =
      fmt::format("<svg width=\"{}\" height=\"{}\" font-size=\"12\" role=\"img\">\n", kWidth, 4 * kLane + 20);
  for (int lane = 0; lane < 4; ++lane)
    out += fmt::format("<text x=\"0\" y=\"{}\">{}</text>\n", (lane + 0.7) * kLane, kLanes[lane]);
  for (const BenchSpan& span : timeline.spans)
    out += fmt::format(
        "<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\" fill=\"{}\"><title>{}: {:.2f} "
        "ms</title></rect>\n",
        kLeft + span.begin * scale, span.lane * kLane + 2, std::max((span.end - span.begin) * scale, 0.4), kLane - 4,
        colour(span.what), report::escape(span.what), (span.end - span.begin) * 1000);
  const double seconds = longest;
  for (int i = 0; i <= 4; ++i)
    out += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"{}\">{:.0f} ms</text>\n",
                       kLeft + (kWidth - kLeft) * i / 4, 4 * kLane + 14, i == 4 ? "end" : "middle", seconds * 250 * i);
  return out + "</svg>\n";
}

}  // namespace

std::string bench_page(const std::string& title, const std::vector<BenchTimeline>& timelines) {
  double longest = 1e-3;
  for (const BenchTimeline& timeline : timelines)
    for (const BenchSpan& span : timeline.spans)
      if (span.lane == 0) longest = std::max(longest, span.end);
  std::string out = report::page_head(title);
  out += fmt::format("<h1>{}</h1>\n<p>", report::escape(title));
  for (const char* const what :
       {"forward", "backward", "update", "fence", "submit", "capture", "code", "publish", "tier"})
    out += fmt::format("<span style=\"background:{};padding:0 0.6em\">&nbsp;</span> {} &nbsp; ", colour(what), what);
  out +=
      "</p>\n<p>Red is time that the trainer waits: at a fence, or for a whole save. All pictures have one "
      "scale.</p>\n";
  for (const BenchTimeline& timeline : timelines) {
    BenchTimeline shown = timeline;
    std::erase_if(shown.spans, [&](const BenchSpan& span) { return span.begin > longest; });
    for (BenchSpan& span : shown.spans) span.end = std::min(span.end, longest);
    out += fmt::format("<h2>{}</h2>\n<p>{}</p>\n{}", report::escape(timeline.name), report::escape(timeline.figures),
                       picture(shown, longest));
  }
  return out + report::page_foot();
}

}  // namespace quern::cli
