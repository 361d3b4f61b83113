// Streams that a device wrote, as a chunk stores them.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

#include <quern/memory.h>

#include "libcompress/format/writer.h"

namespace quern::coding {

/// How many words each stream has, but for the last. Returns how many all have.
inline std::uint64_t write_lane_sizes(std::span<const std::uint32_t> lane_words, Writer& writer) {
  std::uint64_t total = 0;
  for (std::size_t lane = 0; lane < lane_words.size(); ++lane) {
    total += lane_words[lane];
    if (lane + 1 < lane_words.size()) writer.varint(lane_words[lane]);
  }
  return total;
}

/// Words in their stored order, for which `to` has room.
inline void put_words(std::span<const std::uint16_t> words, std::uint8_t* to) {
  for (const std::uint16_t word : words) {
    *to++ = static_cast<std::uint8_t>(word);
    *to++ = static_cast<std::uint8_t>(word >> 8);
  }
}

/// A chunk's head and the words of its streams, for which `out` has room.
inline void put_head_and_words(const Vector<std::uint8_t>& head, std::span<const std::uint16_t> words,
                               std::span<std::uint8_t> out) {
  std::memcpy(out.data(), head.data(), head.size());
  put_words(words, out.data() + head.size());
}

}  // namespace quern::coding
