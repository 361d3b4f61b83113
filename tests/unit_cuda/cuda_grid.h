// Arrays through the lorenzo kernels on a device, with memory for each call of exactly the size it needs.
#pragma once

#include <vector>

#include "tests/simt/cuda_test.h"
#include "tests/unit_cuda/grid_cases.h"

namespace quern::kernels::testing {

using quern::testing::DeviceBuffer;
using quern::testing::Stream;

/// One array on the device, its chunks and what the kernels make of them.
class DeviceGrid {
 public:
  explicit DeviceGrid(const GridCase& c, const std::vector<std::uint64_t>& fills = {})
      : c_(c),
        fills_(fills),
        elements_(c.elements),
        rules_(std::vector<ChunkRules>{c.rules}),
        chunks_(boxes(c, elements_.data())),
        sizes_(chunks_.count()),
        damaged_(chunks_.count()),
        stored_(chunks_.count()),
        scans_(chunks_.count()),
        slots_(chunks_.count() * slot_bytes(c)),
        parts_(lorenzo_parts_bytes(c.rules.element, chunks_.count())),
        targets_(chunks_.count()),
        joined_(chunks_.count() * slot_bytes(c)),
        workspace_(lorenzo_decode_workspace_bytes(chunks())) {}

  DeviceBuffer<std::uint8_t>& elements() { return elements_; }
  std::size_t count() const { return chunks_.count(); }

  LorenzoChunks chunks() {
    LorenzoChunks chunks;
    chunks.element = c_.rules.element;
    chunks.shapes = 1u << static_cast<unsigned>(c_.rules.tile);
    chunks.tiles = chunk_tiles(c_.grid, c_.rules.tile);
    chunks.items = 1;
    chunks.chunks = static_cast<std::uint32_t>(chunks_.count());
    chunks.rules = reinterpret_cast<const std::uint8_t*>(rules_.data());
    chunks.rules_stride = sizeof(ChunkRules);
    chunks.at = chunks_.data();
    return chunks;
  }

  /// Slots, and what encoding in parts takes.
  LorenzoSlots slots() {
    LorenzoSlots slots{slots_.data(), slot_bytes(c_), {}};
    slots.parts = lorenzo_parts(parts_.data(), c_.rules.element, chunks_.count());
    slots.parts.targets = targets_.data();
    return slots;
  }
  cudaError_t queue_slots(cudaStream_t stream) {
    const auto count = static_cast<std::uint32_t>(fills_.count());
    return lorenzo_encode_async(chunks(), slots(), {fills_.data(), count, scans_.data()}, sizes_.data(), stream);
  }
  /// After it has run: joins the chunks in parts, each at an address of its own kind.
  void join() {
    const auto sizes = sizes_.get();
    std::vector<std::uint8_t*> targets = targets_.get();
    for (std::size_t i = 0; i < targets.size(); ++i) {
      EXPECT_EQ(targets[i], nullptr);
      if ((sizes[i] & kChunkInParts) != 0) targets[i] = joined_.data() + joined_at(i, sizes[i]);
    }
    targets_.put(targets);
    Stream stream;
    EXPECT_EQ(lorenzo_join_async(chunks(), slots(), stream), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  }
  std::size_t chunks_in_parts() {
    std::size_t n = 0;
    for (const std::uint32_t size : sizes_.get()) n += (size & kChunkInParts) != 0 ? 1 : 0;
    return n;
  }
  /// `bytes` holds what `in` names. What is raw, or named as lying outside, is not given to the decoder.
  void store(const EncodedGrid& in, DeviceBuffer<std::uint8_t>& bytes) {
    std::vector<StoredChunk> stored(count());
    for (std::size_t i = 0; i < count(); ++i)
      if (!in.raw[i])
        stored[i] = {bytes.data() + in.offsets[i], static_cast<std::uint32_t>(in.offsets[i + 1] - in.offsets[i])};
    stored_.put(stored);
  }
  cudaError_t queue_decode(cudaStream_t stream) {
    const LorenzoChunks all = chunks();
    return lorenzo_decode_async(all, stored_.data(), workspace_.data(), damaged_.data(), stream);
  }

  /// Results.
  std::vector<std::uint32_t> damaged() { return damaged_.get(); }
  std::vector<ChunkScan> scans() { return scans_.get(); }
  /// What the slots hold, one chunk after the other; those that take no fewer bytes than their values come back as
  /// values.
  EncodedGrid encoded() {
    join();
    auto sizes = sizes_.get();
    auto slots = slots_.get();
    const auto joined = joined_.get();
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if ((sizes[i] & kChunkInParts) == 0) continue;
      const auto from = joined.begin() + static_cast<std::ptrdiff_t>(joined_at(i, sizes[i]));
      sizes[i] &= ~kChunkInParts;
      std::copy_n(from, sizes[i], slots.begin() + static_cast<std::ptrdiff_t>(i * slot_bytes(c_)));
    }
    EncodedGrid out;
    for_each_chunk(c_, [&](std::size_t number, std::size_t offset, const ChunkBox& box) {
      const auto values = values_of(c_, offset, box);
      const auto slot = slots.begin() + static_cast<std::ptrdiff_t>(number * slot_bytes(c_));
      out.raw.push_back(sizes[number] >= values.size());
      if (out.raw.back()) {
        out.bytes.insert(out.bytes.end(), values.begin(), values.end());
      } else {
        out.bytes.insert(out.bytes.end(), slot, slot + sizes[number]);
      }
      out.offsets.push_back(out.bytes.size());
    });
    return out;
  }

