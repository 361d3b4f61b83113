// Writers: the only way stored bytes are made. Little-endian, explicit widths. Writer appends to a vector; FixedWriter
// fills memory whose size is known beforehand, for the places that run once a chunk.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>

#include <quern/memory.h>
#include <quern/status.h>

namespace quern {

/// Bytes the varint form of a value takes, 1 to 10.
constexpr std::size_t varint_bytes(std::uint64_t value) {
  return value == 0 ? 1 : (static_cast<std::size_t>(std::bit_width(value)) + 6) / 7;
}

/// Appends to a vector the caller owns. May throw std::bad_alloc.
class Writer {
 public:
  explicit Writer(Vector<std::uint8_t>& out) : out_(out) {}

  void u8(std::uint8_t value) { out_.push_back(value); }
  void u16(std::uint16_t value) { unsigned_of(value, 2); }
  void u32(std::uint32_t value) { unsigned_of(value, 4); }
  void u64(std::uint64_t value) { unsigned_of(value, 8); }
  void f64(double value) { u64(std::bit_cast<std::uint64_t>(value)); }
  /// The low `width` bytes of a value, 1 to 8.
  void unsigned_of(std::uint64_t value, std::size_t width) {
    for (std::size_t i = 0; i < width; ++i) out_.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
  }
  /// LEB128, shortest form.
  void varint(std::uint64_t value) {
    while (value >= 0x80) {
      out_.push_back(static_cast<std::uint8_t>(value | 0x80));
      value >>= 7;
    }
    out_.push_back(static_cast<std::uint8_t>(value));
  }
  void bytes(std::span<const std::uint8_t> data) { out_.insert(out_.end(), data.begin(), data.end()); }
  std::size_t size() const { return out_.size(); }

 private:
  Vector<std::uint8_t>& out_;
};

/// Fills a span from its start. What does not fit is not written, and `status` says so from then on.
class FixedWriter {
 public:
  explicit FixedWriter(std::span<std::uint8_t> out) : out_(out) {}

  void u8(std::uint8_t value) { unsigned_of(value, 1); }
  void u16(std::uint16_t value) { unsigned_of(value, 2); }
  void u32(std::uint32_t value) { unsigned_of(value, 4); }
  void u64(std::uint64_t value) { unsigned_of(value, 8); }
  void unsigned_of(std::uint64_t value, std::size_t width) {
    if (!take(width)) return;
    for (std::size_t i = 0; i < width; ++i) out_[at_ - width + i] = static_cast<std::uint8_t>(value >> (8 * i));
  }
  void varint(std::uint64_t value) {
    const std::size_t width = varint_bytes(value);
    if (!take(width)) return;
    for (std::size_t i = 0; i < width; ++i)
      out_[at_ - width + i] = static_cast<std::uint8_t>((value >> (7 * i) & 0x7F) | (i + 1 < width ? 0x80 : 0));
  }
  void bytes(std::span<const std::uint8_t> data) {
    if (take(data.size()) && !data.empty()) std::memcpy(out_.data() + at_ - data.size(), data.data(), data.size());
  }
  std::size_t size() const { return at_; }
  Status status() const {
    if (!overflow_) return {};
    return Status(StatusCode::destination_too_small, "{0} bytes are too few for what is to be written",
                  static_cast<std::int64_t>(out_.size()));
  }

 private:
  bool take(std::size_t count) {
    if (overflow_ || count > out_.size() - at_) {
      overflow_ = true;
      return false;
    }
    at_ += count;
    return true;
  }

  std::span<std::uint8_t> out_;
  std::size_t at_ = 0;
  bool overflow_ = false;
};

}  // namespace quern
