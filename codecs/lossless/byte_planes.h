// Planes of bytes: for the archive option, which packs a chunk's elements or their planes by zstd.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace quern::codec::lossless {

/// All first bytes of the elements, then all second bytes, ...; `planes` has as many bytes.
void split_planes(std::span<const std::uint8_t> elements, std::size_t elem_bytes, std::uint8_t* planes);
/// The inverse.
void join_planes(std::span<const std::uint8_t> planes, std::size_t elem_bytes, std::uint8_t* elements);

}  // namespace quern::codec::lossless
