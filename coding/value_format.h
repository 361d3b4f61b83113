// How values become integers: base, step and fraction bits, and their stored form.
#pragma once

#include <bit>
#include <cstdint>

#include "libcompress/format/bit_stream.h"

namespace quern::coding {

inline constexpr unsigned kMaxFractionBits = 10;

/// A value is base + n * unit() for an integer n. Residuals count whole steps; predictions are finer by fraction_bits.
struct ValueFormat {
  double base = 0;             ///< value of n = 0; its low 32 bits are zero
  double step = 0;             ///< distance of codes; its low 32 bits are zero
  unsigned fraction_bits = 0;  ///< at most kMaxFractionBits

  /// Value of one unit: step / 2^fraction_bits.
  double unit() const { return step / static_cast<double>(1u << fraction_bits); }
};

/// The largest double of at most that magnitude whose low 32 bits are zero.
inline double short_double(double v) { return std::bit_cast<double>(std::bit_cast<std::uint64_t>(v) >> 32 << 32); }

/// Stores base and step by their upper halves, 64 bits together.
inline void write_base_and_step(const ValueFormat& format, BitWriter& writer) {
  writer.put(std::bit_cast<std::uint64_t>(format.base) >> 32, 32);
  writer.put(std::bit_cast<std::uint64_t>(format.step) >> 32, 32);
}
/// False when the base is not finite, or the step is not finite and positive.
[[nodiscard]] inline bool read_base_and_step(BitReader& reader, ValueFormat& format) {
  format.base = std::bit_cast<double>(reader.get(32) << 32);
  format.step = std::bit_cast<double>(reader.get(32) << 32);
  return format.base - format.base == 0 && format.step > 0 && format.step - format.step == 0;
}

/// Stores all of it: base, step, and 4 bits for the fraction bits.
inline void write_value_format(const ValueFormat& format, BitWriter& writer) {
  write_base_and_step(format, writer);
  writer.put(format.fraction_bits, 4);
}
/// False when a number is out of its range.
[[nodiscard]] inline bool read_value_format(BitReader& reader, ValueFormat& format) {
  const bool good = read_base_and_step(reader, format);
  format.fraction_bits = static_cast<unsigned>(reader.get(4));
  return good && format.fraction_bits <= kMaxFractionBits;
}

}  // namespace quern::coding
