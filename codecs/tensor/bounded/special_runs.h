// Elements of a chunk that no quantizer can code (NaN, infinities, zeros whose sign counts, misses of the bound): runs
// of places, with one value for all of a run or one for each element.
#pragma once

#include <cstdint>
#include <span>

#include <quern/memory.h>
#include <quern/status.h>

#include "libcompress/format/bytes.h"

namespace quern::codec::tensor {

/// Bit patterns of binary32 values, and which of them are special. Places in ascending order.
class SpecialRuns {
 public:
  void add(std::uint32_t place, std::uint32_t bits) {
    places_.push_back(place);
    bits_.push_back(bits);
  }
  std::span<const std::uint32_t> places() const { return places_; }
  std::span<const std::uint32_t> bits() const { return bits_; }

  void write(Vector<std::uint8_t>& out) const;
  /// Reads what write() wrote; places are below `elems`.
  Status read(ByteReader& reader, std::size_t elems);

 private:
  Vector<std::uint32_t> places_;
  Vector<std::uint32_t> bits_;
};

/// Appends a number as LEB128, or little-endian in `width` bytes.
void append_varint(std::uint64_t value, Vector<std::uint8_t>& out);
void append_number(std::uint64_t value, std::size_t width, Vector<std::uint8_t>& out);

}  // namespace quern::codec::tensor
