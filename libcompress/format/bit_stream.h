// Bits packed least significant first, for the few hundred bits of a model or a table; one at a time, checked.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

#include <quern/memory.h>

namespace quern {

class BitWriter {
 public:
  explicit BitWriter(Vector<std::uint8_t>& out) : out_(out) {}

  void put(std::uint64_t value, unsigned count) {
    while (count > 0) {
      if (filled_ == 0) out_.push_back(0);
      const unsigned taken = count < 8 - filled_ ? count : 8 - filled_;
      const std::uint64_t bits = value & ((std::uint64_t{1} << taken) - 1);
      out_.back() = static_cast<std::uint8_t>(out_.back() | bits << filled_);
      filled_ = (filled_ + taken) % 8;
      value >>= taken;
      count -= taken;
    }
  }
  /// Exponential Golomb code of order `order`.
  void put_golomb(std::uint64_t value, unsigned order) {
    const std::uint64_t shifted = value + (std::uint64_t{1} << order);
    const auto width = static_cast<unsigned>(std::bit_width(shifted));
    // Ones, then a zero: at most 64 of them.
    const unsigned ones = width - order - 1;
    put((std::uint64_t{1} << ones) - 1, ones);
    put(0, 1);
    put(shifted, width - 1);
  }

 private:
  Vector<std::uint8_t>& out_;
  unsigned filled_ = 0;
};

constexpr unsigned golomb_bits(std::uint64_t value, unsigned order) {
  const auto width = static_cast<unsigned>(std::bit_width(value + (std::uint64_t{1} << order)));
  return 2 * width - 1 - order;
}

/// Past the end it reads zeros and remembers that it failed.
class BitReader {
 public:
  /// `most_width`: bits that numbers in exponential Golomb code have at most, their leading one left out.
  explicit BitReader(std::span<const std::uint8_t> bytes, unsigned most_width = 40)
      : bytes_(bytes), most_width_(most_width) {}

  std::uint64_t get(unsigned count) {
    std::uint64_t value = 0;
    for (unsigned found = 0; found < count;) {
      if (at_ / 8 >= bytes_.size()) {
        failed_ = true;
        return 0;
      }
      const auto begun = static_cast<unsigned>(at_ % 8);
      const unsigned taken = count - found < 8 - begun ? count - found : 8 - begun;
      const std::uint64_t bits = bytes_[at_ / 8] >> begun & ((1u << taken) - 1);
      value |= bits << found;
      found += taken;
      at_ += taken;
    }
    return value;
  }
  std::uint64_t get_golomb(unsigned order) {
    unsigned width = order;
    while (get(1) == 1) {
      if (++width > most_width_) failed_ = true;
      if (failed_) return 0;
    }
    return (get(width) | std::uint64_t{1} << width) - (std::uint64_t{1} << order);
  }
  bool failed() const { return failed_; }
  std::size_t bytes_used() const { return (at_ + 7) / 8; }

 private:
  std::span<const std::uint8_t> bytes_;
  unsigned most_width_;
  std::size_t at_ = 0;
  bool failed_ = false;
};

}  // namespace quern
