// Checks of a dataset, and boxes in and out of the whole array.
#include "bindings/hdf5/direct_setup.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <thread>

#include "bindings/hdf5/chunk_stream.h"
#include "bindings/hdf5/dataset.h"
#include "bindings/hdf5/element_type.h"
#include "bindings/hdf5/handle.h"

namespace quern::hdf5 {
namespace {

void read_extents(hid_t dataset, ChunkedDataset& out) {
  const Handle space(H5Dget_space(dataset), H5Sclose, "shape of the dataset");
  std::array<hsize_t, H5S_MAX_RANK> extents{};
  const int rank = H5Sget_simple_extent_dims(space.get(), extents.data(), nullptr);
  if (rank != static_cast<int>(out.chunk.rank))
    throw Problem(Trouble::dataset,
                  "the dataset has " + std::to_string(rank) + " axes and its chunks " + std::to_string(out.chunk.rank));
  out.chunks = 1;
  for (std::uint32_t a = 0; a < out.chunk.rank; ++a) {
    out.extents[a] = extents[a];
    out.counts[a] = extents[a] / out.chunk.extents[a] + (extents[a] % out.chunk.extents[a] != 0 ? 1 : 0);
    out.chunks *= out.counts[a];
  }
}

/// Calls copy(position in the chunk, position in the array, bytes) for every row of the chunk that is in the dataset.
template <class Copy>
void for_rows(const ChunkedDataset& d, std::uint64_t index, const Copy& copy) {
  const std::uint32_t last = d.chunk.rank - 1;
  const std::uint64_t width = dtype_bytes(static_cast<std::uint32_t>(d.chunk.dtype));
  const Extents origin = d.origin(index);
  Extents inside{};
  for (std::uint32_t a = 0; a <= last; ++a) inside[a] = std::min(d.chunk.extents[a], d.extents[a] - origin[a]);
  Extents row{};
  while (true) {
    std::uint64_t in_chunk = 0;
    std::uint64_t in_array = 0;
    for (std::uint32_t a = 0; a <= last; ++a) {
      in_chunk = in_chunk * d.chunk.extents[a] + row[a];
      in_array = in_array * d.extents[a] + origin[a] + row[a];
    }
    copy(in_chunk * width, in_array * width, static_cast<std::size_t>(inside[last] * width));
    std::uint32_t axis = last;
    while (axis > 0 && ++row[axis - 1] == inside[axis - 1]) row[--axis] = 0;
    if (axis == 0) return;
  }
}

bool is_partial(const ChunkedDataset& d, std::uint64_t index) {
  const Extents origin = d.origin(index);
  for (std::uint32_t a = 0; a < d.chunk.rank; ++a)
    if (origin[a] + d.chunk.extents[a] > d.extents[a]) return true;
  return false;
}

}  // namespace

Extents ChunkedDataset::origin(std::uint64_t index) const {
  Extents out{};
  for (std::uint32_t a = chunk.rank; a-- > 0; index /= counts[a]) out[a] = index % counts[a] * chunk.extents[a];
  return out;
}

std::array<hsize_t, QUERN_MAX_RANK> ChunkedDataset::offset(std::uint64_t index) const {
  std::array<hsize_t, QUERN_MAX_RANK> out{};
  const Extents begin = origin(index);
  std::copy(begin.begin(), begin.end(), out.begin());
  return out;
}

void ChunkedDataset::pad(void* chunk_elements) const {
  auto* const to = static_cast<std::uint8_t*>(chunk_elements);
  for (std::uint64_t at = 0; at < chunk.bytes(); at += padding.size())
    std::memcpy(to + at, padding.data(), padding.size());
}

ChunkedDataset open_chunked(hid_t id, quern_dtype dtype) {
  const Handle dcpl(H5Dget_create_plist(id), H5Pclose, "creation property list; the first argument must be a dataset");
  const Handle type(H5Dget_type(id), H5Tclose, "type of the dataset");
  ChunkedDataset out;
  out.id = id;
  const ChunkLayout described = describe_chunks(dcpl.get(), type.get());
  const FilterEntry entry = filter_entry(dcpl.get());
  if (entry.count != 1)
    throw Problem(Trouble::dataset, "the dataset has other filters behind quern; write and read it through HDF5");
  unsigned options = 0;
  if (H5Pget_chunk_opts(dcpl.get(), &options) < 0 || (options & H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS) != 0)
    throw Problem(
        Trouble::dataset,
        "the dataset leaves partial edge chunks unfiltered (H5Pset_chunk_opts); write and read it through HDF5");
  if (described.dtype != dtype)
    throw Problem(Trouble::dataset, std::string("the values are given as ") +
                                        dtype_name(static_cast<std::uint32_t>(dtype)) + ", but the dataset holds " +
                                        dtype_name(static_cast<std::uint32_t>(described.dtype)) +
                                        "; nothing is converted here");
  out.request = parse_request(entry.words.data(), entry.words.size());
  out.chunk = parse_layout(entry.words.data(), entry.words.size());  // as the filter will see it
  check_agreement(described, out.chunk);
  out.padding = padding_element(dcpl.get(), type.get());
  if (needs_swap(out.chunk.big_endian)) std::reverse(out.padding.begin(), out.padding.end());
  read_extents(id, out);
  return out;
}

void cut_chunk(const ChunkedDataset& dataset, std::uint64_t index, const void* array, void* chunk) {
  auto* to = static_cast<std::uint8_t*>(chunk);
  if (is_partial(dataset, index)) dataset.pad(chunk);
  const auto* from = static_cast<const std::uint8_t*>(array);
  for_rows(dataset, index, [&](std::uint64_t in_chunk, std::uint64_t in_array, std::size_t bytes) {
    std::memcpy(to + in_chunk, from + in_array, bytes);
  });
}

void paste_chunk(const ChunkedDataset& dataset, std::uint64_t index, const void* chunk, void* array) {
  const auto* from = static_cast<const std::uint8_t*>(chunk);
  auto* to = static_cast<std::uint8_t*>(array);
  for_rows(dataset, index, [&](std::uint64_t in_chunk, std::uint64_t in_array, std::size_t bytes) {
    std::memcpy(to + in_array, from + in_chunk, bytes);
  });
}

quern_context_desc read_desc(const quern_context_desc* given) {
  quern_context_desc desc = QUERN_CONTEXT_DESC_INIT;
  if (given == nullptr) return desc;
  std::memcpy(&desc, given, std::min<std::size_t>(given->struct_size, sizeof desc));
  desc.struct_size = sizeof desc;
  if (desc.runner.run != nullptr || desc.progress != nullptr)
    throw Problem(Trouble::request, "a runner or a progress function was given; the workers are threads of their own");
  return desc;
}

quern_context_desc desc_of_worker(const quern_context_desc& desc) {
  quern_context_desc worker = desc;
  worker.threads = 1;
  return worker;
}

std::uint32_t threads_for(std::uint32_t threads, std::uint64_t chunks) {
  constexpr std::uint64_t kMost = 1024;
  const std::uint64_t wanted = threads != 0 ? threads : std::max(1U, std::thread::hardware_concurrency());
  return static_cast<std::uint32_t>(std::min({wanted, kMost, std::max<std::uint64_t>(chunks, 1)}));
}

}  // namespace quern::hdf5
