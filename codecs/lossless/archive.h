// The archive option: zstd over a chunk's elements or their byte planes. Its bytes depend on the version of zstd, so
// nothing uses it unless it was asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <quern/status.h>

namespace quern::codec::lossless {

/// All first bytes of the elements, then all second bytes, ...; `planes` has as many bytes.
void split_planes(std::span<const std::uint8_t> elements, std::size_t elem_bytes, std::uint8_t* planes);
/// The inverse.
void join_planes(std::span<const std::uint8_t> planes, std::size_t elem_bytes, std::uint8_t* elements);

/// Packs `data` into `out`; 0 when it does not fit. Allocates a zstd context.
Result<std::size_t> pack(std::span<const std::uint8_t> data, int level, std::span<std::uint8_t> out);
/// Unpacks a zstd frame that must fill `out` exactly.
Status unpack(std::span<const std::uint8_t> in, std::span<std::uint8_t> out);

}  // namespace quern::codec::lossless
