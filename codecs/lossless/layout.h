// Which axes of an array are merged, the extents of its chunks, and how both are stored. Depends on shape, element type
// and values only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <quern/array.h>
#include <quern/codec.h>
#include <quern/memory.h>
#include <quern/status.h>

namespace quern::codec::lossless {

/// Most elements of a chunk that a decoder accepts.
inline constexpr std::uint64_t kMaxChunkElems = std::uint64_t{1} << 18;

/// Every way of merging neighbouring axes of `shape` (extents of 1 left out) down to three or fewer, the one that
/// merges least and latest first.
Vector<std::array<std::uint64_t, 3>> merged_extents(const Shape& shape);

/// Cuts extents into equal chunks of about 2^16 elements (2^17 of narrow types), longest along the last axis.
ChunkGrid cut(const std::array<std::uint64_t, 3>& extents, DType dtype);

/// The layout whose sampled chunks have the lowest estimate. May throw std::bad_alloc.
Result<ChunkGrid> choose_layout(const PlanRequest& request);

/// Params: 1 flag byte (bit 0: zstd modes may occur), then extents and chunk extents as varints.
Vector<std::uint8_t> write_params(const ChunkGrid& grid, bool zstd);
Status read_params(std::span<const std::uint8_t> params, const Shape& shape, ChunkGrid& grid, bool& zstd);

}  // namespace quern::codec::lossless
