// Times of frames: seconds as a decimal number, or a date and a time of day as KITTI writes them, a line each.
#include <charconv>
#include <chrono>
#include <optional>

#include <fmt/format.h>

#include "cli/lidar/verb.h"

namespace quern::cli {
namespace {

constexpr std::int64_t kBillion = 1'000'000'000;
constexpr std::int64_t kMostSeconds = 9'000'000'000;

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return out;
}

/// "12.25" as nanoseconds; digits behind the ninth are cut off.
std::optional<std::int64_t> seconds_in_ns(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  const std::size_t point = std::min(text.find('.'), text.size());
  std::string fraction(text.substr(std::min(point + 1, text.size())));
  fraction.resize(9, '0');
  const auto seconds = whole_number(text.substr(0, point));
  const auto part = whole_number(fraction);
  if (!seconds || !part || *seconds < 0 || *seconds > kMostSeconds || *part < 0) return std::nullopt;
  const std::int64_t ns = *seconds * kBillion + *part;
  return negative ? -ns : ns;
}

/// "2011-09-26 13:02:25.951199337", taken as UTC.
std::optional<std::int64_t> date_in_ns(std::string_view text) {
  if (text.size() < 19 || text[4] != '-' || text[7] != '-' || text[13] != ':' || text[16] != ':') return std::nullopt;
  const auto year = whole_number(text.substr(0, 4));
  const auto month = whole_number(text.substr(5, 2));
  const auto day = whole_number(text.substr(8, 2));
  const auto hour = whole_number(text.substr(11, 2));
  const auto minute = whole_number(text.substr(14, 2));
  const auto rest = seconds_in_ns(text.substr(17));
  if (!year || !month || !day || !hour || !minute || !rest || *year < 1970 || *year > 2200) return std::nullopt;
  const std::chrono::year_month_day date(std::chrono::year(static_cast<int>(*year)),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day)));
  if (!date.ok() || *hour > 23 || *hour < 0 || *minute > 59 || *minute < 0 || *rest >= 61 * kBillion)
    return std::nullopt;
  const std::int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  return ((days * 24 + *hour) * 60 + *minute) * 60 * kBillion + *rest;
}

}  // namespace

std::vector<std::int64_t> read_times(const std::string& path, std::size_t frames) {
  std::vector<std::int64_t> out;
  for_each_line(path, [&](std::size_t number, std::string_view line) {
    const auto ns = line.find(':') != std::string_view::npos ? date_in_ns(line) : seconds_in_ns(line);
    if (!ns)
      fail(Exit::usage, fmt::format("{}: line {} is neither seconds nor a date and time such as 2011-09-26 13:02:25.95",
                                    path, number));
    out.push_back(*ns);
  });
  check_one_a_frame(path, "times", out.size(), frames);
  return out;
}

}  // namespace quern::cli
