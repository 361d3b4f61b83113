// Parts of an array: runs of slices of its leading axis, each coded as an array by itself.
//
//   array    | slices of the leading axis                      |
//   parts    | a      | b | c          | d          | e        |   each with a layout, and a grid of inner chunks
//   chunks   | 0                       | 1                     |   of the stream: whole parts, equally many slices
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <quern/codec.h>
#include <quern/memory.h>
#include <quern/references.h>
#include <quern/status.h>

#include "codecs/stencil/levels/form.h"
#include "codecs/stencil/rules.h"

namespace quern::codec::stencil {

inline constexpr std::uint64_t kMostParts = 4096;

struct Part {
  std::uint64_t slices = 1;
  Layout layout;
};

struct Partition {
  std::uint64_t chunk_slices = 1;  ///< of a chunk of the stream; a part ends at each multiple of it
  Vector<Part> parts;
  std::optional<ReferenceId> reference;
};

/// Whether codec parameters are those of an array in parts.
bool names_parts(std::span<const std::uint8_t> params);

/// Codec parameters as stored.
Vector<std::uint8_t> write_partition(const Partition& partition);
/// Reads them back; `corrupt` when they break a rule. Takes memory in proportion to the parameters.
Result<Partition> read_partition(std::span<const std::uint8_t> params, const Shape& shape);

/// The fewest slices of a chunk such that a part ends at each multiple of them; `slices` of the parts in order.
std::uint64_t fewest_chunk_slices(std::span<const std::uint64_t> slices);

/// The grid of the stream: leading axis, all between it and the last, last axis. Chunks are whole slices.
ChunkGrid partition_grid(const Shape& array, std::uint64_t chunk_slices);

/// The array that a run of slices is by itself: one slice has an axis less.
Shape part_shape(const Shape& array, std::uint64_t slices);

/// A part and what follows from its layout.
struct PartPlace {
  std::uint64_t begin = 0;  ///< slices before it
  Part part;
  Shape shape;
  ChunkGrid grid;  ///< of its inner chunks
  LevelsForm form;

  std::uint64_t end() const { return begin + part.slices; }
  std::uint64_t chunks() const {
    const auto counts = grid.counts();
    return counts[0] * counts[1] * counts[2];
  }
};

Vector<PartPlace> place_parts(const Shape& array, std::span<const Part> parts);

/// A layout as the setting `layout` has it, as in levels:3d:1,2.
String layout_text(const Layout& layout);

}  // namespace quern::codec::stencil