  static std::size_t slot_bytes(const GridCase& c) {
    std::size_t bytes = element_bytes(c.rules.element);
    for (std::size_t a = 0; a < 3; ++a) bytes *= std::min(c.grid.chunk[a], c.grid.extents[a]);
    return (bytes + 3) / 4 * 4;
  }

  /// Where the chunks lie in an array at `elements`.
  static std::vector<CudaChunk> boxes(const GridCase& c, std::uint8_t* elements) {
    std::vector<CudaChunk> out;
    for_each_chunk(c, [&](std::size_t, std::size_t offset, const ChunkBox& box) {
      const std::size_t first = offset / element_bytes(c.rules.element);
      const std::uint64_t x = first % c.grid.extents[2];
      const std::uint64_t y = first / c.grid.extents[2] % c.grid.extents[1];
      out.push_back({elements + offset, box, static_cast<std::uint32_t>((y + x / kLanes) % 8),
                     static_cast<std::uint32_t>(out.size())});
    });
    return out;
  }

 private:
  /// So that the chunk fits and begins at any address.
  std::size_t joined_at(std::size_t i, std::uint32_t size) const {
    const std::size_t most = slot_bytes(c_) - (size & ~kChunkInParts);
    return i * slot_bytes(c_) + std::min(most, 5 * i % 16);
  }

  const GridCase& c_;
  DeviceBuffer<std::uint64_t> fills_;
  DeviceBuffer<std::uint8_t> elements_;
  DeviceBuffer<ChunkRules> rules_;
  DeviceBuffer<CudaChunk> chunks_;
  DeviceBuffer<std::uint32_t> sizes_;
  DeviceBuffer<std::uint32_t> damaged_;
  DeviceBuffer<StoredChunk> stored_;
  DeviceBuffer<ChunkScan> scans_;
  DeviceBuffer<std::uint8_t> slots_;
  DeviceBuffer<std::uint8_t> parts_;
  DeviceBuffer<std::uint8_t*> targets_;
  DeviceBuffer<std::uint8_t> joined_;
  DeviceBuffer<std::uint8_t> workspace_;
};

/// The array's chunks through slots.
inline EncodedGrid encode_to_slots(const GridCase& c) {
  DeviceGrid grid(c);
  Stream stream;
  EXPECT_EQ(grid.queue_slots(stream), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  return grid.encoded();
}

/// `elements` is what the array holds before and after.
inline void decode_on_device(const GridCase& c, const EncodedGrid& in, std::vector<std::uint8_t>& elements,
                             std::vector<std::uint32_t>& damaged) {
  DeviceGrid grid(c);
  Stream stream;
  DeviceBuffer<std::uint8_t> bytes(in.bytes);
  grid.elements().put(elements);
  grid.store(in, bytes);
  EXPECT_EQ(grid.queue_decode(stream), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  elements = grid.elements().get();
  damaged = grid.damaged();
}

}  // namespace quern::kernels::testing
