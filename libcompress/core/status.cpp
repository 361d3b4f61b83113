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
    case StatusCode::reference_missing: return "reference_missing";
    case StatusCode::unsupported: return "unsupported";
    case StatusCode::unknown_codec: return "unknown_codec";
    case StatusCode::missing_model: return "missing_model";
    case StatusCode::out_of_memory: return "out_of_memory";
    case StatusCode::memory_limit: return "memory_limit";
    case StatusCode::io_error: return "io_error";
    case StatusCode::cancelled: return "cancelled";
    case StatusCode::destination_too_small: return "destination_too_small";
    case StatusCode::hardware_fault: return "hardware_fault";
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
    const bool hole = p[0] == '{' && (p[1] == '0' || p[1] == '1');
    const bool thousandths = hole && p[2] == '.' && p[3] == '3' && p[4] == '}';
    const bool hash = hole && p[2] == '.' && p[3] == 'x' && p[4] == '}';
    if (!thousandths && !hash && !(hole && p[2] == '}')) {
      put(p, p + 1);
      continue;
    }
    std::array<char, 24> digits;
    const std::int64_t number = p[1] == '0' ? a_ : b_;
    const auto put_number = [&](std::int64_t n) {
      put(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), n).ptr);
    };
    if (thousandths) {
      put_number(number / 1000);
      const auto digit = [&](std::int64_t unit) { return static_cast<char>('0' + number / unit % 10); };
      const std::array<char, 4> fraction{'.', digit(100), digit(10), digit(1)};
      put(fraction.data(), fraction.data() + fraction.size());
    } else if (hash) {
      for (int shift = 60; shift >= 0; shift -= 4) {
        const char* const digit = "0123456789abcdef" + (static_cast<std::uint64_t>(number) >> shift & 15);
        put(digit, digit + 1);
      }
    } else {
      put_number(number);
    }
    p += thousandths || hash ? 4 : 2;
  }
  out[used] = '\0';
  return used;
}

std::string Status::text() const {
  std::array<char, 512> text;
  return {text.data(), write_text(text)};
}

}  // namespace quern
