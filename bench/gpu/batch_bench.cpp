// Many small arrays in one call: slabs of the array at hand, as a solver's blocks or a model's layers are.
#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <quern/device_arrays.h>

#include "bench/gpu/subjects.h"
#include "kernels/metrics/cuda/bound_check_cuda.h"

namespace quern::bench {
namespace {

/// Slabs of at most so many bytes; at least four of them.
constexpr std::uint64_t kSlabBytes = UINT64_C(1) << 20;

/// Equal parts along the slowest axis that can be cut; what is left over is not used.
struct Slabs {
  std::array<std::uint64_t, 3> extents;
  std::uint64_t bytes;
  std::uint32_t count;
};

Slabs cut(const BenchArray& array) {
  Slabs slabs{array.extents, 0, 1};
  std::size_t axis = 0;
  while (axis < 2 && array.extents[axis] == 1) ++axis;
  const std::uint64_t row = array.bytes() / array.extents[axis];
  const std::uint64_t most = std::min(kSlabBytes, array.bytes() / 4);
  slabs.extents[axis] = std::clamp<std::uint64_t>(most / row, 1, array.extents[axis]);
  slabs.bytes = slabs.extents[axis] * row;
  slabs.count = static_cast<std::uint32_t>(array.extents[axis] / slabs.extents[axis]);
  return slabs;
}

std::unique_ptr<DeviceArrayCoder> make_coder(const BenchArray& array, const Slabs& slabs) {
  CompressOptions options;
  options.codec = "lorenzo";
  options.bound = {BoundKind::abs, array.bound};
  auto shape = Shape::make(slabs.extents);
  if (!shape.ok()) throw std::runtime_error(shape.status().text());
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  auto coder = device_compressor(device, static_cast<DType>(array.element), *shape, options);
  if (!coder.ok()) throw std::runtime_error(coder.status().text());
  return std::move(coder).value();
}

/// Addresses of `count` places, `stride` bytes apart.
std::vector<void*> places(void* first, std::uint64_t stride, std::uint32_t count) {
  std::vector<void*> out(count);
  for (std::uint32_t i = 0; i < count; ++i) out[i] = static_cast<std::uint8_t*>(first) + i * stride;
  return out;
}

}  // namespace

void bench_batches(Session& session, const BenchArray& array) {
  const Slabs slabs = cut(array);
  const std::unique_ptr<DeviceArrayCoder> coder = make_coder(array, slabs);
  const std::uint64_t room = (slabs.bytes + slabs.bytes / 1000 + 256 + 255) / 256 * 256;
  const std::uint64_t workspace_bytes = coder->workspace_bytes(slabs.count);
  const std::uint64_t input = slabs.count * slabs.bytes;
  if (!session.has_room(workspace_bytes + room * slabs.count + input)) return;

  DeviceArray<std::uint8_t> workspace(workspace_bytes), streams(room * slabs.count), decoded(input);
  DeviceArray<void*> arrays(places(const_cast<void*>(array.values), slabs.bytes, slabs.count));
  DeviceArray<void*> decoded_arrays(places(decoded.data(), slabs.bytes, slabs.count));
  DeviceArray<void*> stream_places(places(streams.data(), room, slabs.count));
  DeviceArray<std::uint64_t> capacities(std::vector<std::uint64_t>(slabs.count, room)), sizes(slabs.count);
  DeviceArray<std::int32_t> statuses(slabs.count);
  const auto queue_call = [&](bool compresses, cudaStream_t stream) {
    DeviceArrays call;
    call.count = slabs.count;
    call.arrays = compresses ? arrays.data() : decoded_arrays.data();
    call.streams = stream_places.data();
    call.stream_sizes = compresses ? capacities.data() : sizes.data();
    call.sizes = compresses ? sizes.data() : nullptr;
    call.statuses = statuses.data();
    const Status status = compresses ? coder->compress(call, workspace.data(), workspace.bytes(), stream)
                                     : coder->decompress(call, workspace.data(), workspace.bytes(), stream);
    return status.ok() ? cudaSuccess : cudaErrorUnknown;
  };
  const auto all_done = [&] {
    const auto all = statuses.get();
    return std::all_of(all.begin(), all.end(), [](std::int32_t status) { return status == 0; });
  };

  Stream queue;
  check(queue_call(true, queue), "compress a batch");
  queue.wait();
  if (!all_done()) throw std::runtime_error("an array of a batch could not be compressed");
  std::uint64_t stored = 0;
  for (const std::uint64_t size : sizes.get()) stored += size;
  session.time_step(array, "batches", "compress", {input, stored, input + stored},
                    [&](cudaStream_t stream) { return queue_call(true, stream); });
  session.time_step(array, "batches", "decompress", {input, stored, input + stored},
                    [&](cudaStream_t stream) { return queue_call(false, stream); });
  queue.wait();

  DeviceArray<kernels::CudaBoundCheck> result(1);
  const kernels::FillValues no_fills;
  check(kernels::check_bound_async(array.element, array.values, decoded.data(),
                                   input / kernels::element_bytes(array.element),
                                   {verifier::BoundRule::absolute, array.bound}, no_fills, result.data(), queue),
        "check_bound_async");
  queue.wait();
  Members members;
  members.count("arrays", slabs.count).count("array_bytes", slabs.bytes).count("stored_bytes", stored);
  members.flag("all_decoded", all_done()).count("violations", result.get()[0].violations);
  session.tell(array, "batches", members);
}

}  // namespace quern::bench
