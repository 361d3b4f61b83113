// Stored bytes in memory of a known size, for host and device code: no allocation, no Status. Little-endian, explicit
// widths. What is wrong is kept by the reader or writer until it is asked.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "kernels/common/leb128.h"
#include "libcompress/format/fault.h"

namespace quern {

/// Bytes the varint form of a value takes, 1 to 10.
constexpr std::size_t varint_bytes(std::uint64_t value) { return kernels::leb128_bytes(value); }

/// Copies between places that do not overlap.
constexpr void copy_bytes(std::uint8_t* to, std::span<const std::uint8_t> from) {
  if (std::is_constant_evaluated()) {
    for (std::size_t i = 0; i < from.size(); ++i) to[i] = from[i];
  } else if (!from.empty()) {
    __builtin_memcpy(to, from.data(), from.size());
  }
}

/// Fills a span from its start. What does not fit is not written, and nothing after it.
class ByteWriter {
 public:
  constexpr explicit ByteWriter(std::span<std::uint8_t> out) : out_(out.data()), room_(out.size()) {}

  constexpr void u8(std::uint8_t value) { unsigned_of(value, 1); }
  constexpr void u16(std::uint16_t value) { unsigned_of(value, 2); }
  constexpr void u32(std::uint32_t value) { unsigned_of(value, 4); }
  constexpr void u64(std::uint64_t value) { unsigned_of(value, 8); }
  constexpr void f64(double value) { u64(std::bit_cast<std::uint64_t>(value)); }
  /// The low `width` bytes of a value, 1 to 8.
  constexpr void unsigned_of(std::uint64_t value, std::size_t width) {
    if (std::uint8_t* const at = take(width))
      for (std::size_t i = 0; i < width; ++i) at[i] = static_cast<std::uint8_t>(value >> (8 * i));
  }
  /// LEB128, shortest form.
  constexpr void varint(std::uint64_t value) {
    if (std::uint8_t* const at = take(varint_bytes(value))) kernels::put_leb128(at, value);
  }
  constexpr void bytes(std::span<const std::uint8_t> data) {
    if (std::uint8_t* const at = take(data.size())) copy_bytes(at, data);
  }
  /// Bytes written, and room for them.
  constexpr std::size_t size() const { return at_; }
  constexpr std::size_t room() const { return room_; }
  /// False once something did not fit.
  constexpr bool fits() const { return !overflow_; }

 private:
  constexpr std::uint8_t* take(std::size_t count) {
    if (overflow_ || count > room_ - at_) {
      overflow_ = true;
      return nullptr;
    }
    at_ += count;
    return out_ + (at_ - count);
  }

  std::uint8_t* out_;
  std::size_t room_;
  std::size_t at_ = 0;
  bool overflow_ = false;
};

/// Writes nothing and counts: how many bytes a writer would have written.
class ByteCounter {
 public:
  constexpr void u8(std::uint8_t) { ++size_; }
  constexpr void u16(std::uint16_t) { size_ += 2; }
  constexpr void u32(std::uint32_t) { size_ += 4; }
  constexpr void u64(std::uint64_t) { size_ += 8; }
  constexpr void f64(double) { size_ += 8; }
  constexpr void unsigned_of(std::uint64_t, std::size_t width) { size_ += width; }
  constexpr void varint(std::uint64_t value) { size_ += varint_bytes(value); }
  constexpr void bytes(std::span<const std::uint8_t> data) { size_ += data.size(); }
  constexpr std::size_t size() const { return size_; }

 private:
  std::size_t size_ = 0;
};

/// Walks over bytes the caller owns. After a failed read the position stays where it was and every further read fails;
/// what a failed read returns is 0 or empty.
class ByteReader {
 public:
  constexpr explicit ByteReader(std::span<const std::uint8_t> bytes) : begin_(bytes.data()), size_(bytes.size()) {}

  constexpr std::size_t position() const { return at_; }
  constexpr std::size_t remaining() const { return size_ - at_; }

  constexpr std::uint8_t u8() { return static_cast<std::uint8_t>(unsigned_of(1)); }
  constexpr std::uint16_t u16() { return static_cast<std::uint16_t>(unsigned_of(2)); }
  constexpr std::uint32_t u32() { return static_cast<std::uint32_t>(unsigned_of(4)); }
  constexpr std::uint64_t u64() { return unsigned_of(8); }
  /// binary64, any bit pattern.
  constexpr double f64() { return std::bit_cast<double>(unsigned_of(8)); }
  /// Unsigned of `width` bytes, 1 to 8.
  constexpr std::uint64_t unsigned_of(std::size_t width) {
    const std::uint8_t* const at = take(width);
    std::uint64_t value = 0;
    if (at != nullptr)
      for (std::size_t i = 0; i < width; ++i) value |= static_cast<std::uint64_t>(at[i]) << (8 * i);
    return value;
  }
  /// LEB128 in its shortest form. Longer forms and values above `limit` are faults.
  constexpr std::uint64_t varint(std::uint64_t limit = UINT64_MAX) {
    if (!ok()) return 0;
    const std::uint8_t* const first = begin_ + at_;
    const std::uint8_t* const end = begin_ + size_;
    const std::uint8_t* at = first;
    std::uint64_t value = 0;
    if (!kernels::get_leb128(at, end, value)) {
      switch (kernels::leb128_fault(first, end)) {
        case kernels::Leb128Fault::cut_short: fault_ = {FormatFault::ends_inside_number, size_}; break;
        case kernels::Leb128Fault::too_large: fault_ = {FormatFault::number_too_large}; break;
        case kernels::Leb128Fault::not_shortest: fault_ = {FormatFault::number_not_shortest}; break;
      }
      return 0;
    }
    if (!require(value <= limit, FormatFault::number_above_limit, value, limit)) return 0;
    at_ += static_cast<std::size_t>(at - first);
    return value;
  }
  /// The next `count` bytes, as a view of the caller's memory.
  constexpr std::span<const std::uint8_t> bytes(std::uint64_t count) {
    const std::uint8_t* const at = take(count);
    if (at == nullptr) return {};
    return {at, static_cast<std::size_t>(count)};
  }
  constexpr void skip(std::uint64_t count) { take(count); }
  constexpr void expect_end() { require(remaining() == 0, FormatFault::bytes_left_over, remaining()); }

  /// Makes it a fault of this reader when `holds` is false, unless there is one already. True when there is none.
  constexpr bool require(bool holds, FormatFault what, std::uint64_t first = 0, std::uint64_t second = 0) {
    if (fault_.ok() && !holds) fault_ = {what, first, second};
    return fault_.ok();
  }
  constexpr bool ok() const { return fault_.ok(); }
  /// The first thing that was wrong.
  constexpr const Fault& fault() const { return fault_; }
  /// Returns the fault and forgets it.
  constexpr Fault take_fault() {
    const Fault fault = fault_;
    fault_ = {};
    return fault;
  }

 private:
  constexpr const std::uint8_t* take(std::uint64_t count) {
    if (!require(count <= remaining(), FormatFault::too_few_bytes, count, remaining())) return nullptr;
    at_ += static_cast<std::size_t>(count);
    return begin_ + (at_ - static_cast<std::size_t>(count));
  }

  const std::uint8_t* begin_;
  std::size_t size_;
  std::size_t at_ = 0;
  Fault fault_;
};

}  // namespace quern
