// The plugin for every HDF5 from 1.10 on: it is linked to none, and each callback finds out which one calls.
#include <H5PLextern.h>

#include "bindings/hdf5/any/callers.h"
#include "bindings/hdf5/filter.h"

namespace {

using quern::hdf5::CallerScope;
using quern::hdf5::filter_class;

extern "C" [[gnu::noinline]] htri_t quern_any_can_apply(hid_t dcpl, hid_t type, hid_t space) {
  const CallerScope scope(__builtin_return_address(0));
  return filter_class().can_apply(dcpl, type, space);
}

extern "C" [[gnu::noinline]] herr_t quern_any_set_local(hid_t dcpl, hid_t type, hid_t space) {
  const CallerScope scope(__builtin_return_address(0));
  return filter_class().set_local(dcpl, type, space);
}

extern "C" [[gnu::noinline]] std::size_t quern_any_filter(unsigned flags, std::size_t count, const unsigned words[],
                                                          std::size_t bytes, std::size_t* capacity, void** buf) {
  const CallerScope scope(__builtin_return_address(0));
  return filter_class().filter(flags, count, words, bytes, capacity, buf);
}

/// The filter behind callbacks that look where they are called from.
const H5Z_class2_t& any_class() {
  static const H5Z_class2_t description = [] {
    H5Z_class2_t own = filter_class();
    own.can_apply = quern_any_can_apply;
    own.set_local = quern_any_set_local;
    own.filter = quern_any_filter;
    return own;
  }();
  return description;
}

}  // namespace

extern "C" {
H5PL_type_t H5PLget_plugin_type(void) { return H5PL_TYPE_FILTER; }
const void* H5PLget_plugin_info(void) { return &any_class(); }
}
