// Reader: the only way stored bytes are read. Knows its end, counts in 64 bits, answers with a Status instead of
// reading past it. Little-endian, explicit widths. ByteReader is the same for code that also runs on devices.
#pragma once

#include <cstdint>
#include <span>

#include <quern/status.h>

#include "libcompress/format/bytes.h"

namespace quern {

/// Walks over bytes the caller owns. A failed call leaves the position where it was.
class Reader {
 public:
  explicit Reader(std::span<const std::uint8_t> bytes) : in_(bytes) {}

  std::size_t position() const { return in_.position(); }
  std::size_t remaining() const { return in_.remaining(); }
  bool at_end() const { return in_.remaining() == 0; }

  Result<std::uint8_t> u8() { return answer(in_.u8()); }
  Result<std::uint16_t> u16() { return answer(in_.u16()); }
  Result<std::uint32_t> u32() { return answer(in_.u32()); }
  Result<std::uint64_t> u64() { return answer(in_.u64()); }
  /// binary64, any bit pattern.
  Result<double> f64() { return answer(in_.f64()); }
  /// Unsigned of `width` bytes, 1 to 8.
  Result<std::uint64_t> unsigned_of(std::size_t width) { return answer(in_.unsigned_of(width)); }
  /// LEB128 in its shortest form. Longer forms and values above `limit` are corrupt.
  Result<std::uint64_t> varint(std::uint64_t limit = UINT64_MAX) { return answer(in_.varint(limit)); }
  /// The next `count` bytes, as a view of the caller's memory.
  Result<std::span<const std::uint8_t>> bytes(std::uint64_t count) { return answer(in_.bytes(count)); }
  Status skip(std::uint64_t count) {
    in_.skip(count);
    return status_of(in_.take_fault());
  }
  /// Fails with `corrupt` unless everything was consumed.
  Status expect_end() {
    in_.expect_end();
    return status_of(in_.take_fault());
  }

 private:
  template <class T>
  Result<T> answer(T value) {
    if (in_.ok()) return value;
    return status_of(in_.take_fault());
  }

  ByteReader in_;
};

}  // namespace quern
