// Reading a whole dataset: HDF5 gives the chunks' bytes in order, they are decoded side by side.
#include <quern/hdf5.h>

#include <cstring>
#include <string>

#include "bindings/hdf5/chunk_stream.h"
#include "bindings/hdf5/direct_setup.h"
#include "bindings/hdf5/element_type.h"
#include "bindings/hdf5/error_stack.h"
#include "bindings/hdf5/work_window.h"

namespace quern::hdf5 {
namespace {

using Bytes = std::vector<std::uint8_t>;

struct StoredChunk {
  Bytes bytes;  ///< empty: never written
  bool raw = false;
};

struct Reader {
  Context context;
  Bytes chunk;
};

std::string chunk_name(const ChunkedDataset& dataset, std::uint64_t item) {
  std::string out = "chunk at (";
  const Extents origin = dataset.origin(item);
  for (std::uint32_t a = 0; a < dataset.chunk.rank; ++a) {
    out += a == 0 ? "" : ", ";
    out += std::to_string(origin[a]);
  }
  out += ")";
  return out;
}

void fetch(const ChunkedDataset& dataset, std::uint64_t item, std::uint64_t most, StoredChunk& out) {
  const auto offset = dataset.offset(item);
  hsize_t size = 0;
  if (H5Dget_chunk_storage_size(dataset.id, offset.data(), &size) < 0) size = 0;
  if (size > most)
    throw Problem(Trouble::chunk, "the " + chunk_name(dataset, item) + " takes " + std::to_string(size) +
                                      " bytes, more than any stream of it");
  out.bytes.resize(size);
  if (size == 0) return;
  std::uint32_t mask = 0;
  if (H5Dread_chunk(dataset.id, H5P_DEFAULT, offset.data(), &mask, out.bytes.data()) < 0)
    throw Problem(Trouble::resource, "HDF5 cannot read the " + chunk_name(dataset, item));
  out.raw = (mask & 1U) != 0;
}

void decode_stored(const ChunkedDataset& dataset, const StoredChunk& stored, Reader& reader) {
  const ChunkLayout& layout = dataset.chunk;
  if (stored.bytes.empty()) {
    dataset.pad(reader.chunk.data());
  } else if (stored.raw) {
    if (stored.bytes.size() != reader.chunk.size())
      throw Problem(Trouble::chunk, "it is marked as stored raw, but has " + std::to_string(stored.bytes.size()) +
                                        " bytes and not " + std::to_string(reader.chunk.size()));
    std::memcpy(reader.chunk.data(), stored.bytes.data(), stored.bytes.size());
    if (needs_swap(layout.big_endian)) swap_elements(reader.chunk.data(), layout.elems(), dataset.padding.size());
  } else {
    const ChunkLayout found = inspect_chunk(stored.bytes.data(), stored.bytes.size());
    check_agreement(found, layout);
    decode_chunk(*reader.context, stored.bytes.data(), stored.bytes.size(), found, reader.chunk.data());
  }
}

void read_all(const ChunkedDataset& dataset, void* values, const quern_context_desc& desc) {
  const std::uint32_t width = threads_for(desc.threads, dataset.chunks);
  const quern_context_desc worker_desc = desc_of_worker(desc);
  const std::uint64_t most =
      ChunkEncoder(dataset.request, dataset.chunk, QUERN_CONTEXT_DESC_INIT, ChunkEncoder::Use::once).max_stream_bytes();
  std::vector<Reader> readers;
  for (std::uint32_t i = 0; i < width; ++i)
    readers.push_back({make_context(worker_desc, decoder_memory(dataset.chunk)), Bytes(dataset.chunk.bytes())});
  std::vector<StoredChunk> stored(WorkWindow::slots(width));

  WindowSteps steps;
  steps.begin = [&](std::uint64_t item, std::size_t slot) { fetch(dataset, item, most, stored[slot]); };
  steps.work = [&](std::uint64_t item, std::size_t slot, std::size_t worker) {
    try {
      decode_stored(dataset, stored[slot], readers[worker]);
    } catch (const Problem& problem) {
      throw Problem(problem.trouble(), "the " + chunk_name(dataset, item) + ": " + problem.what());
    }
    paste_chunk(dataset, item, readers[worker].chunk.data(), values);
  };
  steps.end = [](std::uint64_t, std::size_t) {};
  WorkWindow(dataset.chunks, width, steps).run();
}

}  // namespace
}  // namespace quern::hdf5

herr_t quern_hdf5_read_with(hid_t dataset, quern_dtype dtype, void* values, const quern_context_desc* desc) {
  using namespace quern::hdf5;
  return guarded<herr_t>("quern_hdf5_read", -1, [&] {
    const ChunkedDataset open = open_chunked(dataset, dtype);
    if (open.chunks == 0) return 0;
    if (values == nullptr) throw Problem(Trouble::request, "the place for the values is NULL");
    read_all(open, values, read_desc(desc));
    return 0;
  });
}

herr_t quern_hdf5_read(hid_t dataset, quern_dtype dtype, void* values, uint32_t threads) {
  quern_context_desc desc = QUERN_CONTEXT_DESC_INIT;
  desc.threads = threads;
  return quern_hdf5_read_with(dataset, dtype, values, &desc);
}
