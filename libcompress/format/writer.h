// Writers: the only way stored bytes are made. Little-endian, explicit widths. Writer appends to a vector; FixedWriter
// fills memory whose size is known beforehand, for the places that run once a chunk. ByteWriter is FixedWriter for code
// that also runs on devices.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <span>

#include <quern/memory.h>
#include <quern/status.h>

#include "libcompress/format/bytes.h"

namespace quern {

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
    std::array<std::uint8_t, sizeof(value)> room;
    ByteWriter fixed(room);
    fixed.unsigned_of(value, width);
    bytes({room.data(), width});
  }
  /// LEB128, shortest form.
  void varint(std::uint64_t value) {
    std::array<std::uint8_t, kernels::kMaxLeb128Bytes> room;
    ByteWriter fixed(room);
    fixed.varint(value);
    bytes({room.data(), fixed.size()});
  }
  void bytes(std::span<const std::uint8_t> data) { out_.insert(out_.end(), data.begin(), data.end()); }
  std::size_t size() const { return out_.size(); }

 private:
  Vector<std::uint8_t>& out_;
};

/// Fills a span from its start. What does not fit is not written, and `status` says so from then on.
class FixedWriter : public ByteWriter {
 public:
  using ByteWriter::ByteWriter;

  Status status() const {
    if (fits()) return {};
    return Status(StatusCode::destination_too_small, "{0} bytes are too few for what is to be written",
                  static_cast<std::int64_t>(room()));
  }
};

}  // namespace quern
