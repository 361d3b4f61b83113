// Committed types by their address in the original.
#include "cli/h5/copy/copy_types.h"

namespace quern::cli {

hid_t H5TypeCopies::type_for(hid_t type) {
  if (H5Tcommitted(type) <= 0) {
    plain_ = H5Id(H5Tcopy(type), H5Tclose);
    return plain_.get();
  }
  const haddr_t address = h5_address(type);
  const auto known = committed_.find(address);
  if (known != committed_.end()) return known->second.get();
  H5Id copy(H5Tcopy(type), H5Tclose);
  const H5Id list(H5Tget_create_plist(type), H5Pclose);
  h5_check(H5Tcommit_anon(to_file_, copy.get(), list.get(), H5P_DEFAULT), "commit a datatype");
  const hid_t out = committed_.emplace(address, std::move(copy)).first->second.get();
  made_(type, out);
  return out;
}

}  // namespace quern::cli
