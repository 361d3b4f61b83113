// Text files with a line for each frame.
#include <algorithm>

#include <fmt/format.h>

#include "cli/lidar/verb.h"

namespace quern::cli {

void for_each_line(const std::string& path, const std::function<void(std::size_t, std::string_view)>& take) {
  const Mapping mapping = Mapping::of_file(path);
  std::string_view text(reinterpret_cast<const char*>(mapping.bytes().data()), mapping.bytes().size());
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    while (line.ends_with('\r') || line.ends_with(' ')) line.remove_suffix(1);
    if (line.empty()) continue;
    take(number, line);
  }
}

void check_one_a_frame(const std::string& path, const char* what, std::size_t found, std::size_t frames) {
  if (found != frames)
    fail(Exit::usage, fmt::format("{}: has {} {}, but there are {} frames", path, found, what, frames));
}

}  // namespace quern::cli
