// What a dataset's type and creation property list say about its chunks.
#pragma once

#include <hdf5.h>

#include <cstdint>
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

/// The chunks of a dataset with this list and type. Throws Problem(dataset) saying why quern cannot serve it,
/// Problem(request) when another filter stands before quern.
ChunkLayout describe_chunks(hid_t dcpl, hid_t type);

/// What HDF5 writes into the part of an edge chunk that is outside the dataset: one element as stored.
std::vector<std::uint8_t> padding_element(hid_t dcpl, hid_t type);

}  // namespace quern::hdf5
