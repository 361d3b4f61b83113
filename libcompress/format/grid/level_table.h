// The level table of a segment: how far into each chunk its coarse levels reach, and a check of these beginnings, so
// that a reader of a coarse level can check exactly the bytes it uses. What a level is, is the codec's business.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <quern/memory.h>
#include <quern/status.h>

#include "libcompress/format/grid/limits.h"
#include "libcompress/format/grid/segment.h"

namespace quern {

/// Beginnings of one chunk, shortest first: with n of them, the i-th holds levels n - i and coarser.
struct LevelCuts {
  std::size_t count = 0;
  std::array<std::uint64_t, kMaxLevelCuts> bytes{};
};

/// What of a chunk is to be read for a level, and what it must match.
struct ChunkBeginning {
  std::uint64_t bytes = 0;
  std::uint32_t check = 0;
};

/// Low 32 bits of the XXH3-64 of a chunk's beginning.
std::uint32_t level_check(std::span<const std::uint8_t> beginning);

/// Appends the table of a segment whose chunks have these cuts: each shorter than the next, all shorter than the chunk.
/// May throw std::bad_alloc.
void put_level_table(std::span<const ChunkPiece> chunks, std::span<const LevelCuts> cuts, Vector<std::uint8_t>& out);

/// What is to be read of each chunk of a segment whose head is intact, for a level from 1 on. The level table is not
/// empty. Fails with `corrupt`.
Status read_level_table(const ParsedSegment& segment, std::uint64_t number, unsigned level,
                        std::array<ChunkBeginning, kMaxSegmentChunks>& out);

}  // namespace quern
