// Committed datatypes of a copy: datasets and attributes that share one go on sharing it.
#pragma once

#include <hdf5.h>

#include <functional>
#include <unordered_map>

#include "cli/h5/file.h"

namespace quern::cli {

class H5TypeCopies {
 public:
  /// `made` is called for every committed type when its copy is made, to copy its attributes.
  using Made = std::function<void(hid_t from, hid_t to)>;
  H5TypeCopies(hid_t to_file, Made made) : to_file_(to_file), made_(std::move(made)) {}

  /// The type to use in the copy where `type` is used in the original: of a committed type its copy, which is made at
  /// the first call. Valid as long as this object.
  hid_t type_for(hid_t type);

 private:
  hid_t to_file_;
  Made made_;
  std::unordered_map<haddr_t, H5Id> committed_;
  H5Id plain_;
};

}  // namespace quern::cli
