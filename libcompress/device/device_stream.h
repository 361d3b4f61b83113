// What the kernels of a stream know of it, in device memory: one DeviceStream for each stream that a queue of kernels
// writes or reads, and one StreamPlan before its first byte. Plain data; host code prepares it, kernels fill it in.
#pragma once

#include <cstddef>
#include <cstdint>

#include <quern/bound.h>
#include <quern/dtype.h>
#include <quern/status.h>

#include "kernels/mask/warp/scan.h"
#include "libcompress/format/grid/layout.h"

namespace quern::cuda {

/// Bytes in which a codec keeps what it knows of a stream.
inline constexpr std::size_t kCodecStateBytes = 256;

/// One stream, or a run of its segments.
struct DeviceStream {
  /// Element 0 of the window: the part of the array that is in device memory. Values are read when encoding and written
  /// when decoding.
  std::uint8_t* window = nullptr;
  std::uint64_t window_begin = 0;  ///< flat index of the window's first element
  std::uint8_t* bytes = nullptr;   ///< where the segments stand
  std::uint64_t capacity = 0;      ///< of `bytes`

  SegmentLayout layout;
  std::uint64_t first_segment = 0;
  std::uint64_t segments = 0;  ///< from there on
  std::uint64_t header_checksum = 0;
  std::uint64_t first_offset = 0;  ///< of the first segment, in `bytes`

  std::uint64_t end = 0;          ///< found: where the last segment ends
  std::uint64_t index_bytes = 0;  ///< found: bytes of the segments' sizes in the trailer
  StatusCode status = StatusCode::ok;
  bool stored_only = false;   ///< no chunk may be coded
  bool mask_levels = false;   ///< masks may be coded by levels
  std::uint32_t arrived = 0;  ///< of a kernel that counts who is done (is_last_arrival); 0 between kernels

  alignas(16) std::uint8_t codec_state[kCodecStateBytes] = {};
};

/// Bytes of a codec's parameters in the header, at most.
inline constexpr std::size_t kMostParamsBytes = 32;

/// What is decided of a stream before its first byte.
struct StreamPlan {
  EnforcedBound enforced;
  double range_min = 0.0;
  double range_max = 0.0;
  bool has_range = false;
  kernels::LaneMaskRules mask;
  std::uint16_t codec_id = 0;
  std::uint16_t codec_version = 0;
  std::uint32_t params_bytes = 0;
  std::uint8_t params[kMostParamsBytes] = {};
};

}  // namespace quern::cuda
