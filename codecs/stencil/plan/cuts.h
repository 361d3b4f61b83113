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
  bool sure = false;        ///< slices are unlike beyond doubt; else parts on both sides may be smaller as one
};

/// Proposed cuts in order; none where slices seem to belong together, or are too many or too small to say.
///
/// Of each slice some rows are read, about as many elements in all as an eighth of the array has at most. With b(d)
/// the bits of a difference in codes, the means within slice i (of neighbours in a row) and across to slice i + 1 (of
/// the same place) decide. Slices are unlike where across exceeds within on both sides by a bit, the next slice telling
/// less than half as precisely what a value is as its neighbour does, and comes within a bit of what differences to
/// another place of the next slice take. Among more than 16 slices a cut is sure where across exceeds that at the two
/// places beside it by a bit, too; where more than that are unlike (a coarse time axis), only sure ones are proposed. A
/// cut in scale, which never is sure, lies where within differs from the mean
/// since the last cut by two bits. Encodes decide which of them pay.
Result<Vector<Cut>> propose_cuts(const PlanRequest& request);

}  // namespace quern::codec::stencil
