// Text for the page: escaping, numbers, the style sheet.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace quern::report {

/// Safe in text and in double-quoted attributes; bytes that XML does not allow become '?'.
std::string escape(std::string_view text);

/// Shortest form with at most `digits` significant digits, independent of the locale; "NaN", "∞" and "−∞" by name.
std::string number(double value, int digits = 6);
/// With thin spaces between groups of three digits.
std::string count(std::uint64_t value);

struct TableRow {
  std::string name;
  std::string value;
  std::string remark;
};

/// Texts are escaped here.
std::string table(const std::vector<TableRow>& rows);

/// Everything up to and with <body>.
std::string page_head(std::string_view title);
std::string page_foot();

}  // namespace quern::report
