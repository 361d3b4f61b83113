// The layout of fewest bytes, found by encoding: all of an array under each layout, or several blocks of a large one.
#pragma once

#include <quern/codec.h>
#include <quern/memory.h>
#include <quern/status.h>

#include "codecs/stencil/plan/plan.h"
#include "codecs/stencil/plan/trial.h"

namespace quern::codec::stencil {

/// What settings, effort, size and goal ask for. `whole` only where the sample holds all of the array.
Comparison comparison_of(const PlanRequest& request, const LayoutChoice& choice);

/// Encodes all chunks of the array under each of the layouts and takes the one of fewest bytes; ties to the earlier.
/// Side by side; what cannot win any more is given up. The transform takes longest: it comes last, and only where its
/// quick estimate does not rule it out; `brief`: and only where the entropy of its coefficients does not. May throw
/// std::bad_alloc.
Result<ChosenLayout> choose_by_encoding(const Stage& stage, const Vector<Trial>& candidates, bool brief);

/// Whether so many bytes of chunks, and what they were made of, are kept until they are wanted.
bool may_keep(const PlanRequest& request, std::uint64_t bytes);

/// Encodes all chunks in one more way, and takes it where it is smaller than what was chosen by encoding. May throw
/// std::bad_alloc.
Status encode_also(const Stage& stage, const Way& way, ChosenLayout& chosen);

/// Codes blocks of 2^17 values all over the array under each of the layouts, until the spread of their differences
/// leaves one, or eight are done. `slabs`: blocks of whole planes and rows. May throw std::bad_alloc.
Result<ChosenLayout> choose_by_blocks(const Stage& stage, Vector<Trial> candidates, bool slabs);

}  // namespace quern::codec::stencil
