// Missing values that the filter is told of.
#pragma once

#include <hdf5.h>

#include <cstdint>

#include "cli/h5/values.h"
#include "cli/h5/verb.h"

namespace quern::cli {

/// Declared missing values that the filter does not learn from the dataset's fill value by itself; it keeps NaN without
/// being told.
Vector<std::uint64_t> h5_other_missing(hid_t dcpl, hid_t type, const InputArray& array);

/// How many values the filter's words can carry beside the dataset's fill value.
inline constexpr std::size_t kMostMissing = 7;

/// Puts at most kMostMissing values into the words.
void declare_missing(const Vector<std::uint64_t>& values, FilterWords& words);

}  // namespace quern::cli
