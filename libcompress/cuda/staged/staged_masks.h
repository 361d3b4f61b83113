// Masks of a lane's segments, found and stored on the device: what the lane's memory holds for them.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

#include <quern/compress.h>

#include "libcompress/cuda/stream/mask_wave_room.h"

namespace quern::cuda {

/// One wave of masks has room for all of a lane's segments.
class StagedMasks {
 public:
  StagedMasks() = default;
  StagedMasks(const SegmentLayout& layout, const TableShape& shape, std::uint64_t slot_bytes, std::uint32_t fills,
              bool by_levels, Workspace& workspace)
      : fill_count_(fills),
        // Parts that come from the host, and those that go there, side by side.
        plan_(workspace.add<StreamPlan>(1)),
        fills_(workspace.add<std::uint64_t>(fills)),
        room_(shape, shape.segments, {layout.segment_box(0).extents, shape.segments, by_levels},
              layout.max_segment_elems() * dtype_bytes(layout.dtype()), slot_bytes, workspace) {}

  /// What the host gives to the device and gets back: bytes of the head, which is filled before a lane's first kernel.
  std::uint64_t head_bytes() const { return room_.chunk_scans.offset - plan_.offset; }
  void fill_head(std::uint8_t* head, const StreamPlan& plan, std::span<const std::uint64_t> fills) const {
    std::memcpy(head, &plan, sizeof plan);
    if (!fills.empty()) std::memcpy(head + (fills_.offset - plan_.offset), fills.data(), fills.size_bytes());
  }
  /// After bring_back: what became of each masked segment, shape.segments of them.
  const kernels::MaskSlotInfo* infos(const std::uint8_t* head) const {
    return reinterpret_cast<const kernels::MaskSlotInfo*>(head + (room_.infos.offset - plan_.offset));
  }

  cudaError_t send_async(const std::uint8_t* head, std::uint8_t* device, cudaStream_t queue) const {
    return cudaMemcpyAsync(plan_.at(device), head, static_cast<std::size_t>(room_.infos.offset - plan_.offset),
                           cudaMemcpyHostToDevice, queue);
  }
  cudaError_t bring_back_async(std::uint8_t* head, std::uint8_t* device, cudaStream_t queue) const {
    return cudaMemcpyAsync(head + (room_.infos.offset - plan_.offset), room_.infos.at(device),
                           static_cast<std::size_t>(room_.chunk_scans.offset - room_.infos.offset),
                           cudaMemcpyDeviceToHost, queue);
  }

  /// What must be 0 before chunks are encoded.
  ZeroedCounts zeroed(std::uint8_t* device) const { return room_.zeroed(device); }
  /// What the encoder of all chunks is to look for.
  kernels::ScanRequest scan(std::uint8_t* device) const {
    return {fills_.at(device), fill_count_, room_.chunk_scans.at(device)};
  }
  /// After all chunks were coded: queues what finds the segments with special values, masks them, and codes their
  /// chunks again without gaps.
  cudaError_t encode_async(const StreamTables& tables, const ChunkKernels& kernels, DType dtype,
                           const EncodedSlots& slots, std::uint8_t* device, cudaStream_t queue) const {
    const MaskList list = room_.list(device);
    const MaskWave wave = room_.wave(device, 0);
    cudaError_t error = list_masked_async(tables, plan_.at(device), list, wave, queue);
    if (error == cudaSuccess)
      error = encode_wave_async(tables, plan_.at(device), list, wave, room_.masking_warps(device), kernels, dtype, 0,
                                slots, queue);
    return error;
  }

 private:
  std::uint32_t fill_count_ = 0;
  Part<StreamPlan> plan_;
  Part<std::uint64_t> fills_;
  MaskWaveRoom room_;
};

}  // namespace quern::cuda
