// Sentences about failures.
#include "storage/report.h"

#include <array>
#include <charconv>
#include <system_error>

namespace quern::storage {

String decimal(std::uint64_t value) {
  std::array<char, 20> room;
  const auto end = std::to_chars(room.data(), room.data() + room.size(), value).ptr;
  return {room.data(), end};
}

String join(std::initializer_list<std::string_view> parts) {
  String out;
  for (const std::string_view part : parts) out += part;
  return out;
}

Status fail(Report& report, StatusCode code, String sentence) {
  report.problem = std::move(sentence);
  return Status(code, "the folder or a file in it cannot be used");
}

Status fail_file(Report& report, std::string_view path, const char* what, const Status& status) {
  if (status.code() != StatusCode::io_error || status.first() == 0) {
    report.problem = join({path, ": cannot ", what, ": ", status.text()});
  } else {
    const std::string system = std::generic_category().message(static_cast<int>(status.first()));
    report.problem = join({path, ": cannot ", what, ": ", system});
  }
  return status;
}

Status fail_at(Report& report, std::string_view place, const Status& status) {
  if (report.problem.empty()) report.problem = String(status.text());
  report.problem = join({place, ": ", report.problem});
  return status;
}

}  // namespace quern::storage
