// What writing and reading a whole dataset by chunks have in common: the dataset's checks, its grid of chunks, threads.
#pragma once

#include <hdf5.h>

#include <array>
#include <cstdint>
#include <vector>

#include "bindings/hdf5/settings.h"

namespace quern::hdf5 {

using Extents = std::array<std::uint64_t, QUERN_MAX_RANK>;

/// A dataset and the boxes its chunks cover. Edge chunks reach beyond the dataset.
struct ChunkedDataset {
  hid_t id = H5I_INVALID_HID;
  Request request;
  ChunkLayout chunk;
  Extents extents{};  ///< of the dataset
  Extents counts{};   ///< chunks along each axis
  std::uint64_t chunks = 0;
  std::vector<std::uint8_t> padding;  ///< one element in the machine's byte order

  /// Where chunk `index` begins.
  Extents origin(std::uint64_t index) const;
  /// The same as HDF5's calls take it.
  std::array<hsize_t, QUERN_MAX_RANK> offset(std::uint64_t index) const;
  /// Fills a whole chunk with the padding.
  void pad(void* chunk_elements) const;
};

/// Throws Problem(dataset) when `id` is no dataset of `dtype` elements with quern as its only filter.
ChunkedDataset open_chunked(hid_t id, quern_dtype dtype);

/// Copies chunk `index` out of the whole array, padded to the full chunk.
void cut_chunk(const ChunkedDataset& dataset, std::uint64_t index, const void* array, void* chunk);
/// Copies the part of chunk `index` that lies inside the dataset into the whole array.
void paste_chunk(const ChunkedDataset& dataset, std::uint64_t index, const void* chunk, void* array);

/// How many threads serve this many chunks: 0 asks for one a hardware thread.
std::uint32_t threads_for(std::uint32_t threads, std::uint64_t chunks);

/// The caller's description, which may be shorter than this library's, or NULL. Throws Problem(request) when it names a
/// runner or a progress function.
quern_context_desc read_desc(const quern_context_desc* given);
/// The same for one of several workers.
quern_context_desc desc_of_worker(const quern_context_desc& desc);

}  // namespace quern::hdf5
