// Names of status codes and the text of a status.
#include <quern/status.h>

#include <array>
#include <charconv>

namespace quern {

const char* status_name(StatusCode code) {
  switch (code) {
    case StatusCode::ok: return "ok";
    case StatusCode::invalid_argument: return "invalid_argument";
    case StatusCode::invalid_shape: return "invalid_shape";
    case StatusCode::invalid_bound: return "invalid_bound";
    case StatusCode::unknown_setting: return "unknown_setting";
    case StatusCode::bound_not_met: return "bound_not_met";
    case StatusCode::bad_magic: return "bad_magic";
    case StatusCode::truncated: return "truncated";
    case StatusCode::corrupt: return "corrupt";
    case StatusCode::checksum_mismatch: return "checksum_mismatch";
    case StatusCode::unsupported_version: return "unsupported_version";
    case StatusCode::trailing_data: return "trailing_data";
    case StatusCode::unsupported: return "unsupported";
    case StatusCode::unknown_codec: return "unknown_codec";
    case StatusCode::out_of_memory: return "out_of_memory";
    case StatusCode::memory_limit: return "memory_limit";
    case StatusCode::io_error: return "io_error";
    case StatusCode::cancelled: return "cancelled";
    case StatusCode::destination_too_small: return "destination_too_small";
    case StatusCode::device_unavailable: return "device_unavailable";
    case StatusCode::device_error: return "device_error";
    case StatusCode::internal: return "internal";
  }
  return "unknown";
}

std::size_t Status::write_text(std::span<char> out) const {
  std::size_t used = 0;
  const auto put = [&](const char* first, const char* last) {
    for (; first != last && used + 1 < out.size(); ++first) out[used++] = *first;
  };
  for (const char* p = message_; *p != '\0'; ++p) {
    if (p[0] == '{' && (p[1] == '0' || p[1] == '1') && p[2] == '}') {
      std::array<char, 24> digits;
      put(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), p[1] == '0' ? a_ : b_).ptr);
      p += 2;
    } else {
      put(p, p + 1);
    }
  }
  out[used] = '\0';
  return used;
}

std::string Status::text() const {
  std::array<char, 512> text;
  return {text.data(), write_text(text)};
}

}  // namespace quern
