// Bits packed least significant first into bytes: the writer of raw bits and tables, and their checked and unchecked
// readers. Little-endian loads and stores. Host code.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace quern::kernels {

template <class T>
constexpr T swap_on_big_endian(T value) {
  if constexpr (std::endian::native == std::endian::little || sizeof(T) == 1) {
    return value;
  } else {
    T swapped = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) swapped = static_cast<T>(swapped << 8 | (value >> (8 * i) & 0xff));
    return swapped;
  }
}

template <class T>
inline T load_le(const std::uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return swap_on_big_endian(value);
}

template <class T>
inline void store_le(std::uint8_t* to, T value) {
  value = swap_on_big_endian(value);
  std::memcpy(to, &value, sizeof(T));
}

/// Appends bits to a buffer that must have 8 bytes of slack beyond what is written.
class BitWriter {
 public:
  explicit BitWriter(std::uint8_t* to) : begin_(to), at_(to) {}

  /// Appends the low `count` <= 56 bits of `value`; the bits above them must be zero.
  void put(std::uint64_t value, unsigned count) {
    pending_ |= value << filled_;
    filled_ += count;
    store_le<std::uint64_t>(at_, pending_);
    at_ += filled_ >> 3;
    pending_ >>= filled_ & ~7u;
    filled_ &= 7;
  }
  /// The same for any count up to 64.
  void put_wide(std::uint64_t value, unsigned count) {
    if (count > 32) {
      put(value & 0xffffffffu, 32);
      value >>= 32;
      count -= 32;
    }
    put(value, count);
  }
  /// Fills the last byte with zeros and returns the bytes written.
  std::size_t finish() {
    if (filled_ > 0) ++at_;
    return static_cast<std::size_t>(at_ - begin_);
  }

 private:
  std::uint8_t* begin_;
  std::uint8_t* at_;
  std::uint64_t pending_ = 0;
  unsigned filled_ = 0;  // below 8 between calls
};

/// `count` <= 57 bits at bit position `at`; reads 8 bytes from the byte that holds the first of them.
inline std::uint64_t peek_bits(const std::uint8_t* data, std::uint64_t at, unsigned count) {
  return load_le<std::uint64_t>(data + (at >> 3)) >> (at & 7) & ((std::uint64_t{1} << count) - 1);
}

/// The same for any count up to 64; may read 12 bytes from the first.
inline std::uint64_t peek_bits_wide(const std::uint8_t* data, std::uint64_t at, unsigned count) {
  if (count <= 32) return peek_bits(data, at, count);
  return peek_bits(data, at, 32) | peek_bits(data, at + 32, count - 32) << 32;
}

/// Reads bits of a hostile buffer; past the end it returns zeros and remembers that it failed.
class BitReader {
 public:
  BitReader(const std::uint8_t* data, std::size_t bytes) : data_(data), bits_(std::uint64_t{bytes} * 8) {}

  /// The next `count` <= 32 bits.
  std::uint32_t get(unsigned count) {
    std::uint32_t value = 0;
    if (at_ + count > bits_) {
      failed_ = true;
      return 0;
    }
    for (unsigned i = 0; i < count; ++i, ++at_) {
      value |= static_cast<std::uint32_t>(data_[at_ >> 3] >> (at_ & 7) & 1) << i;
    }
    return value;
  }
  bool failed() const { return failed_; }
  /// Bytes touched so far, the last one possibly in part.
  std::size_t bytes_used() const { return static_cast<std::size_t>((at_ + 7) / 8); }

 private:
  const std::uint8_t* data_;
  std::uint64_t bits_;
  std::uint64_t at_ = 0;
  bool failed_ = false;
};

}  // namespace quern::kernels
