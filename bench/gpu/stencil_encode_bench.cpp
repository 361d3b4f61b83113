// The stencil kernels on chunks in raster order, both ways. The host fits the model of one chunk, which takes long, and
// chooses its distributions; the device encodes and decodes that chunk as often as the array has room for it.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include <quern/codec.h>

#include "bench/gpu/host_chunk.h"
#include "bench/gpu/subjects.h"
#include "codecs/stencil/device/raster_encode.h"
#include "codecs/stencil/device/raster_job.h"
#include "codecs/stencil/device/state.h"
#include "codecs/stencil/stencil.h"
#include "kernels/stencil/cuda/decode_entry_points.h"
#include "kernels/stencil/cuda/encode_entry_points.h"
#include "kernels/stencil/job_head.h"

namespace quern::bench {
namespace {

using codec::stencil::RasterEncoding;
using kernels::EncodeTask;
using kernels::RasterEncodeResult;
using kernels::RowLanesResult;

class StencilEncodeBench {
 public:
  StencilEncodeBench(Session& session, const BenchArray& array) : session_(session), array_(array) {}

  void run() {
    if (!start()) return;
    encode();
    decode();
  }

 private:
  void encode() {
    const std::uint64_t times = std::max<std::uint64_t>(1, array_.bytes() / chunk_.data().size());
    const std::uint64_t stride = kernels::job_aligned(chunk_.data().size());
    const std::uint64_t work_stride = kernels::job_aligned(encoding_.work_bytes());
    if (!session_.has_room(times * (2 * stride + work_stride + 2 * sizeof(RasterEncodeResult)))) return;
    std::vector<std::uint8_t> copies(times * stride);
    for (std::uint64_t i = 0; i < times; ++i)
      std::memcpy(copies.data() + i * stride, chunk_.data().data(), chunk_.data().size());
    DeviceArray<std::uint8_t> elements(copies);
    DeviceArray<std::uint8_t> words(times * stride);
    DeviceArray<std::uint8_t> work(times * work_stride);
    DeviceArray<RasterEncodeResult> results(times);
    DeviceArray<RowLanesResult> lane_results(times);
    const auto tasks_of = [&](const std::uint8_t* job, std::uint8_t* memory, auto* result) {
      std::vector<EncodeTask> tasks;
      for (std::uint64_t i = 0; i < times; ++i)
        tasks.push_back({job, work.data() + i * work_stride, memory + i * stride, nullptr, result + i});
      return tasks;
    };
    const auto count = static_cast<std::uint32_t>(times);
    const std::uint64_t n = times * chunk_.data().size();

    DeviceArray<std::uint8_t> first(std::vector<std::uint8_t>(job_.begin(), job_.end()));
    DeviceArray<EncodeTask> first_tasks(tasks_of(first.data(), elements.data(), results.data()));
    session_.time_step(array_, "stencil_encode", "encode_raster", {n, 0, n}, [&](cudaStream_t stream) {
      return kernels::stencil_raster_encode_async(first_tasks.data(), count, stream);
    });
    const RasterEncodeResult result = results.get()[0];
    if (result.left != 0) return;
    std::vector<std::uint32_t> exceptions(result.exceptions);
    if (!exceptions.empty())
      check(cudaMemcpy(exceptions.data(), work.data() + encoding_.exception_list(),
                       exceptions.size() * sizeof(std::uint32_t), cudaMemcpyDeviceToHost),
            "copy from the device");
    job_.clear();
    if (!encoding_.choose(result, exceptions, job_)) return;

    DeviceArray<std::uint8_t> second(std::vector<std::uint8_t>(job_.begin(), job_.end()));
    DeviceArray<EncodeTask> second_tasks(tasks_of(second.data(), words.data(), lane_results.data()));
    const std::uint64_t stored = times * chunk_.expected().size();
    session_.time_step(array_, "stencil_encode", "write_raster_lanes", {n, stored, stored}, [&](cudaStream_t stream) {
      return kernels::stencil_row_lanes_async(second_tasks.data(), count, stream);
    });
    session_.tell(array_, "stencil_encode",
                  Members()
                      .count("chunks", times)
                      .number("ratio", static_cast<double>(n) / static_cast<double>(stored))
                      .flag("same_bytes", same_bytes(lane_results.get(), words.get(), stride)));
  }

