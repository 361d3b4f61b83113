// The kernels of bound and quality, queued for calls that wait, with memory for them.
#include <algorithm>
#include <array>

#include <quern/device_arrays.h>
#include <quern/device_metrics.h>

#include "kernels/metrics/cuda/bound_check_cuda.h"
#include "kernels/metrics/cuda/quality_cuda.h"
#include "libcompress/core/element_of.h"
#include "libcompress/cuda/cuda_memory.h"
#include "libcompress/metrics/arguments.h"

namespace quern {
namespace {

using cuda::CurrentDevice;
using cuda::DeviceMemory;
using cuda::to_status;

static_assert(kMaxRank == std::tuple_size_v<decltype(kernels::CudaShape::extents)>);

Status check_pair(const DevicePair& pair) {
  return metrics::check_comparable({pair.original, pair.dtype, pair.shape},
                                   {pair.reconstructed, pair.dtype, pair.shape});
}

Status take_fills(const ValidityRule& validity, kernels::FillValues& fills) {
  if (kernels::copy_fills(validity.fill_bits, fills)) return {};
  return Status(StatusCode::unsupported, "devices look for {0} fill values at most; {1} were given",
                std::int64_t{kernels::FillValues::kMost}, static_cast<std::int64_t>(validity.fill_bits.size()));
}

/// What `queue(result, workspace)` forms on a device, queued on its default stream; waits for it.
template <class T, class Queue>
Result<T> found_on_device(int ordinal, std::uint64_t workspace_bytes, const Queue& queue) {
  constexpr std::uint64_t kResultBytes = (sizeof(T) + 255) / 256 * 256;  // workspaces are aligned to it
  QUERN_RETURN_IF_ERROR(cuda::check_ordinal(ordinal));
  const CurrentDevice current(ordinal);
  QUERN_RETURN_IF_ERROR(current.status());
  DeviceMemory memory;
  QUERN_RETURN_IF_ERROR(memory.reserve(kResultBytes + workspace_bytes));
  QUERN_RETURN_IF_ERROR(to_status(queue(reinterpret_cast<T*>(memory.data()), memory.data() + kResultBytes)));
  T found;
  QUERN_RETURN_IF_ERROR(to_status(cudaMemcpy(&found, memory.data(), sizeof(T), cudaMemcpyDeviceToHost)));
  return found;
}

kernels::CudaPair quality_pair(const DevicePair& pair, bool with_ssim) {
  kernels::CudaPair out;
  out.element = element_of(pair.dtype);
  std::copy(pair.shape.extents().begin(), pair.shape.extents().end(), out.shape.extents.begin());
  out.shape.rank = static_cast<unsigned>(pair.shape.rank());
  out.original = pair.original;
  out.reconstructed = pair.reconstructed;
  out.with_ssim = with_ssim;
  return out;
}

Quality make_quality(const kernels::CudaQuality& found) {
  Quality quality;
  quality.elems = found.elems;
  quality.valid = found.valid;
  quality.specials_lost = found.specials_lost;
  quality.min = found.min;
  quality.max = found.max;
  quality.max_error = found.max_error;
  quality.max_error_index = found.max_error_index;
  quality.max_pointwise_rel = found.max_pointwise_rel;
  quality.mse = found.mse;
  if (found.has_psnr != 0) quality.psnr_db = found.psnr_db;
  if (found.has_nrmse != 0) quality.nrmse = found.nrmse;
  if (found.has_ssim != 0) quality.ssim = found.ssim;
  quality.max_ulp = found.max_ulp;
  return quality;
}

BoundCheck make_check(const kernels::CudaBoundCheck& found) {
  BoundCheck check;
  check.violations = found.violations;
  check.specials_lost = found.specials_lost;
  if (found.violations != 0)
    check.first.push_back(
        {found.first_index, found.first.original, found.first.reconstructed, found.first.error, found.first.ulps});
  return check;
}

}  // namespace

Result<BoundCheck> check_bound_on_device(const DevicePair& pair, const EnforcedBound& bound,
                                         const ValidityRule& validity) {
  QUERN_RETURN_IF_ERROR(check_pair(pair));
  QUERN_RETURN_IF_ERROR(metrics::check_enforced(bound, pair.dtype));
  kernels::FillValues fills;
  QUERN_RETURN_IF_ERROR(take_fills(validity, fills));
  QUERN_ASSIGN_OR_RETURN(
      const auto found,
      found_on_device<kernels::CudaBoundCheck>(pair.ordinal, 0, [&](kernels::CudaBoundCheck* out, void*) {
        return kernels::check_bound_async(element_of(pair.dtype), pair.original, pair.reconstructed, pair.shape.elems(),
                                          metrics::bound_to_verify(bound), fills, out, nullptr);
      }));
  return make_check(found);
}

Result<Quality> measure_quality_on_device(const DevicePair& pair, const ValidityRule& validity, bool with_ssim) {
  QUERN_RETURN_IF_ERROR(check_pair(pair));
  kernels::FillValues fills;
  QUERN_RETURN_IF_ERROR(take_fills(validity, fills));
  const kernels::CudaPair arrays = quality_pair(pair, with_ssim);
  std::size_t bytes = 0;
  QUERN_RETURN_IF_ERROR(to_status(kernels::quality_workspace(arrays, bytes)));
  QUERN_ASSIGN_OR_RETURN(
      const auto found,
      found_on_device<kernels::CudaQuality>(pair.ordinal, bytes, [&](kernels::CudaQuality* out, void* workspace) {
        return kernels::measure_quality_async(arrays, fills, out, workspace, bytes, nullptr);
      }));
  return make_quality(found);
}

Result<BoundCheck> check_device_stream(int ordinal, const void* original, DType dtype, const Shape& shape,
                                       std::span<const std::uint8_t> stream) {
  MemorySource source(stream);
  QUERN_ASSIGN_OR_RETURN(const StreamInfo info, inspect(source, builtin_codecs()));
  QUERN_RETURN_IF_ERROR(cuda::check_ordinal(ordinal));
  const CurrentDevice current(ordinal);
  QUERN_RETURN_IF_ERROR(current.status());
  DeviceMemory decoded;
  QUERN_RETURN_IF_ERROR(decoded.reserve(std::max<std::uint64_t>(shape.elems() * dtype_bytes(dtype), 1)));
  QUERN_RETURN_IF_ERROR(decompress_device_array(ordinal, stream, decoded.data(), dtype, shape));
  return check_bound_on_device({ordinal, dtype, shape, original, decoded.data()}, info.enforced, {info.fill_bits});
}

}  // namespace quern
