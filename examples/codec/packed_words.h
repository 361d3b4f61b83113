// Integers as bits: each word less the one `stride` before it, folded so that small differences of either sign are
// small numbers, in blocks that have as many bits a number as their largest one takes.
//
//   block:  bits u8 | numbers, `bits` each, lowest bit first, padded with 0 to whole bytes
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <quern/status.h>

#include "libcompress/format/bytes.h"

namespace quern::codec::packing {

inline constexpr unsigned kLeastBlockLog2 = 4;
inline constexpr unsigned kMostBlockLog2 = 12;

/// How words are packed; what a decoder must know of it is in the codec's parameters.
struct Packing {
  unsigned block_log2 = 7;   ///< words of a block, as a power of two
  std::uint64_t stride = 1;  ///< at least 1

  constexpr std::size_t block() const { return std::size_t{1} << block_log2; }
};

/// Packs words of `width` bits (8, 16, 32 or 64; higher ones are 0).
void pack_words(std::span<const std::uint64_t> words, unsigned width, const Packing& packing, ByteWriter& out);

/// Most bytes that so many words take.
std::uint64_t most_packed_bytes(std::uint64_t count, unsigned width, const Packing& packing);

/// Unpacks words.size() of them from hostile bytes; whatever is wrong gives `corrupt`.
Status unpack_words(ByteReader& in, unsigned width, const Packing& packing, std::span<std::uint64_t> words);

}  // namespace quern::codec::packing
