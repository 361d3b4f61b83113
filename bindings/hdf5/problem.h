// What goes wrong inside the plugin, as an exception that ends at the C entry it passed through.
#pragma once

#include <stdexcept>
#include <string>

namespace quern::hdf5 {

enum class Trouble {
  request,  ///< the filter's settings are wrong whatever the dataset
  dataset,  ///< the settings are right, but not for this dataset
  chunk,    ///< a chunk's bytes are not what they should be
  resource  ///< memory, or HDF5 itself
};

class Problem : public std::runtime_error {
 public:
  Problem(Trouble trouble, const std::string& text) : std::runtime_error(text), trouble_(trouble) {}
  Trouble trouble() const { return trouble_; }

 private:
  Trouble trouble_;
};

}  // namespace quern::hdf5
