// An HDF5 identifier that closes itself.
#pragma once

#include <hdf5.h>

#include <string>
#include <utility>

#include "bindings/hdf5/problem.h"

namespace quern::hdf5 {

/// Move-only owner of an identifier and the function that closes it.
class Handle {
 public:
  using Close = herr_t (*)(hid_t);
  /// Throws Problem(resource) with `what` when `id` is no identifier.
  Handle(hid_t id, Close close, const char* what) : id_(id), close_(close) {
    if (id < 0) throw Problem(Trouble::resource, std::string("HDF5 gives no ") + what);
  }
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Handle& operator=(Handle&&) = delete;
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  hid_t get() const { return id_; }

 private:
  hid_t id_;
  Close close_;
};

}  // namespace quern::hdf5
