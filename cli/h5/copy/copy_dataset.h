// One dataset that does not change to another file: its chunks go over as they are stored.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <string>

#include "cli/h5/copy/copy_types.h"
#include "cli/h5/copy/elements.h"

namespace quern::cli {

/// Copies a dataset without its attributes to `group` under `name`: with H5Ocopy, or, when its type is a committed one,
/// chunk by chunk into a dataset of the committed type's copy. Filters need not be available for values without texts
/// of variable length, sequences and references. References are not written. Throws CliError (io).
void h5_copy_dataset(hid_t from, hid_t group, const std::string& name, hid_t link_list, H5TypeCopies& types,
                     std::uint64_t memory);

/// True when a dataset's values lie in other files or other datasets.
bool h5_values_elsewhere(hid_t dcpl);

/// Writes the values of a dataset whose elements hold references.
void h5_write_dataset_references(const H5Pair& pair, hid_t from, hid_t to, std::uint64_t memory);

}  // namespace quern::cli
