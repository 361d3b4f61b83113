// Tables of frequencies of bytes for rANS coders: from counts to frequencies of a chosen sum, their stored form, and
// what symbols cost. Integers only; host code.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "kernels/common/bit_packing.h"
#include "kernels/common/bits.h"
#include "kernels/common/log2_fixed.h"

namespace quern::kernels {

using Counts = std::array<std::uint32_t, 256>;
using Frequencies = std::array<std::uint16_t, 256>;

/// Bits, in units of 2^-12, that an ideal coder with its own table needs for symbols with these counts.
constexpr std::uint64_t entropy_cost(const Counts& counts) {
  std::uint32_t total = 0;
  std::uint64_t spared = 0;
  for (const std::uint32_t count : counts) {
    if (count == 0) continue;
    total += count;
    spared += std::uint64_t{count} * log2_fixed(count);
  }
  const std::uint64_t whole = total == 0 ? 0 : std::uint64_t{total} * log2_fixed(total);
  return whole > spared ? whole - spared : 0;
}

/// Scales counts (at least one above zero, sum below 2^32) to a sum of 2^SumBits; every symbol that occurs gets at
/// least
/// 1. Largest remainders first, ties to the lower symbol: depends on the counts alone.
template <unsigned SumBits>
void normalize_counts(const Counts& counts, Frequencies& frequencies) {
  constexpr std::uint32_t kSum = 1u << SumBits;
  std::uint64_t total = 0;
  for (const std::uint32_t count : counts) total += count;
  std::array<std::uint64_t, 256> order{};  // remainder, then inverted symbol: sorted downwards
  std::uint32_t sum = 0;
  for (std::size_t symbol = 0; symbol < 256; ++symbol) {
    const std::uint64_t scaled = std::uint64_t{counts[symbol]} * kSum;
    std::uint64_t share = scaled / total;
    std::uint64_t remainder = scaled % total;
    if (share == 0 && counts[symbol] > 0) {
      share = 1;
      remainder = 0;
    }
    frequencies[symbol] = static_cast<std::uint16_t>(share);
    order[symbol] = remainder << 8 | (255 - symbol);
    sum += static_cast<std::uint32_t>(share);
  }
  // Too much: from the largest frequency, the lowest symbol on a tie.
  for (; sum > kSum; --sum) --*std::max_element(frequencies.begin(), frequencies.end());
  if (sum == kSum) return;
  std::sort(order.begin(), order.end(), std::greater<>());
  for (std::size_t i = 0; sum < kSum; ++i, ++sum) ++frequencies[255 - (order[i] & 255)];
}

/// Appends the stored form of a table: first and last symbol, then for each but the last the change of the bit width of
/// its frequency (from 4 at first), folded and in unary, and the bits below the leading one.
inline void write_frequencies(const Frequencies& frequencies, BitWriter& writer) {
  unsigned first = 0;
  while (frequencies[first] == 0) ++first;
  unsigned last = 255;
  while (frequencies[last] == 0) --last;
  writer.put(first, 8);
  writer.put(last, 8);
  unsigned previous = 4;
  for (unsigned symbol = first; symbol < last; ++symbol) {
    const std::uint32_t frequency = frequencies[symbol];
    const unsigned width = bit_length(frequency);
    const unsigned change = width >= previous ? 2 * (width - previous) : 2 * (previous - width) - 1;
    writer.put(std::uint64_t{1} << change, change + 1);
    if (width > 1) writer.put(frequency & ((1u << (width - 1)) - 1), width - 1);
    previous = width;
  }
}

/// Reads a table; false when it is malformed or names a symbol above `last_symbol`.
template <unsigned SumBits>
bool read_frequencies(BitReader& reader, unsigned last_symbol, Frequencies& frequencies) {
  constexpr std::uint32_t kSum = 1u << SumBits;
  frequencies.fill(0);
  const unsigned first = reader.get(8);
  const unsigned last = reader.get(8);
  if (reader.failed() || first > last || last > last_symbol) return false;
  int width = 4;
  std::uint32_t sum = 0;
  for (unsigned symbol = first; symbol < last; ++symbol) {
    int change = 0;
    while (reader.get(1) == 0) {
      if (reader.failed() || ++change > 2 * static_cast<int>(SumBits)) return false;
    }
    width += (change & 1) != 0 ? -(change + 1) / 2 : change / 2;
    if (width < 0 || width > static_cast<int>(SumBits)) return false;
    const auto low = static_cast<unsigned>(width > 1 ? width - 1 : 0);
    const std::uint32_t frequency = width == 0 ? 0 : (1u << low | reader.get(low));
    frequencies[symbol] = static_cast<std::uint16_t>(frequency);
    sum += frequency;
  }
  if (reader.failed() || sum >= kSum) return false;
  frequencies[last] = static_cast<std::uint16_t>(kSum - sum);
  return true;
}

}  // namespace quern::kernels
