// The lanes that codes of bands and corrections lie in: rows take turns.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include <quern/memory.h>

#include "codecs/stencil/lane_sources.h"
#include "codecs/stencil/residual_symbols.h"
#include "libcompress/format/writer.h"

namespace quern::codec::stencil {

inline constexpr std::uint8_t kNoContext = 255;  // of an element that has no code

/// What an encoder puts into lanes: codes with their context levels, in rows.
struct CodedRows {
  Vector<std::uint32_t> ends;  ///< of each row, counted in codes
  const std::int32_t* codes = nullptr;
  const std::uint8_t* contexts = nullptr;  ///< kNoContext: no code
};

/// Appends lanes for codes of about that many bytes, by the entries of all levels; false when they do not fit into
/// `words`.
inline bool write_lanes(const CodedRows& rows, const kernels::RansEncodeEntry* entries, std::uint64_t bytes,
                        std::span<std::uint16_t> words, Writer& writer) {
  constexpr std::uint64_t kLaneBytes = 1024;  // payload that makes another lane worth its state
  constexpr std::ptrdiff_t kMostWords = 8;    // that a code or a state takes, and more
  unsigned lane_bits = 0;
  while (lane_bits < kMaxLaneBits && (std::uint64_t{2} << lane_bits) * kLaneBytes <= bytes) ++lane_bits;
  const std::size_t lanes = std::size_t{1} << lane_bits;
  std::uint16_t* const end = words.data() + words.size();
  std::uint16_t* at = end;
  std::array<std::size_t, kMaxLanes> sizes{};
  for (std::size_t lane = lanes; lane-- > 0;) {
    const std::uint16_t* const before = at;
    std::uint32_t state = kernels::kRansFloor;
    for (std::size_t r = rows.ends.size(); r-- > 0;) {
      if ((r & (lanes - 1)) != lane) continue;
      const std::size_t first = r > 0 ? rows.ends[r - 1] : 0;
      for (std::size_t i = rows.ends[r]; i-- > first;) {
        if (rows.contexts[i] == kNoContext) continue;
        if (at - words.data() < kMostWords) return false;
        const std::int32_t code = rows.codes[i];
        const unsigned token = kernels::token_of(static_cast<std::uint32_t>(code < 0 ? -code : code));
        put_symbol(state, code, token, entries[rows.contexts[i] * kTokenPlaces + token], at);
      }
    }
    if (at - words.data() < kMostWords) return false;
    *--at = static_cast<std::uint16_t>(state >> 16);
    *--at = static_cast<std::uint16_t>(state);
    sizes[lane] = static_cast<std::size_t>(before - at);
  }
  writer.u8(static_cast<std::uint8_t>(lane_bits));
  for (std::size_t lane = 0; lane + 1 < lanes; ++lane) writer.varint(sizes[lane]);
  for (; at != end; ++at) writer.u16(*at);
  return true;
}

}  // namespace quern::codec::stencil
