// A whole HDF5 file to a new one, object by object: groups, links, committed types, datasets, attributes, references.
// Datasets may be replaced on the way.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <functional>
#include <string>

#include "cli/h5/copy/tree.h"
#include "cli/h5/file.h"

namespace quern::cli {

/// What is to be different in the copy.
struct H5Changes {
  /// Makes a dataset of the copy, without a link and without attributes, in place of one of the original. Gives an id
  /// that is not ok where the dataset is to be copied as it is.
  /// `type`: the dataset's, as the copy knows it.
  std::function<H5Id(std::size_t object, hid_t from, hid_t to_file, hid_t type)> replace;
  /// False: the replaced dataset's attribute of that name is not copied.
  std::function<bool(std::size_t object, const std::string& attribute)> keeps_attribute;
  /// Adds attributes to a replaced dataset; the copied ones are there.
  std::function<void(std::size_t object, hid_t to)> add_attributes;
};

/// Copies a group's properties to a list of the class that makes groups or files. The group's own list would do for no
/// other group: HDF5 has addresses of the file in it.
void h5_copy_group_properties(hid_t from, hid_t list);

/// Creates `path`, which is replaced, with the properties of the file and of its root group.
H5Id h5_create_like(hid_t from, const std::string& path);

/// Copies everything that `tree`, of `from`, lists. `memory`: bytes that values may take at a time. Throws CliError
/// (io).
void h5_copy_objects(hid_t from, hid_t to, const H5Tree& tree, const H5Changes& changes, std::uint64_t memory);

/// Copies the bytes that stand before HDF5's own, when the file has such a user block. `to` is closed for HDF5.
void h5_copy_user_block(hid_t from, const std::string& from_path, const std::string& to_path);

/// Lets user-defined links of unknown classes be listed and copied.
void h5_know_link_class(H5L_type_t type);

}  // namespace quern::cli
