// What HDF5 looks for in a plugin.
#include <H5PLextern.h>

#include "bindings/hdf5/filter.h"

extern "C" {
H5PL_type_t H5PLget_plugin_type(void) { return H5PL_TYPE_FILTER; }
const void* H5PLget_plugin_info(void) { return &quern::hdf5::filter_class(); }
}
