// Numbers of options, and what to type instead.
#include "surrogate/train/option_values.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <system_error>

namespace quern::surrogate {

std::string number_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

bool take_number(const std::string& option, const char* text, double least, double most, double& out,
                 std::string& problem) {
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  if (end != text && *end == '\0' && value >= least && value <= most) {
    out = value;
    return true;
  }
  problem = option + " " + text + ": use " + number_text(least) + " to " + number_text(most);
  return false;
}

bool take_count(const std::string& option, const char* text, std::uint64_t least, std::uint64_t most,
                std::uint64_t& out, std::string& problem) {
  std::uint64_t value = 0;
  const char* const end = text + std::strlen(text);
  const auto [next, error] = std::from_chars(text, end, value);
  if (error == std::errc() && next == end && value >= least && value <= most) {
    out = value;
    return true;
  }
  problem = option + " " + text + ": use " + std::to_string(least) + " to " + std::to_string(most);
  return false;
}

}  // namespace quern::surrogate
