// HDF5 as the verbs of quern h5 use it: identifiers that close, quiet calls, the datasets of a file, the plugin.
#pragma once

#include <hdf5.h>

#include <string>
#include <utility>
#include <vector>

namespace quern::cli {

/// An identifier with the function that closes it. Move-only.
class H5Id {
 public:
  using Close = herr_t (*)(hid_t);
  H5Id(hid_t id, Close close) : id_(id), close_(close) {}
  H5Id(H5Id&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  H5Id& operator=(H5Id&&) = delete;
  ~H5Id() {
    if (id_ >= 0) close_(id_);
  }
  hid_t get() const { return id_; }
  bool ok() const { return id_ >= 0; }

 private:
  hid_t id_;
  Close close_;
};

/// Before the first call to HDF5: nothing is printed, and nothing happens at the end of the process.
void h5_prepare_command();

/// quern's own line on the error stack, else HDF5's innermost one; takes them off.
std::string h5_reason();

/// Opens for reading. Throws CliError (io).
H5Id h5_open(const std::string& path);

/// Paths of all datasets, one list of names (hard links) an object. Throws CliError (io).
std::vector<std::vector<std::string>> h5_datasets(hid_t file);
/// Those chosen by name, with their other names; all when none is given. Throws CliError (io) for a name that is none.
std::vector<std::vector<std::string>> h5_datasets(hid_t file, const std::vector<std::string>& chosen);

/// True when the filter is among those of a dataset's creation property list.
bool h5_uses_quern(hid_t dcpl);

/// The folder with libh5quern.so that belongs to this command: in its build folder, or where it was installed; empty
/// when there is none.
std::string own_plugin_folder();

}  // namespace quern::cli
