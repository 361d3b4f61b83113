// What masks of segments are made in, a wave of segments at a time: the parts of a workspace that host arrays and
// device arrays both need for that.
#pragma once

#include <cstdint>

#include "libcompress/cuda/stream/chunk_layout.cuh"
#include "libcompress/cuda/stream/masked_encoding.h"
#include "libcompress/cuda/stream/segment_tables.h"

namespace quern::cuda {

struct MaskWaveRoom {
  std::uint32_t segments = 0;  ///< of a wave
  std::uint32_t waves = 0;
  std::uint32_t chunks = 0;      ///< of a segment, at most
  std::uint64_t slot_bytes = 0;  ///< of a chunk
  std::uint64_t copy_bytes = 0;  ///< of a segment's values without gaps
  kernels::MaskWorkers workers;

  /// Infos come first and scans after them: what stands before may be copied together with the infos.
  Part<kernels::MaskSlotInfo> infos;
  Part<kernels::ChunkScan> chunk_scans;
  Part<std::uint32_t> counts;  ///< of the list, then of each wave
  Part<std::uint32_t> places;
  Part<kernels::SegmentScan> segment_scans;
  Part<kernels::MaskJob> jobs;
  Part<DeviceStream> streams;
  Part<kernels::CudaChunk> boxes;
  Part<std::uint32_t> again;
  Part<std::uint8_t> warps;
  Part<std::uint8_t> copies;
  Part<std::uint8_t> stored;

  MaskWaveRoom() = default;
  /// For streams of a shape; `segment_bytes` of values a segment has at most.
  MaskWaveRoom(const TableShape& shape, std::uint32_t wave_segments, const kernels::MaskWorkers& mask_workers,
               std::uint64_t segment_bytes, std::uint64_t chunk_slot_bytes, Workspace& workspace)
      : segments(wave_segments),
        chunks(shape.chunks),
        slot_bytes(chunk_slot_bytes),
        copy_bytes(aligned_part(segment_bytes)),
        workers(mask_workers) {
    const std::uint64_t all_slots = std::uint64_t{shape.streams} * shape.slots;
    infos = workspace.add<kernels::MaskSlotInfo>(segments);
    chunk_scans = workspace.add<kernels::ChunkScan>(all_slots);
    waves = segments == 0 ? 0 : static_cast<std::uint32_t>((shape.segment_places() + segments - 1) / segments);
    counts = workspace.add<std::uint32_t>(1 + waves);
    places = workspace.add<std::uint32_t>(shape.segment_places());
    segment_scans = workspace.add<kernels::SegmentScan>(shape.segment_places());
    jobs = workspace.add<kernels::MaskJob>(segments);
    streams = workspace.add<DeviceStream>(segments);
    boxes = workspace.add<kernels::CudaChunk>(std::uint64_t{segments} * shape.chunks);
    again = workspace.add<std::uint32_t>(std::uint64_t{segments} * shape.chunks);
    warps = workspace.add<std::uint8_t>(workers.workspace_bytes());
    copies = workspace.add<std::uint8_t>(segments * copy_bytes);
    stored = workspace.add<std::uint8_t>(all_slots * slot_bytes);
  }

  MaskList list(std::uint8_t* memory) const {
    return {places.at(memory), counts.at(memory), segment_scans.at(memory), chunk_scans.at(memory)};
  }
  /// What must be 0 before the list is made.
  ZeroedCounts zeroed(std::uint8_t* memory) const { return {counts.at(memory), 1 + waves}; }
  MaskWave wave(std::uint8_t* memory, std::uint32_t number) const {
    MaskWave wave;
    wave.number = number;
    wave.slots = segments;
    wave.chunks = chunks;
    wave.jobs = jobs.at(memory);
    wave.infos = infos.at(memory);
    wave.streams = streams.at(memory);
    wave.boxes = boxes.at(memory);
    wave.again = again.at(memory);
    wave.counts = counts.at(memory) + 1;
    wave.copies = copies.at(memory);
    wave.copy_bytes = copy_bytes;
    wave.stored = stored.at(memory);
    wave.slot_bytes = slot_bytes;
    return wave;
  }
  MaskingWarps masking_warps(std::uint8_t* memory) const { return {workers, warps.at(memory)}; }
};

}  // namespace quern::cuda
