// The HDF5 functions that the filter calls, each by its own name, handed on to the library that called the filter. They
// are hidden in the plugin. Without that library's functions the two for memory are the C library's, which HDF5 uses as
// well; all others fail as HDF5's do.
#include <hdf5.h>

#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "bindings/hdf5/any/callers.h"

namespace {

using quern::hdf5::Call;

template <class Function>
Function* caller(Call call) {
  return reinterpret_cast<Function*>(quern::hdf5::function_of_caller(call));
}

/// Calls the function of that name, or returns `failed`.
template <class Function, class Result, class... Arguments>
Result hand_on(Call call, Result failed, Arguments... arguments) {
  Function* function = caller<Function>(call);
  return function == nullptr ? failed : function(arguments...);
}

}  // namespace

// Of the last resort of error_stack.cpp, which is left out then.
hid_t H5E_ERR_CLS_g = H5I_INVALID_HID;
hid_t H5E_PLINE_g = H5I_INVALID_HID;
hid_t H5E_CANTFILTER_g = H5I_INVALID_HID;

extern "C" {

void* H5allocate_memory(size_t size, hbool_t clear) {
  if (auto* function = caller<decltype(H5allocate_memory)>(Call::allocate_memory)) return function(size, clear);
  return clear ? std::calloc(1, size) : std::malloc(size);
}

herr_t H5free_memory(void* memory) {
  if (auto* function = caller<decltype(H5free_memory)>(Call::free_memory)) return function(memory);
  std::free(memory);
  return 0;
}

herr_t H5open(void) { return hand_on<decltype(H5open)>(Call::open, herr_t{-1}); }

hid_t H5Eregister_class(const char* name, const char* library, const char* version) {
  return hand_on<decltype(H5Eregister_class)>(Call::register_class, hid_t{-1}, name, library, version);
}

hid_t H5Ecreate_msg(hid_t id, H5E_type_t type, const char* text) {
  return hand_on<decltype(H5Ecreate_msg)>(Call::create_msg, hid_t{-1}, id, type, text);
}

ssize_t H5Eget_class_name(hid_t id, char* name, size_t size) {
  return hand_on<decltype(H5Eget_class_name)>(Call::get_class_name, ssize_t{-1}, id, name, size);
}

herr_t H5Epush2(hid_t stack, const char* file, const char* name, unsigned line, hid_t id, hid_t major, hid_t minor,
                const char* format, ...) {
  auto* function = caller<decltype(H5Epush2)>(Call::push2);
  if (function == nullptr) return -1;
  std::array<char, 1024> text{};
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text.data(), text.size(), format, arguments);
  va_end(arguments);
  return function(stack, file, name, line, id, major, minor, "%s", text.data());
}

H5I_type_t H5Iget_type(hid_t id) { return hand_on<decltype(H5Iget_type)>(Call::get_type, H5I_BADID, id); }

herr_t H5Pfill_value_defined(hid_t list, H5D_fill_value_t* status) {
  return hand_on<decltype(H5Pfill_value_defined)>(Call::fill_value_defined, herr_t{-1}, list, status);
}

int H5Pget_chunk(hid_t list, int rank, hsize_t extents[]) {
  return hand_on<decltype(H5Pget_chunk)>(Call::get_chunk, -1, list, rank, extents);
}

herr_t H5Pget_fill_time(hid_t list, H5D_fill_time_t* time) {
  return hand_on<decltype(H5Pget_fill_time)>(Call::get_fill_time, herr_t{-1}, list, time);
}

herr_t H5Pget_fill_value(hid_t list, hid_t type, void* value) {
  return hand_on<decltype(H5Pget_fill_value)>(Call::get_fill_value, herr_t{-1}, list, type, value);
}

H5Z_filter_t H5Pget_filter2(hid_t list, unsigned index, unsigned* flags, size_t* count, unsigned words[], size_t length,
                            char name[], unsigned* config) {
  return hand_on<decltype(H5Pget_filter2)>(Call::get_filter2, H5Z_filter_t{-1}, list, index, flags, count, words,
                                           length, name, config);
}

H5D_layout_t H5Pget_layout(hid_t list) {
  return hand_on<decltype(H5Pget_layout)>(Call::get_layout, H5D_LAYOUT_ERROR, list);
}

int H5Pget_nfilters(hid_t list) { return hand_on<decltype(H5Pget_nfilters)>(Call::get_nfilters, -1, list); }

herr_t H5Pmodify_filter(hid_t list, H5Z_filter_t filter, unsigned flags, size_t count, const unsigned words[]) {
  return hand_on<decltype(H5Pmodify_filter)>(Call::modify_filter, herr_t{-1}, list, filter, flags, count, words);
}

H5T_class_t H5Tget_class(hid_t type) { return hand_on<decltype(H5Tget_class)>(Call::type_class, H5T_NO_CLASS, type); }

size_t H5Tget_ebias(hid_t type) { return hand_on<decltype(H5Tget_ebias)>(Call::type_ebias, size_t{0}, type); }

herr_t H5Tget_fields(hid_t type, size_t* sign, size_t* exponent, size_t* exponent_bits, size_t* mantissa,
                     size_t* mantissa_bits) {
  return hand_on<decltype(H5Tget_fields)>(Call::type_fields, herr_t{-1}, type, sign, exponent, exponent_bits, mantissa,
                                          mantissa_bits);
}

H5T_norm_t H5Tget_norm(hid_t type) { return hand_on<decltype(H5Tget_norm)>(Call::type_norm, H5T_NORM_ERROR, type); }

int H5Tget_offset(hid_t type) { return hand_on<decltype(H5Tget_offset)>(Call::type_offset, -1, type); }

H5T_order_t H5Tget_order(hid_t type) {
  return hand_on<decltype(H5Tget_order)>(Call::type_order, H5T_ORDER_ERROR, type);
}

size_t H5Tget_precision(hid_t type) {
  return hand_on<decltype(H5Tget_precision)>(Call::type_precision, size_t{0}, type);
}

H5T_sign_t H5Tget_sign(hid_t type) { return hand_on<decltype(H5Tget_sign)>(Call::type_sign, H5T_SGN_ERROR, type); }

size_t H5Tget_size(hid_t type) { return hand_on<decltype(H5Tget_size)>(Call::type_size, size_t{0}, type); }

}  // extern "C"
