// CDR, the form of ROS 2 messages (OMG DDS-XTypes, XCDR1): numbers aligned to their size from the fourth byte on.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <string_view>

#include <quern/memory.h>
#include <quern/status.h>

#include "lidar/cloud/little_endian.h"

namespace quern::lidar {

/// Takes the parts of a message in order. After a part that is not there all are zeros, and is_short() is true.
class CdrReader {
 public:
  /// Fails with `unsupported` for other encapsulations than those of plain CDR.
  static Result<CdrReader> open(std::span<const std::uint8_t> message) {
    if (message.size() < 4) return Status(StatusCode::truncated, "the message is shorter than its head of 4 bytes");
    // 0 and 1: XCDR1, 6 and 7: XCDR2, which differs in numbers of 8 bytes alone. Odd: little-endian.
    const unsigned kind = static_cast<unsigned>(message[0]) << 8 | message[1];
    if (kind > 1 && kind != 6 && kind != 7)
      return Status(StatusCode::unsupported, "the message has representation {0}; plain CDR is read",
                    static_cast<std::int64_t>(kind));
    return CdrReader(message.subspan(4), kind % 2 == 0);
  }

  std::uint8_t u8() {
    const auto bytes = take(1);
    return bytes.empty() ? std::uint8_t{0} : bytes[0];
  }
  std::uint32_t u32() {
    at_ = std::min<std::size_t>((at_ + 3) / 4 * 4, in_.size());
    const auto bytes = take(4);
    if (bytes.empty()) return 0;
    const auto value = load_le<std::uint32_t>(bytes.data());
    return is_big_endian_ ? __builtin_bswap32(value) : value;
  }
  /// Without the 0 at its end.
  std::string_view text() {
    const auto bytes = take(u32());
    std::string_view out(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (out.ends_with('\0')) out.remove_suffix(1);
    return out;
  }
  std::span<const std::uint8_t> bytes() { return take(u32()); }

  std::size_t remaining() const { return in_.size() - at_; }
  bool is_short() const { return is_short_; }

 private:
  CdrReader(std::span<const std::uint8_t> in, bool is_big_endian) : in_(in), is_big_endian_(is_big_endian) {}

  std::span<const std::uint8_t> take(std::size_t count) {
    if (is_short_ || count > remaining()) {
      is_short_ = true;
      return {};
    }
    const auto out = in_.subspan(at_, count);
    at_ += count;
    return out;
  }

  std::span<const std::uint8_t> in_;
  std::size_t at_ = 0;
  bool is_big_endian_ = false;
  bool is_short_ = false;
};

/// Appends a little-endian message.
class CdrWriter {
 public:
  explicit CdrWriter(Vector<std::uint8_t>& out) : out_(out) { out_.assign({0, 1, 0, 0}); }

  void u8(std::uint8_t value) { out_.push_back(value); }
  void u32(std::uint32_t value) {
    out_.resize((out_.size() + 3) / 4 * 4);
    append_le(value, out_);
  }
  void text(std::string_view value) {
    u32(static_cast<std::uint32_t>(value.size() + 1));
    out_.insert(out_.end(), value.begin(), value.end());
    out_.push_back(0);
  }

 private:
  Vector<std::uint8_t>& out_;
};

}  // namespace quern::lidar
