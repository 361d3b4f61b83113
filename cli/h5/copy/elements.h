// Elements of any HDF5 type in memory: references are led to a copy's objects, elements of two files are compared.
#pragma once

#include <hdf5.h>

#include <cstddef>
#include <cstdint>
#include <unordered_map>

namespace quern::cli {

/// Two open files, of which the second is a copy of the first, and where its objects are by their address in the first.
struct H5Pair {
  hid_t from = -1;
  hid_t to = -1;
  std::unordered_map<haddr_t, haddr_t> addresses;
};

/// True when references are among what the type holds, at any depth.
bool h5_has_references(hid_t type);

/// True when the stored bytes of elements mean the same in another file: there are no references, sequences and texts
/// of variable length in them.
bool h5_is_movable(hid_t type);

/// Frees what HDF5 allocated for sequences and texts in elements that it read.
class H5Reclaim {
 public:
  H5Reclaim(hid_t type, std::uint64_t elems, void* data) : type_(type), elems_(elems), data_(data) {}
  H5Reclaim(const H5Reclaim&) = delete;
  H5Reclaim& operator=(const H5Reclaim&) = delete;
  ~H5Reclaim();

 private:
  hid_t type_;
  hsize_t elems_;
  void* data_;
};

/// Replaces references to objects and regions of the first file by those to the same of the second. `elements` came
/// from H5Dread or H5Aread with `type`. A reference that leads nowhere becomes a null reference. Throws CliError (io).
void h5_translate(const H5Pair& pair, hid_t type, void* elements, std::size_t count);

/// True when the elements are equal: sequences and texts by their content, references by what they lead to, all else by
/// its bytes.
bool h5_equal(const H5Pair& pair, hid_t type, const void* in_from, const void* in_to, std::size_t count);

}  // namespace quern::cli
