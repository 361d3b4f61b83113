// Which HDF5 library calls the filter. A plugin that is linked to one has no other; the plugin for any HDF5 is told by
// where it is called from.
#pragma once

namespace quern::hdf5 {

/// A name for the HDF5 that the running call came from: identifiers of one library mean nothing to another. Null in
/// plugins that are linked to an HDF5.
const void* calling_hdf5() noexcept;

}  // namespace quern::hdf5
