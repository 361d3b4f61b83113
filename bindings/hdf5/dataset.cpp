// Property lists and types, read once.
#include "bindings/hdf5/dataset.h"

#include <array>
#include <bit>
#include <string>

#include <quern/hdf5.h>

#include "bindings/hdf5/element_type.h"
#include "bindings/hdf5/handle.h"

namespace quern::hdf5 {
namespace {

std::uint64_t element_bits(const std::vector<std::uint8_t>& element, bool big_endian) {
  std::uint64_t bits = 0;
  for (std::size_t b = 0; b < element.size(); ++b)
    bits |= std::uint64_t{element[big_endian ? element.size() - 1 - b : b]} << (8 * b);
  return bits;
}

H5D_fill_value_t fill_status(hid_t dcpl) {
  H5D_fill_value_t status = H5D_FILL_VALUE_UNDEFINED;
  if (H5Pfill_value_defined(dcpl, &status) < 0) throw Problem(Trouble::resource, "HDF5 does not give the fill value");
  return status;
}

/// The fill value as stored, in the dataset's own type.
std::vector<std::uint8_t> fill_element(hid_t dcpl, hid_t type) {
  std::vector<std::uint8_t> element(H5Tget_size(type));
  if (H5Pget_fill_value(dcpl, type, element.data()) < 0)
    throw Problem(Trouble::resource, "HDF5 does not give the fill value in the dataset's type");
  return element;
}

}  // namespace

FilterEntry filter_entry(hid_t dcpl) {
  FilterEntry out;
  const int count = H5Pget_nfilters(dcpl);
  for (int i = 0; i < count; ++i) {
    unsigned flags = 0, config = 0;
    std::size_t words = 0;
    if (H5Pget_filter2(dcpl, static_cast<unsigned>(i), &flags, &words, nullptr, 0, nullptr, &config) !=
        QUERN_HDF5_FILTER_ID)
      continue;
    out.position = static_cast<unsigned>(i);
    out.count = static_cast<unsigned>(count);
    out.flags = flags;
    out.words.resize(words);
    if (words != 0 && H5Pget_filter2(dcpl, out.position, &flags, &words, out.words.data(), 0, nullptr, &config) < 0)
      throw Problem(Trouble::resource, "HDF5 does not give the filter's settings");
    return out;
  }
  throw Problem(Trouble::dataset, "the dataset does not use the filter quern (" + std::to_string(QUERN_HDF5_FILTER_ID) +
                                      "); set it when the dataset is created");
}

ChunkLayout describe_chunks(hid_t dcpl, hid_t type) {
  ChunkLayout out;
  const ElementType element = element_type(type);
  out.dtype = element.dtype;
  out.big_endian = element.big_endian;
  if (H5Pget_layout(dcpl) != H5D_CHUNKED)
    throw Problem(Trouble::dataset, "the dataset is not chunked; filters need chunks (H5Pset_chunk)");
  std::array<hsize_t, H5S_MAX_RANK> extents{};
  const int rank = H5Pget_chunk(dcpl, static_cast<int>(extents.size()), extents.data());
  if (rank < 1 || rank > QUERN_MAX_RANK)
    throw Problem(Trouble::dataset, "the chunks have " + std::to_string(rank) + " axes; quern takes 1 to 8");
  out.rank = static_cast<std::uint32_t>(rank);
  std::uint64_t bytes = H5Tget_size(type);
  for (std::uint32_t a = 0; a < out.rank; ++a) {
    if (extents[a] == 0 || extents[a] > kMaxChunkBytes / bytes)
      throw Problem(Trouble::dataset, "a chunk has 4 GiB or more; HDF5 takes less: choose smaller chunks");
    out.extents[a] = extents[a];
    bytes *= extents[a];
  }
  if (filter_entry(dcpl).position != 0)
    throw Problem(Trouble::request,
                  "another filter stands before quern and would change the numbers it is to keep within their bound: "
                  "leave out shuffle, scale-offset and the like, and put checksums or other compressors after quern");
  return out;
}

std::optional<std::uint64_t> fill_value(hid_t dcpl, hid_t type) {
  if (fill_status(dcpl) != H5D_FILL_VALUE_USER_DEFINED) return std::nullopt;
  return element_bits(fill_element(dcpl, type), element_type(type).big_endian);
}

std::vector<std::uint8_t> padding_element(hid_t dcpl, hid_t type) {
  H5D_fill_time_t time = H5D_FILL_TIME_IFSET;
  if (H5Pget_fill_time(dcpl, &time) < 0) throw Problem(Trouble::resource, "HDF5 does not give the fill time");
  const bool filled = time != H5D_FILL_TIME_NEVER && fill_status(dcpl) != H5D_FILL_VALUE_UNDEFINED;
  return filled ? fill_element(dcpl, type) : std::vector<std::uint8_t>(H5Tget_size(type));
}

}  // namespace quern::hdf5
