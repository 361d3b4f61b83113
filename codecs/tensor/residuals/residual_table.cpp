// Fitting and storing tables of residual symbols. Frequencies are stored with four bits behind the leading one, the
// largest is what the others leave.
#include "codecs/tensor/residuals/residual_table.h"

#include <algorithm>

#include "kernels/entropy/token_distribution.h"

namespace quern::codec::tensor {
namespace {

constexpr unsigned kFractionBits = 4;  // of a stored frequency, behind its leading bit
constexpr unsigned kSizeBits = 8;      // of the number of symbols

/// What frequencies of that size are multiples of when they are stored.
std::uint32_t unit_of(std::uint32_t frequency) {
  const unsigned width = kernels::bit_length(frequency);
  return width <= kFractionBits + 1 ? 1 : std::uint32_t{1} << (width - kFractionBits - 1);
}

/// The nearest number that can be stored.
std::uint32_t storable(std::uint32_t frequency) {
  const std::uint32_t unit = unit_of(frequency);
  return (frequency + unit / 2) / unit * unit;
}

unsigned fraction_bits(unsigned width) { return width == 0 ? 0 : std::min(width - 1, kFractionBits); }

/// Width of the frequency two symbols before, its sign being the same; the first two are compared with each other.
unsigned expected_width(const std::array<std::uint8_t, kSymbols>& widths, unsigned symbol) {
  if (symbol == 0) return kTableBits - 2;
  if (symbol == 1 || symbol >= kSignedSymbols) return widths[symbol - 1];
  return widths[symbol - 2];
}

std::size_t largest(const Frequencies& frequencies) {
  return static_cast<std::size_t>(std::max_element(frequencies.begin(), frequencies.end()) - frequencies.begin());
}

}  // namespace

void fit_frequencies(const SymbolCounts& counts, Frequencies& frequencies) {
  std::uint64_t total = 0;
  for (const std::uint32_t count : counts) total += count;
  frequencies = {};
  frequencies[kEscape] = 1;
  const std::size_t top =
      static_cast<std::size_t>(std::max_element(counts.begin(), counts.begin() + kEscape) - counts.begin());
  std::uint32_t sum = 0;
  for (std::size_t s = 0; s < kSymbols; ++s) {
    if (s == top) continue;
    if (counts[s] != 0) {
      const auto share = static_cast<std::uint32_t>((std::uint64_t{counts[s]} * kTableSum + total / 2) / total);
      frequencies[s] = static_cast<std::uint16_t>(storable(std::max<std::uint32_t>(share, 1)));
    }
    sum += frequencies[s];
  }
  // What is left must be the largest frequency: that is how a reader finds it.
  const auto rest = [&] { return static_cast<std::int32_t>(kTableSum) - static_cast<std::int32_t>(sum); };
  const auto second = [&] {
    std::size_t at = top == 0 ? 1 : 0;
    for (std::size_t s = 0; s < kSymbols; ++s)
      if (s != top && frequencies[s] > frequencies[at]) at = s;
    return at;
  };
  for (std::size_t s = second(); rest() < frequencies[s]; s = second()) {
    const std::uint32_t unit = unit_of(frequencies[s]);
    sum -= unit;
    frequencies[s] = static_cast<std::uint16_t>(frequencies[s] - unit);
  }
  frequencies[top] = static_cast<std::uint16_t>(rest());
}

std::uint64_t coded_cost(const SymbolCounts& counts, const Frequencies& frequencies) {
  std::uint64_t cost = 0;
  for (unsigned s = 0; s < kSymbols; ++s) {
    if (counts[s] == 0) continue;
    const bool known = frequencies[s] != 0;
    const std::uint32_t frequency = known ? frequencies[s] : frequencies[kEscape];
    const unsigned open = known ? kernels::tensor_open_bits(s) : kernels::tensor_open_bits(kEscape);
    cost += std::uint64_t{counts[s]} * ((kTableBits << 12) - kernels::log2_fixed(frequency) + (open << 12));
  }
  return cost;
}

void put_frequencies(const Frequencies& frequencies, BitWriter& writer) {
  const std::size_t top = largest(frequencies);
  unsigned size = kEscape;
  while (size > 0 && frequencies[size - 1] == 0) --size;
  writer.put(size, kSizeBits);
  writer.put(static_cast<std::uint32_t>(top), kSizeBits);
  std::array<std::uint8_t, kSymbols> widths{};
  const auto put = [&](unsigned s) {
    const std::uint32_t frequency = frequencies[s];
    const unsigned width = s == top ? kTableBits : kernels::bit_length(frequency);
    widths[s] = static_cast<std::uint8_t>(width);
    if (s == top) return;
    writer.put_golomb(kernels::zigzag(static_cast<std::uint32_t>(width) - expected_width(widths, s)), 0);
    const unsigned kept = fraction_bits(width);
    if (width > 1) writer.put(frequency >> (width - 1 - kept), kept);
  };
  for (unsigned s = 0; s < size; ++s) put(s);
  put(kEscape);
}

bool get_frequencies(BitReader& reader, Frequencies& frequencies) {
  frequencies = {};
  const auto size = static_cast<std::uint32_t>(reader.get(kSizeBits));
  const auto top = static_cast<std::uint32_t>(reader.get(kSizeBits));
  if (size > kEscape || (top >= size && top != kEscape)) return false;
  std::array<std::uint8_t, kSymbols> widths{};
  std::uint32_t sum = 0;
  const auto get = [&](unsigned s) {
    if (s == top) {
      widths[s] = kTableBits;
      return true;
    }
    const std::uint32_t width =
        expected_width(widths, s) + kernels::unzigzag(static_cast<std::uint32_t>(reader.get_golomb(0)));
    if (reader.failed() || width > kTableBits) return false;
    widths[s] = static_cast<std::uint8_t>(width);
    if (width == 0) return true;
    const unsigned kept = fraction_bits(width);
    const std::uint32_t frequency = ((1u << kept) | static_cast<std::uint32_t>(reader.get(kept))) << (width - 1 - kept);
    frequencies[s] = static_cast<std::uint16_t>(frequency);
    sum += frequency;
    return true;
  };
  for (unsigned s = 0; s < size; ++s)
    if (!get(s)) return false;
  if (!get(kEscape) || reader.failed() || sum >= kTableSum) return false;
  frequencies[top] = static_cast<std::uint16_t>(kTableSum - sum);
  return frequencies[kEscape] != 0;
}

void make_encode_table(const Frequencies& frequencies, kernels::TensorEncodeTable& table) {
  std::uint32_t start = 0;
  for (unsigned s = 0; s < kSymbols; ++s) {
    table.entries[s] = kernels::tensor_entry(frequencies[s], start);
    start += frequencies[s];
  }
}

void make_decode_table(const Frequencies& frequencies, kernels::TensorDecodeTable& table) {
  std::uint32_t slot = 0;
  for (std::uint32_t s = 0; s < kSymbols; ++s)
    for (std::uint32_t i = 0; i < frequencies[s]; ++i) table.entries[slot++] = s | (frequencies[s] - 1u) << 8 | i << 20;
}

}  // namespace quern::codec::tensor
