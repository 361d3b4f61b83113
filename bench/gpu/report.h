// The report: lines of JSON, one object each, so that what was measured before an early end can be read.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace quern::bench {

/// Members of a JSON object, as text.
class Members {
 public:
  Members& text(std::string_view name, std::string_view value);
  Members& number(std::string_view name, double value);  ///< null where it is not finite
  Members& count(std::string_view name, std::uint64_t value);
  Members& flag(std::string_view name, bool value);
  Members& object(std::string_view name, const Members& value);
  Members& join(const Members& others);
  std::string braced() const { return "{" + text_ + "}"; }

 private:
  Members& add(std::string_view name, const std::string& value);
  std::string text_;
};

class Report {
 public:
  /// Throws std::runtime_error when the file cannot be made.
  explicit Report(const std::string& path);
  ~Report();
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;

  /// Writes a line: an object whose first member "record" says what it is. Throws std::runtime_error when that fails.
  void line(std::string_view record, const Members& members);

 private:
  std::FILE* file_ = nullptr;
};

}  // namespace quern::bench
