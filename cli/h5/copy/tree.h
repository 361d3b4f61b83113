// The objects of an HDF5 file and the links between them, read once; no values.
#pragma once

#include <hdf5.h>

#include <cstddef>
#include <string>
#include <unordered_map>
#include <vector>

namespace quern::cli {

/// A link as a group lists it.
struct H5Link {
  std::string name;
  H5L_type_t type = H5L_TYPE_HARD;
  H5T_cset_t text = H5T_CSET_ASCII;  ///< how the name is encoded
  std::size_t object = 0;            ///< of a hard link: index into H5Tree::objects
};

/// A group, dataset or committed type; objects with several hard links are here once.
struct H5Object {
  haddr_t address = HADDR_UNDEF;
  H5O_type_t type = H5O_TYPE_UNKNOWN;
  std::size_t parent = 0;  ///< the group it was met in first, and its name there
  std::string name;
  std::vector<H5Link> links;  ///< of a group, in the order in which they were made where the group keeps it
};

struct H5Tree {
  std::vector<H5Object> objects;  ///< the root group first; a group comes before what is met in it first
  std::unordered_map<haddr_t, std::size_t> by_address;

  /// "/group/name", by the names under which the object was met first.
  std::string path(std::size_t object) const;
  /// Every name of every dataset.
  std::unordered_map<std::string, std::size_t> dataset_names() const;
};

/// Goes through all groups that hard links lead to; cycles and depth do not matter. Throws CliError (io).
H5Tree h5_tree(hid_t file);

/// The dataset a name or path leads to, also over soft links. Throws CliError (io) when it leads to none in this file.
std::size_t h5_find_dataset(hid_t file, const H5Tree& tree, const std::string& given);

}  // namespace quern::cli
