// Boxes of chunks, and HDF5's calls that read and write them.
#include "cli/h5/boxes.h"

#include <algorithm>
#include <bit>

#include "cli/h5/file.h"

namespace quern::cli {
namespace {

std::uint64_t product(const Extents& extents, std::uint64_t out) {
  for (const hsize_t e : extents) out *= e;
  return out;
}

struct Selection {
  H5Id file_space;
  H5Id memory_space;

  Selection(hid_t dataset, const H5Box& box)
      : file_space(H5Dget_space(dataset), H5Sclose), memory_space(memory(box), H5Sclose) {
    if (!box.extents.empty())
      h5_check(H5Sselect_hyperslab(file_space.get(), H5S_SELECT_SET, box.origin.data(), nullptr, box.extents.data(),
                                   nullptr),
               "select a part of a dataset");
  }
  static hid_t memory(const H5Box& box) {
    const hsize_t elems = box.elems();
    return H5Screate_simple(1, &elems, nullptr);
  }
};

}  // namespace

std::uint64_t H5Box::elems() const { return product(extents, 1); }

H5Boxes::H5Boxes(const Extents& extents, const Extents& grid, std::uint64_t element_bytes, std::uint64_t bytes)
    : extents_(extents), step_(extents), at_(extents.size(), 0) {
  done_ = std::find(extents.begin(), extents.end(), hsize_t{0}) != extents.end();
  if (done_) return;
  // Halves the slowest axis that can be halved until a box is small enough.
  for (std::size_t a = 0; a < step_.size() && product(step_, element_bytes) > bytes;) {
    const hsize_t unit = grid.empty() ? 1 : std::min(grid[a], extents_[a]);
    const hsize_t chunks = (step_[a] + unit - 1) / unit;
    if (chunks <= 1) {
      ++a;
    } else {
      step_[a] = (chunks + 1) / 2 * unit;
    }
  }
}

bool H5Boxes::next(H5Box& box) {
  if (done_) return false;
  box.origin = at_;
  box.extents.resize(extents_.size());
  for (std::size_t a = 0; a < extents_.size(); ++a) box.extents[a] = std::min(step_[a], extents_[a] - at_[a]);
  done_ = true;
  for (std::size_t a = extents_.size(); a-- > 0;) {
    at_[a] += step_[a];
    if (at_[a] < extents_[a]) {
      done_ = false;
      break;
    }
    at_[a] = 0;
  }
  return true;
}

std::uint64_t H5Boxes::largest_elems() const { return product(step_, 1); }

Extents h5_extents(hid_t space) {
  const int rank = H5Sget_simple_extent_ndims(space);
  Extents out(rank > 0 ? static_cast<std::size_t>(rank) : 0);
  if (rank > 0) H5Sget_simple_extent_dims(space, out.data(), nullptr);
  return out;
}

Extents h5_chunk(hid_t dcpl) {
  if (H5Pget_layout(dcpl) != H5D_CHUNKED) return {};
  Extents out(H5S_MAX_RANK);
  const int rank = h5_check(H5Pget_chunk(dcpl, H5S_MAX_RANK, out.data()), "describe chunks");
  out.resize(static_cast<std::size_t>(rank));
  return out;
}

hid_t h5_machine_type(hid_t type) {
  const hid_t out = H5Tcopy(type);
  const H5T_class_t kind = H5Tget_class(type);
  if ((kind == H5T_INTEGER || kind == H5T_FLOAT) && H5Tget_size(type) > 1)
    h5_check(H5Tset_order(out, std::endian::native == std::endian::little ? H5T_ORDER_LE : H5T_ORDER_BE),
             "turn numbers round");
  return out;
}

void h5_read_box(hid_t dataset, hid_t memory_type, const H5Box& box, void* out) {
  const Selection selection(dataset, box);
  h5_check(H5Dread(dataset, memory_type, selection.memory_space.get(), selection.file_space.get(), H5P_DEFAULT, out),
           "read values");
}

void h5_write_box(hid_t dataset, hid_t memory_type, const H5Box& box, const void* values) {
  const Selection selection(dataset, box);
  h5_check(
      H5Dwrite(dataset, memory_type, selection.memory_space.get(), selection.file_space.get(), H5P_DEFAULT, values),
      "write values");
}

}  // namespace quern::cli
