// Blocks of words.
#include "examples/codec/packed_words.h"

#include <algorithm>
#include <bit>

namespace quern::codec::packing {
namespace {

constexpr std::uint64_t mask_of(unsigned width) { return width == 64 ? UINT64_MAX : (std::uint64_t{1} << width) - 1; }

/// Differences modulo 2^width: 0, -1, 1, -2, ... become 0, 1, 2, 3, ...
constexpr std::uint64_t fold(std::uint64_t difference, unsigned width) {
  const bool negative = (difference >> (width - 1) & 1) != 0;
  return (difference << 1 ^ (negative ? UINT64_MAX : 0)) & mask_of(width);
}
constexpr std::uint64_t unfold(std::uint64_t folded) { return folded >> 1 ^ (0 - (folded & 1)); }

std::uint64_t folded_at(std::span<const std::uint64_t> words, std::size_t i, unsigned width, std::uint64_t stride) {
  const std::uint64_t before = i >= stride ? words[i - stride] : 0;
  return fold((words[i] - before) & mask_of(width), width);
}

constexpr std::uint64_t block_bytes(std::uint64_t count, unsigned bits) { return (count * bits + 7) / 8; }

}  // namespace

std::uint64_t most_packed_bytes(std::uint64_t count, unsigned width, const Packing& packing) {
  const std::uint64_t blocks = (count + packing.block() - 1) / packing.block();
  return blocks + count * (width / 8);
}

void pack_words(std::span<const std::uint64_t> words, unsigned width, const Packing& packing, ByteWriter& out) {
  for (std::size_t first = 0; first < words.size() && out.fits(); first += packing.block()) {
    const std::size_t end = std::min(words.size(), first + packing.block());
    std::uint64_t all = 0;
    for (std::size_t i = first; i < end; ++i) all |= folded_at(words, i, width, packing.stride);
    const auto bits = static_cast<unsigned>(std::bit_width(all));
    out.u8(static_cast<std::uint8_t>(bits));
    std::uint8_t byte = 0;
    unsigned filled = 0;
    for (std::size_t i = first; i < end; ++i) {
      std::uint64_t number = folded_at(words, i, width, packing.stride);
      for (unsigned left = bits; left > 0;) {
        const unsigned taken = std::min(left, 8 - filled);
        byte = static_cast<std::uint8_t>(byte | (number & ((1u << taken) - 1)) << filled);
        number >>= taken;
        left -= taken;
        filled += taken;
        if (filled < 8) continue;
        out.u8(byte);
        byte = 0;
        filled = 0;
      }
    }
    if (filled > 0) out.u8(byte);
  }
}

Status unpack_words(ByteReader& in, unsigned width, const Packing& packing, std::span<std::uint64_t> words) {
  for (std::size_t first = 0; first < words.size(); first += packing.block()) {
    const std::size_t end = std::min(words.size(), first + packing.block());
    const unsigned bits = in.u8();
    const auto bytes = in.bytes(block_bytes(end - first, bits));
    if (!in.ok() || bits > width) return Status(StatusCode::corrupt, "a block of packed numbers is cut or too wide");
    std::size_t at = 0;  // in bits
    for (std::size_t i = first; i < end; ++i) {
      std::uint64_t number = 0;
      for (unsigned found = 0; found < bits;) {
        const auto begun = static_cast<unsigned>(at % 8);
        const unsigned taken = std::min(bits - found, 8 - begun);
        number |= static_cast<std::uint64_t>(bytes[at / 8] >> begun & ((1u << taken) - 1)) << found;
        found += taken;
        at += taken;
      }
      const std::uint64_t before = i >= packing.stride ? words[i - packing.stride] : 0;
      words[i] = (before + unfold(number)) & mask_of(width);
    }
    if (at % 8 != 0 && bytes[at / 8] >> at % 8 != 0)
      return Status(StatusCode::corrupt, "a block of packed numbers does not end in zeros");
  }
  return {};
}

}  // namespace quern::codec::packing
