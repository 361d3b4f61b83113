// Lines for the HDF5 error stack, in an error class of our own.
#include "bindings/hdf5/error_stack.h"

#include <hdf5.h>

#include <array>
#include <cstring>
#include <map>
#include <mutex>

#include <quern/quern.h>

#include "bindings/hdf5/host.h"

namespace quern::hdf5 {
namespace {

constexpr const char* kClassName = "quern";
constexpr std::array<const char*, 4> kMinor{"The filter's settings are wrong", "The filter cannot serve this dataset",
                                            "A chunk is damaged or does not belong here", "A resource is missing"};

struct ErrorClass {
  hid_t id = H5I_INVALID_HID;
  hid_t major = H5I_INVALID_HID;
  std::array<hid_t, kMinor.size()> minor{};
};

/// Closing HDF5 takes all identifiers away, and a later one may have the same number: the name tells.
bool still_ours(hid_t id) {
  std::array<char, 16> name{};
  return id >= 0 && H5Iget_type(id) == H5I_ERROR_CLASS && H5Eget_class_name(id, name.data(), name.size()) > 0 &&
         std::strcmp(name.data(), kClassName) == 0;
}

ErrorClass error_class() {
  static std::mutex mutex;
  static std::map<const void*, ErrorClass> classes;
  const std::lock_guard lock(mutex);
  ErrorClass& known = classes[calling_hdf5()];
  if (still_ours(known.id)) return known;
  ErrorClass made;
  made.id = H5Eregister_class(kClassName, "quern", quern_version_string());
  made.major = H5Ecreate_msg(made.id, H5E_MAJOR, "quern filter");
  for (std::size_t i = 0; i < kMinor.size(); ++i) made.minor[i] = H5Ecreate_msg(made.id, H5E_MINOR, kMinor[i]);
  known = made;
  return made;
}

}  // namespace

void push_error(const char* function, Trouble trouble, const char* text) noexcept {
  const ErrorClass own = error_class();
  const hid_t minor = own.minor[static_cast<std::size_t>(trouble)];
  if (own.id < 0 || own.major < 0 || minor < 0) {
    H5Epush2(H5E_DEFAULT, "quern", function, 0, H5E_ERR_CLS, H5E_PLINE, H5E_CANTFILTER, "%s", text);
  } else {
    H5Epush2(H5E_DEFAULT, "quern", function, 0, own.id, own.major, minor, "%s", text);
  }
}

}  // namespace quern::hdf5
