// Missing values that the filter is told of.
#pragma once

#include <hdf5.h>

#include <cstdint>

#include "cli/h5_values.h"
#include "cli/h5_work.h"

namespace quern::cli {

/// Declared missing values that the filter does not learn from the dataset's fill value by itself; it keeps NaN without
/// being told. Only those of them that occur in the values need to be declared.
Vector<std::uint64_t> h5_other_missing(hid_t dcpl, hid_t type, const InputArray& array);

/// The dataset's own fill value as a pattern of an element; nothing when none was set.
std::optional<std::uint64_t> h5_fill_bits(hid_t dcpl, hid_t type);

/// How many values the filter's words can carry.
inline constexpr std::size_t kMostMissing = 1;

/// Puts values into the words; they stand in the place of the dataset's fill value. At most kMostMissing.
void declare_missing(const Vector<std::uint64_t>& values, FilterWords& words);

}  // namespace quern::cli
