// Element types: which of quern's an HDF5 type is, and in which byte order it is stored.
#pragma once

#include <hdf5.h>

#include <cstddef>
#include <cstdint>

#include <quern/quern.h>

namespace quern::hdf5 {

struct ElementType {
  quern_dtype dtype = 0;
  bool big_endian = false;  ///< false for one byte
};

/// 0 for a number that is no element type.
std::size_t dtype_bytes(std::uint32_t dtype);
/// "f32"; "no element type" for another number.
const char* dtype_name(std::uint32_t dtype);

/// Throws Problem(dataset) that says what the type is when quern has none for it. Types are recognised by their layout,
/// so 2-byte floats made by h5py or by hand are f16 or bf16.
ElementType element_type(hid_t type);

/// Elements in this byte order are not the machine's own.
bool needs_swap(bool big_endian);
/// Reverses the bytes of each element in place.
void swap_elements(void* data, std::size_t elems, std::size_t element_bytes);

}  // namespace quern::hdf5
