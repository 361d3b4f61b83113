// Chunks as they are stored, filters or no.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "cli/h5/boxes.h"

namespace quern::cli {

struct H5StoredChunk {
  std::uint32_t skipped_filters = 0;  ///< HDF5's mask
  std::vector<unsigned char> bytes;
};

/// Calls use(origin, bytes) for every chunk that is stored, until it returns false. Throws CliError (io).
void h5_for_chunks(hid_t dataset, const std::function<bool(const Extents& origin, std::uint64_t bytes)>& use);

/// Bytes of the chunk that begins at `origin`; 0 when it was never written.
std::uint64_t h5_chunk_bytes(hid_t dataset, const Extents& origin);
/// Reads a stored chunk of `bytes` bytes.
void h5_read_chunk(hid_t dataset, const Extents& origin, std::uint64_t bytes, H5StoredChunk& out);
void h5_write_chunk(hid_t dataset, const Extents& origin, const H5StoredChunk& chunk);

/// Copies every stored chunk to a dataset of the same shape, chunks and filters.
void h5_move_chunks(hid_t from, hid_t to);

/// Registers a filter that refuses to work for each one of the list that is not available, so that datasets with it can
/// be made and filled with stored chunks.
void h5_stand_in_for_filters(hid_t dcpl);

}  // namespace quern::cli
