// Chunks whose elements lie on a lattice are coded as the integers that number its places, where that takes less than
// the bound would let them take.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <quern/codec.h>
#include <quern/status.h>

#include "codecs/stencil/chunk.h"
#include "codecs/stencil/integer_chunk.h"
#include "codecs/stencil/lattice/lattice.h"

namespace quern::codec::stencil {

inline bool may_lie_on_lattice(DType dtype) { return dtype == DType::f32 || dtype == DType::f64; }

/// The chunk as integers.
struct LatticePlaces {
  Lattice lattice;
  Vector<std::int32_t> numbers;
  ConstBox3 box;    ///< of `numbers`
  EncodeSpec spec;  ///< of the chunk of integers; its bound is a number of places
};

/// The places of a chunk on its lattice, when it has one that pays: all its elements keep the bound as long as their
/// integers keep theirs. Without numbers if not. May throw std::bad_alloc.
LatticePlaces lattice_places(const EncodeSpec& spec, const ConstBox3& in);

/// Writes mode and lattice; `out` has kLatticeHead bytes.
void write_lattice(const Lattice& lattice, std::span<std::uint8_t> out);

/// Reads what follows the mode and takes it from `in`, which then begins with the mode of the chunk of integers.
Result<Lattice> read_lattice(DType dtype, std::span<const std::uint8_t>& in);

/// Puts elements in the place of the integers that integer_box has.
void spread_lattice(const Lattice& lattice, DType dtype, const MutableBox3& box);

}  // namespace quern::codec::stencil
