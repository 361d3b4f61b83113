// A page of timelines, one below the other: who did what when, and who waited.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace quern::cli {

/// What somebody did from `begin` to `end`, in seconds.
struct TimelineSpan {
  std::size_t lane = 0;  ///< number of a line
  std::string what;      ///< one of the page's kinds
  double begin = 0, end = 0;
};

struct Timeline {
  std::string name;
  std::string figures;
  std::vector<std::string> lanes;
  std::vector<TimelineSpan> spans;
};

struct TimelinePage {
  std::string title;
  std::string remark;                                        ///< a sentence below the colours
  std::vector<std::pair<std::string, std::string>> colours;  ///< of each kind, in the order of the key
  std::vector<Timeline> timelines;                           ///< all have one scale
};

/// Complete HTML; texts are escaped here. Times end where the longest first line does.
std::string timeline_page(const TimelinePage& page);

}  // namespace quern::cli