  void decode() {
    const std::uint64_t times = std::max<std::uint64_t>(1, array_.bytes() / chunk_.data().size());
    const std::uint64_t stride = kernels::job_aligned(chunk_.data().size());
    kernels::JobHead head;
    std::memcpy(&head, decode_job_.data(), sizeof head);
    const std::uint64_t work_stride = kernels::job_aligned(head.work_bytes);
    if (!session_.has_room(head.bytes + times * (stride + work_stride))) return;
    DeviceArray<std::uint8_t> job(std::vector<std::uint8_t>(decode_job_.begin(), decode_job_.end()));
    DeviceArray<std::uint8_t> values(times * stride);
    DeviceArray<std::uint8_t> work(times * work_stride);
    std::vector<kernels::JobTask> tasks;
    for (std::uint64_t i = 0; i < times; ++i)
      tasks.push_back({job.data(), work.data() + i * work_stride, values.data() + i * stride, nullptr});
    DeviceArray<kernels::JobTask> device_tasks(tasks);
    DeviceArray<std::uint32_t> damaged(times);
    check(cudaMemset(values.data(), 0xa5, values.bytes()), "cudaMemset");
    const std::uint64_t n = times * chunk_.data().size();
    const std::uint64_t stored = times * chunk_.expected().size();
    session_.time_step(array_, "stencil", "decode_raster", {n, stored, n + stored}, [&](cudaStream_t stream) {
      return kernels::stencil_raster_decode_async(device_tasks.data(), static_cast<std::uint32_t>(times),
                                                  damaged.data(), stream);
    });
    const auto flags = damaged.get();
    const auto back = values.get();
    bool same = true;
    for (std::uint64_t i = 0; i < times; ++i)
      same = same && std::memcmp(back.data() + i * stride, decoded_.data(), decoded_.size()) == 0;
    session_.tell(array_, "stencil",
                  Members()
                      .count("chunks", times)
                      .number("ratio", static_cast<double>(n) / static_cast<double>(stored))
                      .count("damaged_chunks", std::accumulate(flags.begin(), flags.end(), std::uint64_t{0}))
                      .flag("same_values", same));
  }

  bool same_bytes(const std::vector<RowLanesResult>& lanes, const std::vector<std::uint8_t>& words,
                  std::uint64_t stride) const {
    Vector<std::uint8_t> out(chunk_.room_bytes());
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      const std::size_t bytes =
          encoding_.write(lanes[i].words, reinterpret_cast<const std::uint16_t*>(words.data() + i * stride), out);
      if (bytes != chunk_.expected().size() || std::memcmp(out.data(), chunk_.expected().data(), bytes) != 0)
        return false;
    }
    return true;
  }

  /// What the host makes of the first chunk's worth of the array, and the first job. False when that is not a
  /// single chunk in raster order.
  bool start() {
    if (!chunk_.encode(array_, "raster")) return false;
    decoded_.resize(chunk_.data().size());
    MutableBox3 back;
    back.data = decoded_.data();
    back.extents = chunk_.box().extents;
    back.strides = chunk_.box().strides;
    if (!chunk_.decoder().decode(chunk_.expected(), back, chunk_.scratch()).ok()) return false;
    if (!codec::stencil::append_raster_job(codec::stencil::spec_of_state(chunk_.decoder().device_state()),
                                           chunk_.expected(), back, decode_job_))
      return false;
    // What travels are to be the array's own elements, not places on a lattice.
    return encoding_.start(chunk_.spec(), chunk_.box(), chunk_.scratch(), job_) &&
           encoding_.box().data == chunk_.box().data;
  }

  Session& session_;
  const BenchArray& array_;
  HostChunk chunk_;
  std::vector<std::uint8_t> decoded_;  ///< of it
  Vector<std::uint8_t> decode_job_;
  Vector<std::uint8_t> job_;
  RasterEncoding encoding_;
};

}  // namespace

void bench_stencil_encode(Session& session, const BenchArray& array) { StencilEncodeBench(session, array).run(); }

}  // namespace quern::bench
