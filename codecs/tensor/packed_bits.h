// Bits packed least significant first, for the numbers beside a tensor's symbols: tables, means, levels. One at a time,
// checked.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

#include <quern/memory.h>

#include "kernels/core/bits.h"

namespace quern::codec::tensor {

inline constexpr unsigned kMaxGolombWidth = 31;  ///< of a number in exponential Golomb code, order included

class PackedBitWriter {
 public:
  explicit PackedBitWriter(Vector<std::uint8_t>& out) : out_(out) {}

  void put(std::uint32_t value, unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      if (filled_ == 0) out_.push_back(0);
      out_.back() = static_cast<std::uint8_t>(out_.back() | (value >> i & 1u) << filled_);
      filled_ = (filled_ + 1) % 8;
    }
  }
  /// Exponential Golomb code of order `order`, values below 2^30.
  void put_golomb(std::uint32_t value, unsigned order) {
    const std::uint32_t shifted = value + (std::uint32_t{1} << order);
    const unsigned width = kernels::bit_length(shifted);
    for (unsigned i = order + 1; i < width; ++i) put(1, 1);
    put(0, 1);
    put(shifted, width - 1);
  }

 private:
  Vector<std::uint8_t>& out_;
  unsigned filled_ = 0;
};

/// Past the end it reads zeros and remembers that it failed.
class PackedBitReader {
 public:
  explicit PackedBitReader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  std::uint32_t get(unsigned count) {
    std::uint32_t value = 0;
    for (unsigned i = 0; i < count; ++i, ++at_) {
      if (at_ / 8 >= bytes_.size()) {
        failed_ = true;
        return 0;
      }
      value |= static_cast<std::uint32_t>(bytes_[at_ / 8] >> (at_ % 8) & 1) << i;
    }
    return value;
  }
  std::uint32_t get_golomb(unsigned order) {
    unsigned width = order;
    while (get(1) == 1) {
      if (++width >= kMaxGolombWidth) failed_ = true;
      if (failed_) return 0;
    }
    return (get(width) | std::uint32_t{1} << width) - (std::uint32_t{1} << order);
  }
  bool failed() const { return failed_; }
  std::size_t bytes_used() const { return (at_ + 7) / 8; }

 private:
  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
  bool failed_ = false;
};

inline constexpr unsigned kOrderBits = 4;

/// Signed numbers of magnitude below 2^28: in 4 bits the Golomb order that makes them shortest, then the zigzag code of
/// the difference of each to `center`.
void put_numbers(std::span<const std::int32_t> numbers, std::int32_t center, PackedBitWriter& writer);
/// Reads as many as fit `numbers`; the reader remembers what was wrong.
void get_numbers(std::span<std::int32_t> numbers, std::int32_t center, PackedBitReader& reader);

}  // namespace quern::codec::tensor
