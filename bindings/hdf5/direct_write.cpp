// Writing a whole dataset: chunks are compressed side by side and handed to HDF5 in order.
#include <quern/hdf5.h>

#include <string>

#include "bindings/hdf5/chunk_stream.h"
#include "bindings/hdf5/direct_setup.h"
#include "bindings/hdf5/error_stack.h"
#include "bindings/hdf5/work_window.h"

namespace quern::hdf5 {
namespace {

using Bytes = std::vector<std::uint8_t>;

struct Writer {
  ChunkEncoder encoder;
  Bytes chunk;
};

void write_all(const ChunkedDataset& dataset, const void* values, const quern_context_desc& desc) {
  const std::uint32_t width = threads_for(desc.threads, dataset.chunks);
  const quern_context_desc worker_desc = desc_of_worker(desc);
  std::vector<Writer> writers;
  for (std::uint32_t i = 0; i < width; ++i)
    writers.push_back({ChunkEncoder(dataset.request, dataset.chunk, worker_desc, ChunkEncoder::Use::once),
                       Bytes(dataset.chunk.bytes())});
  writers.front().encoder.check();
  const std::uint64_t room = writers.front().encoder.max_stream_bytes();
  std::vector<Bytes> streams(WorkWindow::slots(width), Bytes(room));
  std::vector<std::uint64_t> sizes(streams.size());

  WindowSteps steps;
  steps.begin = [](std::uint64_t, std::size_t) {};
  steps.work = [&](std::uint64_t item, std::size_t slot, std::size_t worker) {
    Writer& writer = writers[worker];
    cut_chunk(dataset, item, values, writer.chunk.data());
    sizes[slot] = writer.encoder.encode(writer.chunk.data(), streams[slot].data(), room);
  };
  steps.end = [&](std::uint64_t item, std::size_t slot) {
    const auto offset = dataset.offset(item);
    if (H5Dwrite_chunk(dataset.id, H5P_DEFAULT, 0, offset.data(), sizes[slot], streams[slot].data()) < 0)
      throw Problem(Trouble::resource, "HDF5 does not take chunk " + std::to_string(item) + " of " +
                                           std::to_string(dataset.chunks) +
                                           "; the file may be read-only or the disk full");
  };
  WorkWindow(dataset.chunks, width, steps).run();
}

}  // namespace
}  // namespace quern::hdf5

herr_t quern_hdf5_write_with(hid_t dataset, quern_dtype dtype, const void* values, const quern_context_desc* desc) {
  using namespace quern::hdf5;
  return guarded<herr_t>("quern_hdf5_write", -1, [&] {
    const ChunkedDataset open = open_chunked(dataset, dtype);
    if (open.chunks == 0) return 0;
    if (values == nullptr) throw Problem(Trouble::request, "the values are NULL");
    write_all(open, values, read_desc(desc));
    return 0;
  });
}

herr_t quern_hdf5_write(hid_t dataset, quern_dtype dtype, const void* values, uint32_t threads) {
  quern_context_desc desc = QUERN_CONTEXT_DESC_INIT;
  desc.threads = threads;
  return quern_hdf5_write_with(dataset, dtype, values, &desc);
}
