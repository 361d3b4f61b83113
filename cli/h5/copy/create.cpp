// The new file itself, and what in it is no object: the user block and classes of links.
#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <vector>

#include "cli/args/exit_codes.h"
#include "cli/h5/copy/copy.h"

namespace quern::cli {
namespace {

/// The oldest format that objects of the copy may have: that of the file itself.
H5F_libver_t oldest_format(hid_t file) {
  H5F_info2_t info{};
  h5_check(H5Fget_info2(file, &info), "describe the file");
  if (info.super.version >= 3) return H5F_LIBVER_V110;
  return info.super.version == 2 ? H5F_LIBVER_V18 : H5F_LIBVER_EARLIEST;
}

std::uint64_t user_block(hid_t file) {
  const H5Id list(H5Fget_create_plist(file), H5Pclose);
  hsize_t bytes = 0;
  h5_check(H5Pget_userblock(list.get(), &bytes), "describe the file");
  return bytes;
}

hid_t follow_nothing(const char* /*name*/, hid_t /*group*/, const void* /*data*/, std::size_t /*bytes*/, hid_t /*list*/,
                     hid_t /*transfer*/) {
  return -1;
}

/// Gives the link's data; HDF5 lists and copies it through this.
ssize_t tell_link(const char* /*name*/, const void* data, std::size_t bytes, void* out, std::size_t room) {
  if (out != nullptr) std::memcpy(out, data, std::min(bytes, room));
  return static_cast<ssize_t>(bytes);
}

}  // namespace

void h5_copy_group_properties(hid_t from, hid_t list) {
  const H5Id group(H5Gget_create_plist(from), H5Pclose);
  unsigned flags = 0, first = 0, second = 0;
  std::size_t heap_bytes = 0;
  hbool_t times = 1;
  h5_check(H5Pget_link_creation_order(group.get(), &flags), "describe a group");
  H5Pset_link_creation_order(list, flags);
  h5_check(H5Pget_attr_creation_order(group.get(), &flags), "describe a group");
  H5Pset_attr_creation_order(list, flags);
  H5Pget_link_phase_change(group.get(), &first, &second);
  H5Pset_link_phase_change(list, first, second);
  H5Pget_attr_phase_change(group.get(), &first, &second);
  H5Pset_attr_phase_change(list, first, second);
  H5Pget_est_link_info(group.get(), &first, &second);
  H5Pset_est_link_info(list, first, second);
  H5Pget_local_heap_size_hint(group.get(), &heap_bytes);
  H5Pset_local_heap_size_hint(list, heap_bytes);
  H5Pget_obj_track_times(group.get(), &times);
  H5Pset_obj_track_times(list, times);
  for (int i = 0; i < H5Pget_nfilters(group.get()); ++i) {
    std::array<unsigned, 32> words{};
    std::size_t count = words.size();
    const H5Z_filter_t filter =
        H5Pget_filter2(group.get(), static_cast<unsigned>(i), &flags, &count, words.data(), 0, nullptr, nullptr);
    h5_check(H5Pset_filter(list, filter, flags, std::min(count, words.size()), words.data()), "set a group's filter");
  }
  H5Eclear2(H5E_DEFAULT);
}

H5Id h5_create_like(hid_t from, const std::string& path) {
  const H5Id list(H5Fget_create_plist(from), H5Pclose);
  const H5Id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  if (!list.ok() || !access.ok()) h5_fail("describe the file");
  const H5Id root(H5Gopen2(from, "/", H5P_DEFAULT), H5Gclose);
  h5_copy_group_properties(root.get(), list.get());
  h5_check(H5Pset_libver_bounds(access.get(), oldest_format(from), H5F_LIBVER_LATEST), "choose the file's format");
  H5Id file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, list.get(), access.get()), H5Fclose);
  if (!file.ok()) h5_fail("create " + path);
  return file;
}

void h5_copy_user_block(hid_t from, const std::string& from_path, const std::string& to_path) {
  const std::uint64_t bytes = user_block(from);
  if (bytes == 0) return;
  std::vector<char> block(static_cast<std::size_t>(bytes));
  std::ifstream in(from_path, std::ios::binary);
  std::fstream out(to_path, std::ios::binary | std::ios::in | std::ios::out);
  if (!in.read(block.data(), static_cast<std::streamsize>(bytes)) ||
      !out.write(block.data(), static_cast<std::streamsize>(bytes)).flush())
    fail(Exit::io, from_path + ": its user block (the bytes before HDF5's own) cannot be copied");
}

void h5_know_link_class(H5L_type_t type) {
  if (H5Lis_registered(type) > 0) return;
  H5L_class_t known{};
  known.version = H5L_LINK_CLASS_T_VERS;
  known.id = type;
  known.comment = "unknown class";
  known.trav_func = follow_nothing;
  known.query_func = tell_link;
  h5_check(H5Lregister(&known), "stand in for a class of user-defined links");
}

}  // namespace quern::cli
