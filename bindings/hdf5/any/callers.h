// The HDF5 libraries of a process. Wheels of h5py and netCDF4 bring renamed ones of their own, so that several are
// there side by side; the filter must use the functions of the one that calls it. The address a callback returns to lies
// in that library (dladdr), and the library's own symbols are found from its name (dlopen with RTLD_NOLOAD, dlsym).
#pragma once

#include <cstddef>

namespace quern::hdf5 {

/// The HDF5 functions the filter uses.
enum class Call : std::size_t {
  allocate_memory,
  free_memory,
  create_msg,
  get_class_name,
  push2,
  register_class,
  get_type,
  open,
  fill_value_defined,
  get_chunk,
  get_fill_time,
  get_fill_value,
  get_filter2,
  get_layout,
  get_nfilters,
  modify_filter,
  type_class,
  type_ebias,
  type_fields,
  type_norm,
  type_offset,
  type_order,
  type_precision,
  type_sign,
  type_size,
  count
};

/// The caller's function, or null: where the library keeps its symbols to itself (HDF5 inside an executable).
void* function_of_caller(Call call) noexcept;

/// Names the HDF5 that a return address lies in for the time of a callback, on this thread.
class CallerScope {
 public:
  explicit CallerScope(const void* return_address) noexcept;
  ~CallerScope();
  CallerScope(const CallerScope&) = delete;
  CallerScope& operator=(const CallerScope&) = delete;

 private:
  const void* outer_;
};

}  // namespace quern::hdf5
