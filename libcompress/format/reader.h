// Reader: the only way stored bytes are read. Knows its end, counts in 64 bits, answers with a Status instead of
// reading past it. Little-endian, explicit widths.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

#include <quern/status.h>

namespace quern {

/// Walks over bytes the caller owns. A failed call leaves the position where it was.
class Reader {
 public:
  explicit Reader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  std::size_t position() const { return at_; }
  std::size_t remaining() const { return bytes_.size() - at_; }
  bool at_end() const { return at_ == bytes_.size(); }

  Result<std::uint8_t> u8() { return fixed<std::uint8_t>(); }
  Result<std::uint16_t> u16() { return fixed<std::uint16_t>(); }
  Result<std::uint32_t> u32() { return fixed<std::uint32_t>(); }
  Result<std::uint64_t> u64() { return fixed<std::uint64_t>(); }
  /// binary64, any bit pattern.
  Result<double> f64();
  /// Unsigned of `width` bytes, 1 to 8.
  Result<std::uint64_t> unsigned_of(std::size_t width);
  /// LEB128 in its shortest form. Longer forms and values above `limit` are corrupt.
  Result<std::uint64_t> varint(std::uint64_t limit = UINT64_MAX);
  /// The next `count` bytes, as a view of the caller's memory.
  Result<std::span<const std::uint8_t>> bytes(std::uint64_t count);
  Status skip(std::uint64_t count);
  /// Fails with `corrupt` unless everything was consumed.
  Status expect_end() const;

 private:
  Status need(std::uint64_t count) const;

  template <class T>
  Result<T> fixed() {
    QUERN_RETURN_IF_ERROR(need(sizeof(T)));
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) value |= static_cast<std::uint64_t>(bytes_[at_ + i]) << (8 * i);
    at_ += sizeof(T);
    return static_cast<T>(value);
  }

  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
};

}  // namespace quern
