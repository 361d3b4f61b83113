// The smallest codec on top of coding/: values of a grid of rows, each predicted by the one before it in its row.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <quern/memory.h>
#include <quern/status.h>

#include "coding/value_format.h"
#include "kernels/entropy/cpu/residual_kernels.h"

namespace quern::coding::test {

struct Grid {
  std::size_t rows = 0;
  std::size_t columns = 0;

  std::size_t elems() const { return rows * columns; }
};

/// How elements take turns in streams.
enum class Turns {
  rows,    ///< row after row; contexts are the two residuals before in the row
  points,  ///< element after element; contexts are the residuals of the row above
};

/// The stored form of values that are within 2^28 steps of format.base. Empty: the room was too small.
Vector<std::uint8_t> encode(std::span<const double> values, const Grid& grid, const ValueFormat& format, Turns turns,
                            const kernels::ResidualKernels& kernels);

/// The same with rows cut into pieces that threads take: the stored forms of all pieces, one after the other.
std::vector<Vector<std::uint8_t>> encode_pieces(std::span<const double> values, const Grid& grid,
                                                const ValueFormat& format, std::size_t pieces, unsigned threads);

/// Fills `values`, or fails with `corrupt`. The bytes are hostile.
Status decode(std::span<const std::uint8_t> bytes, const Grid& grid, Turns turns,
              const kernels::ResidualKernels& kernels, std::span<double> values);

/// What decode allocates at most.
std::size_t most_decode_bytes(const Grid& grid);

}  // namespace quern::coding::test
