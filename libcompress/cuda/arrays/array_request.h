// What the options ask for of arrays in device memory, in the form that kernels take.
#pragma once

#include <algorithm>
#include <cstring>
#include <span>

#include <quern/compress.h>

#include "kernels/common/cuda/fill_values.h"
#include "libcompress/cuda/cuda_memory.h"
#include "libcompress/cuda/stream/masked_encoding.h"
#include "libcompress/cuda/stream/stream_start.cuh"
#include "libcompress/device/workspace.h"
#include "libcompress/format/frame/metadata.h"
#include "libcompress/format/grid/header.h"

namespace quern::cuda {

/// Holds the device memory of what is too long for a kernel's parameters; the device is the current one when it is
/// opened and when it goes.
class ArrayRequest {
 public:
  /// `masks_by_levels`: the form of masks.
  Status open(DType dtype, const CompressOptions& options, bool masks_by_levels,
              std::span<const std::uint8_t> planner_constants) {
    request_.bound = options.bound;
    if (options.bound.kind == BoundKind::lossless) request_.bound.value = 0;
    request_.has_range = options.range.has_value();
    if (options.range) request_.range = *options.range;
    request_.writer = this_writer();
    kernels::copy_fills(options.fill_bits, fills_);
    request_.mask = mask_rules(dtype, options, {}, masks_by_levels);

    Vector<std::uint8_t> fill_bytes(options.fill_bits.size() * dtype_bytes(dtype));
    ByteWriter fills(fill_bytes);
    for (const std::uint64_t bits : options.fill_bits) fills.unsigned_of(bits, dtype_bytes(dtype));
    Vector<std::uint8_t> metadata_room;
    const MetadataView metadata = pack_metadata(options.metadata, metadata_room);

    Workspace parts;
    planner_ = parts.add<std::uint8_t>(planner_constants.size());
    fill_bits_ = parts.add<std::uint64_t>(options.fill_bits.size());
    const auto fill_part = parts.add<std::uint8_t>(fill_bytes.size());
    const auto metadata_part = parts.add<std::uint8_t>(metadata.stored.size());
    QUERN_RETURN_IF_ERROR(memory_.reserve(std::max<std::uint64_t>(parts.bytes(), 1)));
    Vector<std::uint8_t> host(static_cast<std::size_t>(parts.bytes()));
    const auto put = [&](std::uint8_t* to, const void* from, std::size_t bytes) {
      if (bytes != 0) std::memcpy(to, from, bytes);
    };
    put(planner_.at(host.data()), planner_constants.data(), planner_constants.size());
    put(host.data() + fill_bits_.offset, options.fill_bits.data(), options.fill_bits.size() * sizeof(std::uint64_t));
    put(fill_part.at(host.data()), fill_bytes.data(), fill_bytes.size());
    put(metadata_part.at(host.data()), metadata.stored.data(), metadata.stored.size());
    request_.fills = fill_part.at(memory_.data());
    request_.fill_bytes = static_cast<std::uint32_t>(fill_bytes.size());
    request_.metadata = metadata_part.at(memory_.data());
    request_.metadata_stored = static_cast<std::uint32_t>(metadata.stored.size());
    request_.metadata_bytes = metadata.bytes;
    request_.metadata_is_packed = metadata.is_packed;
    return to_status(cudaMemcpy(memory_.data(), host.data(), host.size(), cudaMemcpyHostToDevice));
  }

  const StreamRequest& stream() const { return request_; }
  const kernels::FillValues& fills() const { return fills_; }
  const std::uint8_t* planner_constants() const { return planner_.at(memory_.data()); }
  kernels::ScanRequest scan(kernels::ChunkScan* counts) const {
    return {fill_bits_.at(memory_.data()), static_cast<std::uint32_t>(fills_.count), counts};
  }
  bool needs_range() const { return request_.bound.kind == BoundKind::rel && !request_.has_range; }

 private:
  StreamRequest request_;
  kernels::FillValues fills_;
  DeviceMemory memory_;
  Part<std::uint8_t> planner_;
  Part<std::uint64_t> fill_bits_;
};

}  // namespace quern::cuda
