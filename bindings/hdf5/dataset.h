// What a dataset's type and creation property list say about its chunks.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "bindings/hdf5/settings.h"

namespace quern::hdf5 {

/// Where quern stands in a creation property list, with its words as they are.
struct FilterEntry {
  unsigned position = 0;
  unsigned count = 0;  ///< filters in the list
  unsigned flags = 0;
  std::vector<unsigned> words;
};
/// Throws Problem(dataset) when quern is not in the list.
FilterEntry filter_entry(hid_t dcpl);

/// The chunks of a dataset with this list and type, without a fill value. Throws Problem(dataset) saying why quern
/// cannot serve it, Problem(request) when another filter stands before quern.
ChunkLayout describe_chunks(hid_t dcpl, hid_t type);
/// The dataset's own fill value in a list as H5Dcreate or H5Dget_create_plist gives it; nothing when none was set. The
/// lists that HDF5 1.10 hands to can_apply for datasets that exist cannot be asked: HDF5 crashes.
std::optional<std::uint64_t> fill_value(hid_t dcpl, hid_t type);

/// What HDF5 writes into the part of an edge chunk that is outside the dataset: one element as stored.
std::vector<std::uint8_t> padding_element(hid_t dcpl, hid_t type);

}  // namespace quern::hdf5
