// Writing JSON.
#include "bench/gpu/report.h"

#include <cmath>
#include <stdexcept>

namespace quern::bench {
namespace {

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') out += '\\';
    if (code < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(code));
      out += escape;
    } else {
      out += c;
    }
  }
  return out + '"';
}

}  // namespace

Members& Members::add(std::string_view name, const std::string& value) {
  if (!text_.empty()) text_ += ", ";
  text_ += quoted(name) + ": " + value;
  return *this;
}
Members& Members::text(std::string_view name, std::string_view value) { return add(name, quoted(value)); }
Members& Members::number(std::string_view name, double value) {
  if (!std::isfinite(value)) return add(name, "null");
  char digits[40];
  std::snprintf(digits, sizeof digits, "%.9g", value);
  return add(name, digits);
}
Members& Members::count(std::string_view name, std::uint64_t value) { return add(name, std::to_string(value)); }
Members& Members::flag(std::string_view name, bool value) { return add(name, value ? "true" : "false"); }
Members& Members::object(std::string_view name, const Members& value) { return add(name, value.braced()); }

Members& Members::join(const Members& others) {
  if (!text_.empty() && !others.text_.empty()) text_ += ", ";
  text_ += others.text_;
  return *this;
}

Report::Report(const std::string& path) : file_(std::fopen(path.c_str(), "w")) {
  if (file_ == nullptr) throw std::runtime_error("cannot write " + path);
}

Report::~Report() { std::fclose(file_); }

void Report::line(std::string_view record, const Members& members) {
  Members all;
  all.text("record", record).join(members);
  std::fputs((all.braced() + "\n").c_str(), file_);
  if (std::fflush(file_) != 0) throw std::runtime_error("the report could not be written");
}

}  // namespace quern::bench
