// The page of quern checkpoint bench: a timeline of each way of saving.
#pragma once

#include <string>
#include <vector>

namespace quern::cli {

/// What somebody did from `begin` to `end`, in seconds. `lane`: 0 the trainer, 1 captures, 2 coding, 3 publishing.
struct BenchSpan {
  int lane = 0;
  std::string what;
  double begin = 0, end = 0;
};

struct BenchTimeline {
  std::string name;
  std::string figures;
  std::vector<BenchSpan> spans;
};

std::string bench_page(const std::string& title, const std::vector<BenchTimeline>& timelines);

}  // namespace quern::cli
