// Attributes of one object to its copy.
#pragma once

#include <hdf5.h>

#include <functional>
#include <string>
#include <vector>

#include "cli/h5/copy/copy_types.h"
#include "cli/h5/copy/elements.h"

namespace quern::cli {

/// The names of an object's attributes, in the order in which they were made where the object keeps it.
std::vector<std::string> h5_attribute_names(hid_t object);

/// All elements of an attribute in memory.
class H5AttributeValues {
 public:
  explicit H5AttributeValues(hid_t attribute);
  ~H5AttributeValues();
  H5AttributeValues(const H5AttributeValues&) = delete;
  H5AttributeValues& operator=(const H5AttributeValues&) = delete;

  hid_t type() const { return type_.get(); }
  hid_t space() const { return space_.get(); }
  void* data() { return bytes_.data(); }
  std::size_t count() const { return count_; }

 private:
  H5Id type_;
  H5Id space_;
  std::size_t count_ = 0;
  std::vector<unsigned char> bytes_;
};

/// Makes `name` on `to` as it is on `from`. Its value is written unless it holds references, which need all objects of
/// the copy; returns false then. Throws CliError (io).
bool h5_copy_attribute(hid_t from, hid_t to, const std::string& name, H5TypeCopies& types);
/// Writes the value of an attribute with references.
void h5_write_references(const H5Pair& pair, hid_t from, hid_t to, const std::string& name);

}  // namespace quern::cli
