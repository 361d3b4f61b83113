// Tables of the rANS coder: normalisation, stored form, and the cost of symbols under an ideal table.
#include "codecs/lossless/rans.h"

#include <algorithm>
#include <functional>

namespace quern::codec::lossless {
namespace {

/// log2(1 + i/256) in units of 2^-12, by repeated squaring in integers.
constexpr std::array<std::uint16_t, 256> make_log2_table() {
  std::array<std::uint16_t, 256> table{};
  for (std::uint64_t i = 0; i < 256; ++i) {
    std::uint64_t x = (256 + i) << 22;  // in [1, 2) with 30 fraction bits
    std::uint32_t log = 0;
    for (int bit = 0; bit < 12; ++bit) {
      x = x * x >> 30;
      log <<= 1;
      if (x >= std::uint64_t{1} << 31) {
        x >>= 1;
        log |= 1;
      }
    }
    table[i] = static_cast<std::uint16_t>(log);
  }
  return table;
}
constexpr std::array<std::uint16_t, 256> kLog2 = make_log2_table();

/// Takes 1 from the largest frequency (lowest symbol on a tie) until the sum is right.
void shrink(Frequencies& frequencies, std::uint32_t excess) {
  for (; excess > 0; --excess) --*std::max_element(frequencies.begin(), frequencies.end());
}

}  // namespace

std::uint32_t log2_fixed(std::uint32_t x) {
  const auto exponent = static_cast<std::uint32_t>(std::bit_width(x)) - 1;
  const std::uint32_t mantissa = exponent >= 8 ? x >> (exponent - 8) : x << (8 - exponent);
  return (exponent << 12) + kLog2[mantissa & 255];
}

std::uint64_t entropy_cost(const Counts& counts) {
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

void normalize(const Counts& counts, Frequencies& frequencies) {
  std::uint64_t total = 0;
  for (const std::uint32_t count : counts) total += count;
  std::array<std::uint64_t, 256> order{};  // remainder, then inverted symbol: sorted downwards
  std::uint32_t sum = 0;
  for (std::size_t symbol = 0; symbol < 256; ++symbol) {
    const std::uint64_t scaled = std::uint64_t{counts[symbol]} * kFrequencySum;
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
  if (sum > kFrequencySum) return shrink(frequencies, sum - kFrequencySum);
  std::sort(order.begin(), order.end(), std::greater<>());
  for (std::size_t i = 0; sum < kFrequencySum; ++i, ++sum) ++frequencies[255 - (order[i] & 255)];
}

void write_table(const Frequencies& frequencies, BitWriter& writer) {
  unsigned first = 0;
  while (frequencies[first] == 0) ++first;
  unsigned last = 255;
  while (frequencies[last] == 0) --last;
  writer.put(first, 8);
  writer.put(last, 8);
  unsigned previous = 4;
  for (unsigned symbol = first; symbol < last; ++symbol) {
    const std::uint32_t frequency = frequencies[symbol];
    const auto width = static_cast<unsigned>(std::bit_width(frequency));
    const unsigned change = width >= previous ? 2 * (width - previous) : 2 * (previous - width) - 1;
    writer.put(std::uint64_t{1} << change, change + 1);
    if (width > 1) writer.put(frequency & ((1u << (width - 1)) - 1), width - 1);
    previous = width;
  }
}

bool read_table(BitReader& reader, unsigned last_symbol, Frequencies& frequencies) {
  frequencies.fill(0);
  const unsigned first = reader.get(8);
  const unsigned last = reader.get(8);
  if (reader.failed() || first > last || last > last_symbol) return false;
  int width = 4;
  std::uint32_t sum = 0;
  for (unsigned symbol = first; symbol < last; ++symbol) {
    int change = 0;
    while (reader.get(1) == 0) {
      if (reader.failed() || ++change > 2 * static_cast<int>(kFrequencyBits)) return false;
    }
    width += (change & 1) != 0 ? -(change + 1) / 2 : change / 2;
    if (width < 0 || width > static_cast<int>(kFrequencyBits)) return false;
    const auto low = static_cast<unsigned>(width > 1 ? width - 1 : 0);
    const std::uint32_t frequency = width == 0 ? 0 : (1u << low | reader.get(low));
    frequencies[symbol] = static_cast<std::uint16_t>(frequency);
    sum += frequency;
  }
  if (reader.failed() || sum >= kFrequencySum) return false;
  frequencies[last] = static_cast<std::uint16_t>(kFrequencySum - sum);
  return true;
}

void make_encode_table(const Frequencies& frequencies, EncodeTable& table) {
  std::uint32_t start = 0;
  for (std::size_t symbol = 0; symbol < 256; ++symbol) {
    const std::uint32_t frequency = frequencies[symbol];
    if (frequency == 0) continue;
    table[symbol] = {(std::uint64_t{1} << 63) / frequency + 1, frequency, start};
    start += frequency;
  }
}

void make_decode_table(const Frequencies& frequencies, DecodeTable& table) {
  std::size_t slot = 0;
  for (std::uint32_t symbol = 0; symbol < 256; ++symbol) {
    const std::uint32_t frequency = frequencies[symbol];
    for (std::uint32_t offset = 0; offset < frequency; ++offset, ++slot) {
      table[slot] = (frequency - 1) << 20 | offset << 8 | symbol;
    }
  }
}

}  // namespace quern::codec::lossless
