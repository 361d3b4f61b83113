// Masks of a lane's segments, found and stored on the device: what the lane's memory holds for them.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

#include <quern/compress.h>

#include "libcompress/cuda/masked_encoding.h"
#include "libcompress/cuda/segment_tables.h"

namespace quern::cuda {

/// One wave of masks has room for all of a lane's segments.
class StagedMasks {
 public:
  StagedMasks() = default;
  StagedMasks(const SegmentLayout& layout, const TableShape& shape, std::uint64_t slot_bytes, std::uint32_t fills,
              Workspace& workspace)
      : workers_(layout.segment_box(0).extents, shape.segments),
        copy_bytes_((layout.max_segment_elems() * dtype_bytes(layout.dtype()) + kPartAlignment - 1) / kPartAlignment *
                    kPartAlignment),
        slot_bytes_(slot_bytes),
        fill_count_(fills),
        // Parts that come from the host, and those that go there, side by side.
        plan_(workspace.add<StreamPlan>(1)),
        fills_(workspace.add<std::uint64_t>(fills)),
        infos_(workspace.add<kernels::MaskSlotInfo>(shape.segments)),
        scans_(workspace.add<kernels::ChunkScan>(shape.slots)),
        count_(workspace.add<std::uint32_t>(1)),
        places_(workspace.add<std::uint32_t>(shape.segments)),
        segment_scans_(workspace.add<kernels::SegmentScan>(shape.segments)),
        jobs_(workspace.add<kernels::MaskJob>(shape.segments)),
        streams_(workspace.add<DeviceStream>(shape.segments)),
        boxes_(workspace.add<kernels::CudaChunk>(shape.chunk_places())),
        warps_(workspace.add<std::uint8_t>(workers_.workspace_bytes())),
        copies_(workspace.add<std::uint8_t>(shape.segments * copy_bytes_)),
        stored_(workspace.add<std::uint8_t>(shape.slots * slot_bytes)) {}

  /// What the host gives to the device and gets back: bytes of the head, which is filled before a lane's first kernel.
  std::uint64_t head_bytes() const { return scans_.offset - plan_.offset; }
  void fill_head(std::uint8_t* head, const StreamPlan& plan, std::span<const std::uint64_t> fills) const {
    std::memcpy(head, &plan, sizeof plan);
    if (!fills.empty()) std::memcpy(head + (fills_.offset - plan_.offset), fills.data(), fills.size_bytes());
  }
  /// After bring_back: what became of each masked segment, shape.segments of them.
  const kernels::MaskSlotInfo* infos(const std::uint8_t* head) const {
    return reinterpret_cast<const kernels::MaskSlotInfo*>(head + (infos_.offset - plan_.offset));
  }

  cudaError_t send_async(const std::uint8_t* head, std::uint8_t* device, cudaStream_t queue) const {
    return cudaMemcpyAsync(plan_.at(device), head, static_cast<std::size_t>(infos_.offset - plan_.offset),
                           cudaMemcpyHostToDevice, queue);
  }
  cudaError_t bring_back_async(std::uint8_t* head, std::uint8_t* device, cudaStream_t queue) const {
    return cudaMemcpyAsync(head + (infos_.offset - plan_.offset), infos_.at(device),
                           static_cast<std::size_t>(scans_.offset - infos_.offset), cudaMemcpyDeviceToHost, queue);
  }

  /// What the encoder of all chunks is to look for.
  kernels::ScanRequest scan(std::uint8_t* device) const { return {fills_.at(device), fill_count_, scans_.at(device)}; }
  /// After all chunks were coded: queues what finds the segments with special values, masks them, and codes their
  /// chunks again without gaps.
  cudaError_t encode_async(const StreamTables& tables, const ChunkKernels& kernels, DType dtype, std::uint8_t* slots,
                           std::uint32_t* sizes, std::uint8_t* device, cudaStream_t queue) const {
    const MaskList list{places_.at(device), count_.at(device), segment_scans_.at(device), scans_.at(device)};
    MaskWave wave;
    wave.slots = tables.segments;
    wave.chunks = tables.chunks;
    wave.jobs = jobs_.at(device);
    wave.infos = infos_.at(device);
    wave.streams = streams_.at(device);
    wave.boxes = boxes_.at(device);
    wave.copies = copies_.at(device);
    wave.copy_bytes = copy_bytes_;
    wave.stored = stored_.at(device);
    wave.slot_bytes = slot_bytes_;
    cudaError_t error = start_waves_async(tables, plan_.at(device), list, wave, queue);
    if (error == cudaSuccess)
      error = encode_wave_async(tables, plan_.at(device), list, wave, {workers_, warps_.at(device)}, kernels, dtype,
                                slots, sizes, queue);
    return error;
  }

 private:
  kernels::MaskWorkers workers_;
  std::uint64_t copy_bytes_ = 0;
  std::uint64_t slot_bytes_ = 0;
  std::uint32_t fill_count_ = 0;
  Part<StreamPlan> plan_;
  Part<std::uint64_t> fills_;
  Part<kernels::MaskSlotInfo> infos_;
  Part<kernels::ChunkScan> scans_;
  Part<std::uint32_t> count_;
  Part<std::uint32_t> places_;
  Part<kernels::SegmentScan> segment_scans_;
  Part<kernels::MaskJob> jobs_;
  Part<DeviceStream> streams_;
  Part<kernels::CudaChunk> boxes_;
  Part<std::uint8_t> warps_;
  Part<std::uint8_t> copies_;
  Part<std::uint8_t> stored_;
};

}  // namespace quern::cuda
