// Adaptive binary range coder of the mask: 32-bit range, 15-bit probabilities, integers only.
// Encoder and Decoder have the same member functions, so that one walk over a mask serves both directions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <quern/memory.h>

namespace quern::mask {

inline constexpr unsigned kModelAges = 40;

/// Share of the distance, in units of 2^-16, that the k-th update moves a probability: 1/(k+1.5).
inline constexpr auto kModelRates = [] {
  std::array<std::uint16_t, kModelAges> rates{};
  for (unsigned k = 0; k < kModelAges; ++k) rates[k] = static_cast<std::uint16_t>(131072U / (2 * k + 3));
  return rates;
}();

/// Probability of a binary decision. Adapts fast while young; the last rate stays.
class BitModel {
 public:
  /// Probability of a 0 in units of 2^-15, within [32, 2^15 - 32].
  std::uint32_t zero() const { return 32 + ((static_cast<std::uint32_t>(p_) * 32704U) >> 16); }
  void update(unsigned bit) {
    const std::uint32_t rate = kModelRates[age_];
    if (bit == 0) {
      p_ = static_cast<std::uint16_t>(p_ + (((65535U - p_) * rate) >> 16));
    } else {
      p_ = static_cast<std::uint16_t>(p_ - ((p_ * rate) >> 16));
    }
    if (age_ + 1U < kModelRates.size()) ++age_;
  }

 private:
  std::uint16_t p_ = 32768;
  std::uint8_t age_ = 0;
};

/// Appends to a vector the caller owns; `finish` exactly once, at the end.
class BinaryEncoder {
 public:
  static constexpr bool kDecodes = false;

  explicit BinaryEncoder(Vector<std::uint8_t>& out) : out_(out) {}

  unsigned bit(BitModel& model, unsigned value) {
    const std::uint32_t bound = (range_ >> 15) * model.zero();
    if (value == 0) {
      range_ = bound;
    } else {
      low_ += bound;
      range_ -= bound;
    }
    model.update(value);
    normalize();
    return value;
  }

  /// `count` (1..8) equiprobable bits.
  unsigned direct(unsigned count, unsigned value) {
    range_ >>= count;
    low_ += static_cast<std::uint64_t>(range_) * value;
    normalize();
    return value;
  }

  /// One byte pins the interval: its length is at least 2^24, so that it holds a multiple of 2^24.
  void finish() {
    low_ += 0xFFFFFFU;
    emit();
  }

 private:
  void normalize() {
    while (range_ < (1U << 24)) {
      emit();
      range_ <<= 8;
    }
  }
  void emit() {
    if ((low_ >> 32) != 0) carry();
    out_.push_back(static_cast<std::uint8_t>(low_ >> 24));
    low_ = (low_ & 0xFFFFFFU) << 8;
  }
  // The coded number stays below 1, so a carry always finds a byte that is not 255 among those written here.
  void carry() {
    std::size_t i = out_.size();
    while (++out_[--i] == 0) {
    }
  }

  Vector<std::uint8_t>& out_;
  std::uint64_t low_ = 0;
  std::uint32_t range_ = 0xFFFFFFFFU;
};

/// Reads any bytes without leaving them: past the end it reads zeros, and complete() tells whether that was in order.
class BinaryDecoder {
 public:
  static constexpr bool kDecodes = true;

  explicit BinaryDecoder(std::span<const std::uint8_t> in) : in_(in) {
    for (int i = 0; i < 4; ++i) code_ = (code_ << 8) | next();
    valid_ = code_ < range_;
  }

  /// The argument is there for symmetry with the encoder.
  unsigned bit(BitModel& model, unsigned = 0) {
    const std::uint32_t bound = (range_ >> 15) * model.zero();
    unsigned value = 0;
    if (code_ < bound) {
      range_ = bound;
    } else {
      code_ -= bound;
      range_ -= bound;
      value = 1;
    }
    model.update(value);
    normalize();
    return value;
  }

  unsigned direct(unsigned count, unsigned = 0) {
    range_ >>= count;
    std::uint32_t value = code_ / range_;
    if (value >> count != 0) {
      valid_ = false;
      value = (1U << count) - 1;
      code_ = 0;
    } else {
      code_ -= value * range_;
    }
    normalize();
    return value;
  }

  /// True while the bytes read so far can belong to a whole code: the last one read may be three past the end.
  bool in_bounds() const { return valid_ && at_ <= in_.size() + 3; }
  /// True when the code ended exactly where the bytes end.
  bool complete() const { return valid_ && at_ == in_.size() + 3; }
  bool has_more() const { return at_ < in_.size() + 3; }

 private:
  void normalize() {
    while (range_ < (1U << 24)) {
      code_ = (code_ << 8) | next();
      range_ <<= 8;
    }
  }
  std::uint32_t next() {
    const std::uint32_t byte = at_ < in_.size() ? in_[at_] : 0;
    ++at_;
    return byte;
  }

  std::span<const std::uint8_t> in_;
  std::size_t at_ = 0;
  std::uint32_t code_ = 0;
  std::uint32_t range_ = 0xFFFFFFFFU;
  bool valid_ = true;
};

}  // namespace quern::mask
