// H5Ocopy where it is exact; raw chunks and plain values where it would lose a committed type.
#include "cli/h5/copy/copy_dataset.h"

#include <algorithm>

#include "cli/files/memory.h"
#include "cli/h5/boxes.h"
#include "cli/h5/chunks.h"

namespace quern::cli {
namespace {

/// Reads all values box by box, lets `change` work on them and writes them.
template <class Change>
void copy_values(hid_t from, hid_t to, std::uint64_t memory, const Change& change) {
  const H5Id type(H5Dget_type(from), H5Tclose);
  const H5Id space(H5Dget_space(from), H5Sclose);
  const H5Id dcpl(H5Dget_create_plist(from), H5Pclose);
  if (H5Sget_simple_extent_type(space.get()) == H5S_NULL || h5_values_elsewhere(dcpl.get())) return;
  const std::size_t width = H5Tget_size(type.get());
  H5Boxes boxes(h5_extents(space.get()), h5_chunk(dcpl.get()), width, memory);
  H5Box box;
  if (!boxes.next(box)) return;
  Buffer buffer(boxes.largest_elems() * width, "a part of a dataset");
  do {
    h5_read_box(from, type.get(), box, buffer.data());
    const H5Reclaim reclaim(type.get(), box.elems(), buffer.data());
    change(type.get(), buffer.data(), box.elems());
    h5_write_box(to, type.get(), box, buffer.data());
  } while (boxes.next(box));
}

/// A dataset of a committed type: H5Ocopy would commit a second one.
void copy_of_committed_type(hid_t from, hid_t type, hid_t group, const std::string& name, hid_t link_list,
                            H5TypeCopies& types, std::uint64_t memory) {
  const H5Id space(H5Dget_space(from), H5Sclose);
  const H5Id dcpl(H5Dget_create_plist(from), H5Pclose);
  h5_stand_in_for_filters(dcpl.get());
  const hid_t made_id =
      H5Dcreate2(group, name.c_str(), types.type_for(type), space.get(), link_list, dcpl.get(), H5P_DEFAULT);
  const H5Id made(made_id, H5Dclose);
  if (!made.ok()) h5_fail("make the dataset " + name);
  if (h5_has_references(type)) return;
  if (H5Pget_layout(dcpl.get()) == H5D_CHUNKED && h5_is_movable(type)) {
    h5_move_chunks(from, made.get());
  } else {
    copy_values(from, made.get(), memory, [](hid_t, void*, std::uint64_t) {});
  }
}

}  // namespace

bool h5_values_elsewhere(hid_t dcpl) { return H5Pget_layout(dcpl) == H5D_VIRTUAL || H5Pget_external_count(dcpl) > 0; }

void h5_copy_dataset(hid_t from, hid_t group, const std::string& name, hid_t link_list, H5TypeCopies& types,
                     std::uint64_t memory) {
  const H5Id type(H5Dget_type(from), H5Tclose);
  if (H5Tcommitted(type.get()) > 0) {
    copy_of_committed_type(from, type.get(), group, name, link_list, types, memory);
    return;
  }
  const H5Id list(H5Pcreate(H5P_OBJECT_COPY), H5Pclose);
  h5_check(H5Pset_copy_object(list.get(), H5O_COPY_WITHOUT_ATTR_FLAG), "copy without attributes");
  if (H5Ocopy(from, ".", group, name.c_str(), list.get(), link_list) < 0) h5_fail("copy the dataset " + name);
}

void h5_write_dataset_references(const H5Pair& pair, hid_t from, hid_t to, std::uint64_t memory) {
  copy_values(from, to, memory, [&](hid_t type, void* elements, std::uint64_t count) {
    h5_translate(pair, type, elements, static_cast<std::size_t>(count));
  });
}

}  // namespace quern::cli
