// Where the leading axis of an array may be cut into parts: places that statistics of slices propose.
#pragma once

#include <cstdint>

#include <quern/codec.h>
#include <quern/memory.h>
#include <quern/status.h>

namespace quern::codec::stencil {

/// A place between two slices.
struct Cut {
  std::uint64_t slice = 0;  ///< the first one behind it
  bool unlike = false;      ///< slices differ more across it than neighbours in a slice do; else in scale alone
};

/// Proposed cuts in order; none where slices seem to belong together, or are too many or too small to say.
///
/// Of each slice some rows are looked at, about as many elements in all as an eighth of the array has at most. With b(d)
/// the bits of a difference in codes, the means within slice i (of neighbours in a row) and across to slice i + 1 (of
/// the same place) decide. A cut is `unlike` where across exceeds within on both sides by a bit: the next slice tells
/// less than half as precisely what a value is as its neighbour does. Where many places are so (a coarse time axis), it
/// must exceed those at the two places beside it by a bit, too. A cut in scale lies where within differs from the mean
/// since the last cut by two bits. Encodes decide which of them pay.
Result<Vector<Cut>> propose_cuts(const PlanRequest& request);

}  // namespace quern::codec::stencil
