// Where the sections of a chunk lie.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include <quern/status.h>

#include "codecs/interp/chunk.h"
#include "libcompress/format/reader.h"

namespace quern::codec::interp {

/// The bytes of each section that is there: all of them, or those of the coarse levels.
struct SectionBytes {
  std::array<std::span<const std::uint8_t>, kOwnSections + 1> bytes;

  /// `in`: the sizes of sections, and `wanted` sections or more.
  Status open(std::span<const std::uint8_t> in, unsigned sections, unsigned wanted) {
    Reader reader(in);
    std::array<std::uint64_t, kOwnSections + 1> sizes{};
    for (unsigned s = 0; s + 1 < sections; ++s) {
      QUERN_ASSIGN_OR_RETURN(sizes[s], reader.varint(UINT32_MAX));
    }
    if (wanted == sections) {
      std::uint64_t known = 0;
      for (unsigned s = 0; s + 1 < sections; ++s) known += sizes[s];
      if (known > reader.remaining())
        return Status(StatusCode::corrupt, "interp: sections are longer than their chunk");
      sizes[sections - 1] = reader.remaining() - known;
    }
    for (unsigned s = 0; s < wanted; ++s) {
      QUERN_ASSIGN_OR_RETURN(bytes[s], reader.bytes(sizes[s]));
    }
    return {};
  }
};

}  // namespace quern::codec::interp
