// What calls on arrays in device memory work in: everything a workspace is cut into.
#pragma once

#include <cstdint>
#include <span>

#include <quern/device_arrays.h>

#include "kernels/common/range_keys.h"
#include "kernels/mask/cuda/entry_points.h"
#include "libcompress/cuda/stream/mask_wave_room.h"
#include "libcompress/cuda/stream/second_reading.cuh"
#include "libcompress/cuda/stream/segment_tables.h"
#include "libcompress/device/chunk_kernels.h"

namespace quern::cuda {

/// The largest of some layouts, one of which a stream will have.
struct LayoutLimits {
  std::uint64_t segments = 0;
  std::uint64_t chunks_per_segment = 0;
  std::uint64_t chunks = 0;
  std::uint64_t coded_chunks = 0;   ///< of the layouts that a codec writes
  std::uint64_t chunk_bytes = 0;    ///< of the values of a chunk
  std::uint64_t segment_bytes = 0;  ///< and of a segment
  /// Bytes that a warp needs to make a segment's mask, and to restore a segment by a mask of any form.
  std::uint64_t mask_bytes = 0;
  bool mask_levels = false;  ///< masks are made by levels
  std::uint64_t restore_bytes = 0;
  bool served = true;  ///< kernels count what a segment has in 31 bits

  LayoutLimits() = default;
  /// The first `coded` layouts are those that a codec writes.
  LayoutLimits(std::span<const SegmentLayout> layouts, std::size_t coded, bool by_levels = false);
  TableShape shape(std::uint32_t streams) const;
  /// Whether launches can have so many streams.
  bool fits(std::uint32_t streams) const;
};

/// Common to both ways; the outcomes come first.
struct ArrayRoom {
  Workspace workspace;
  Part<DeviceOutcome> outcomes;
  SegmentTables tables;
  Part<StreamPlan> plans;

  ArrayRoom(const LayoutLimits& limits, std::uint32_t streams);
};

struct CompressRoom : ArrayRoom {
  /// Of masks: how many segments make a wave.
  static constexpr std::uint64_t kWaveSegments = 128;

  std::uint64_t slot_bytes;

  Part<kernels::RangeKeys> ranges;
  Part<std::uint8_t> planning;
  Part<std::uint32_t> sizes;
  std::uint64_t parts_bytes = 0;
  Part<std::uint8_t> parts;  ///< none if no chunk is encoded in parts
  Part<std::uint8_t*> targets;
  MaskWaveRoom masks;
  Part<std::uint8_t> slots;

  CompressRoom(const LayoutLimits& limits, std::uint32_t streams, std::uint64_t planning_bytes,
               const ChunkKernels& kernels, DType dtype, BoundKind bound);

  EncodedSlots encoded(std::uint8_t* memory) const {
    EncodedSlots out{slots.at(memory), slot_bytes, sizes.at(memory)};
    if (parts_bytes != 0) {
      out.parts = parts.at(memory);
      out.targets = targets.at(memory);
    }
    return out;
  }
};

struct DecompressRoom : ArrayRoom {
  static constexpr std::uint64_t kRestoringWarps = 256;

  kernels::MaskWorkers workers;
  Part<kernels::StoredChunk> stored;
  Part<std::uint32_t> damaged;
  Part<kernels::RestoreJob> jobs;
  Part<kernels::MaskDamage> mask_damage;
  Part<std::uint8_t> warps;
  Part<std::uint8_t> decoding;

  DecompressRoom(const LayoutLimits& limits, std::uint32_t streams, const ChunkKernels& kernels, DType dtype);
};

/// Of a second reading that looks for hardware faults, with place for the values it decodes.
struct FaultRoom : DecompressRoom {
  std::uint64_t stride;
  Part<std::uint8_t> decoded;
  Part<void*> arrays;
  Part<std::uint64_t> sizes;
  Part<std::uint32_t> faults;

  FaultRoom(const LayoutLimits& limits, std::uint32_t streams, const ChunkKernels& kernels, DType dtype,
            std::uint64_t array_bytes);

  SecondReading reading(std::uint8_t* memory, bool written) const {
    return {decoded.at(memory), stride, arrays.at(memory), sizes.at(memory), faults.at(memory), written};
  }
};

}  // namespace quern::cuda
