// The filter as HDF5 sees it.
#pragma once

#include <hdf5.h>

#include <cstddef>

namespace quern::hdf5 {

/// For H5Zregister and H5PLget_plugin_info.
const H5Z_class2_t& filter_class();

/// Both directions, as HDF5 calls it: `*buf` is replaced by memory of H5allocate_memory. 0 on failure, with the reason
/// on the error stack and `*buf` as it was.
std::size_t run_filter(unsigned flags, std::size_t count, const unsigned words[], std::size_t bytes,
                       std::size_t* capacity, void** buf);

}  // namespace quern::hdf5
