// What the HDF5 reader and writer share: handles that close themselves, quiet calls, element types, attributes.
#pragma once

#include <hdf5.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <quern/io.h>

#include "libcompress/io/file_notes.h"
#include "libcompress/io/library/slabs.h"

namespace quern::io {

/// An HDF5 identifier with the function that closes it. Move-only.
class H5Handle {
 public:
  using Close = herr_t (*)(hid_t);
  H5Handle() = default;
  H5Handle(hid_t id, Close close) : id_(id), close_(close) {}
  H5Handle(H5Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  H5Handle& operator=(H5Handle&& other) noexcept {
    if (this != &other) {
      reset();
      id_ = std::exchange(other.id_, -1);
      close_ = other.close_;
    }
    return *this;
  }
  ~H5Handle() { reset(); }

  hid_t get() const { return id_; }
  bool ok() const { return id_ >= 0; }
  /// Closes now; false when HDF5 reports that it could not.
  bool reset() {
    const hid_t id = std::exchange(id_, -1);
    return id < 0 || close_(id) >= 0;
  }

 private:
  hid_t id_ = -1;
  Close close_ = nullptr;
};

/// Must precede every other call to HDF5, netCDF's included: after a close that failed (a full disk), HDF5's own work
/// at the end of the process uses what that close has freed. Files are closed by their owners, so nothing is lost by
/// it.
void h5_prepare();

/// Keeps HDF5 from printing its errors while it lives, and puts the caller's setting back.
class H5Quiet {
 public:
  H5Quiet() {
    h5_prepare();
    H5Eget_auto2(H5E_DEFAULT, &function_, &data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  H5Quiet(const H5Quiet&) = delete;
  H5Quiet& operator=(const H5Quiet&) = delete;
  ~H5Quiet() { H5Eset_auto2(H5E_DEFAULT, function_, data_); }

 private:
  H5E_auto2_t function_ = nullptr;
  void* data_ = nullptr;
};

/// HDF5's own words for what went wrong last, from the innermost call.
std::string h5_error();

/// Selects a slab in a dataset's space; a scalar's space needs no selection. False when HDF5 refuses.
bool h5_select(hid_t space, const Slab& slab);

/// What a dataset's elements are in memory.
struct H5Element {
  DType dtype = DType::f32;
  H5Handle memory_type;  ///< one item: a number, or a record of two when complex
  std::vector<std::string> complex_names;
  std::size_t item_bytes() const { return dtype_bytes(dtype) * (complex_names.empty() ? 1 : 2); }
};

/// The native HDF5 type of an element type; 16-bit floats are made from their fields.
H5Handle h5_native_type(DType dtype);
/// The native record of two numbers with these names.
H5Handle h5_complex_type(DType dtype, const std::vector<std::string>& names);
/// The element type that holds a stored type; nothing for texts, references, other records.
std::optional<DType> h5_number_type(hid_t type);
/// The same with pairs {r, i}; nothing when quern cannot read the type.
std::optional<H5Element> h5_element(hid_t type);

/// Reads all attributes of an object into `notes`.
void h5_read_attributes(hid_t object, FileNotes& notes);
/// Writes one attribute; false when HDF5 refuses (h5_error() says why).
bool h5_write_attribute(hid_t object, const Attribute& attribute);

/// A file access list that lets read-only and network file systems without locks work, and allows large attributes.
H5Handle h5_file_access();

}  // namespace quern::io
