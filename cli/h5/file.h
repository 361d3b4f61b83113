// HDF5 as the verbs of quern h5 use it: identifiers that close, quiet calls, the datasets of a file, the plugin.
#pragma once

#include <hdf5.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace quern::cli {

/// An identifier with the function that closes it. Move-only.
class H5Id {
 public:
  using Close = herr_t (*)(hid_t);
  H5Id() = default;
  H5Id(hid_t id, Close close) : id_(id), close_(close) {}
  H5Id(H5Id&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  H5Id& operator=(H5Id&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  ~H5Id() {
    if (id_ >= 0) close_(id_);
  }
  hid_t get() const { return id_; }
  bool ok() const { return id_ >= 0; }

 private:
  hid_t id_ = -1;
  Close close_ = nullptr;
};

/// Before the first call to HDF5: nothing is printed, and nothing happens at the end of the process.
void h5_prepare_command();

/// quern's own line on the error stack, else HDF5's innermost one; takes them off.
std::string h5_reason();

/// Throws CliError (io): "HDF5 cannot WHAT: REASON".
[[noreturn]] void h5_fail(const std::string& what);
/// Throws CliError (io) with what HDF5 says when `result` is negative. Returns `result`.
template <class T>
T h5_check(T result, const char* what) {
  if (result < 0) h5_fail(what);
  return result;
}

/// Opens for reading. Throws CliError (io).
H5Id h5_open(const std::string& path);
/// Opens an object of a file by its address. Throws CliError (io).
H5Id h5_open_at(hid_t file, haddr_t address);
/// The address of an open object in its file.
haddr_t h5_address(hid_t object);

/// The text of an attribute, several texts joined by blanks; empty when there is none of that name or it is no text.
std::string h5_text(hid_t object, const char* attribute);
/// The number in an attribute of one number; nothing when there is none.
std::optional<double> h5_number(hid_t object, const char* attribute);

/// True when the filter is among those of a dataset's creation property list.
bool h5_uses_quern(hid_t dcpl);
/// The filter's words in a list that has it.
std::vector<unsigned> h5_words(hid_t dcpl);

/// The folder with libh5quern.so that belongs to this command: in its build folder, or where it was installed; empty
/// when there is none.
std::string own_plugin_folder();

}  // namespace quern::cli
