// General messages of status codes and texts of system errors.
#include "libcompress/io/error.h"

#include <system_error>
#include <utility>

namespace quern::io {
namespace {

const char* general_message(StatusCode code) {
  switch (code) {
    case StatusCode::io_error: return "a file could not be read or written";
    case StatusCode::invalid_shape: return "the shape does not fit the file";
    case StatusCode::unsupported: return "the file holds something this build does not handle";
    case StatusCode::truncated: return "the file is shorter than its array";
    case StatusCode::trailing_data: return "the file holds more than its array";
    case StatusCode::corrupt: return "the file is damaged";
    case StatusCode::bad_magic: return "the file is of another kind";
    case StatusCode::out_of_memory: return "memory ran out";
    default: return "the file cannot be used as asked";
  }
}

}  // namespace

Status fail(std::string& detail, StatusCode code, std::string sentence) {
  detail = std::move(sentence);
  return {code, general_message(code)};
}

std::string errno_text(int number) { return std::generic_category().message(number); }

std::string shown(const std::string& path, const char* standard) { return path == "-" ? standard : path; }

}  // namespace quern::io
