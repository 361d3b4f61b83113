// Quality and bound of arrays in a device's memory, found there: what <quern/metrics.h> says of arrays in host memory.
#pragma once

#include <cstdint>
#include <span>

#include <quern/dtype.h>
#include <quern/metrics.h>
#include <quern/shape.h>
#include <quern/status.h>

namespace quern {

/// A decoded array and what it was made of: type and shape of both, in C order in the memory of device `ordinal`,
/// aligned as their elements.
struct DevicePair {
  int ordinal = 0;
  DType dtype = DType::f32;
  Shape shape;
  const void* original = nullptr;
  const void* reconstructed = nullptr;
};

/// As check_bound() and measure_quality(), without autocorrelation. No element leaves the device. Both begin after what
/// the device's default stream waits for, and wait until they are done. O(elements); device memory for the time of the
/// call: a few bytes for each 64 KiB of an array. `unsupported`: more fill values than kernels take (255).
/// BoundCheck::first has the lowest index alone. Extremes and counts are the host's; sums are formed in another order,
/// the same on every device: see kernels/metrics/cuda/quality_cuda.h for how near they come.
Result<BoundCheck> check_bound_on_device(const DevicePair& pair, const EnforcedBound& bound,
                                         const ValidityRule& validity);
Result<Quality> measure_quality_on_device(const DevicePair& pair, const ValidityRule& validity, bool with_ssim);

/// Decodes a stream in host memory beside the array in device memory that it was made of, and checks the bound that the
/// stream states. Device memory: what decompress_device_array() takes, and one more array. Fails as it does and as
/// check_bound_on_device(); no verdict is a failure.
Result<BoundCheck> check_device_stream(int ordinal, const void* original, DType dtype, const Shape& shape,
                                       std::span<const std::uint8_t> stream);

}  // namespace quern
