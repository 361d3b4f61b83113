// Kernels that decode chunks by jobs. The host encodes the first elements of the array, which takes long; the device
// decodes as many chunks as the array has.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include <quern/codec.h>

#include "bench/gpu/host_chunk.h"
#include "bench/gpu/subjects.h"
#include "kernels/common/job_task.h"

namespace quern::bench {

/// Elements that the host encodes: a chunk or a few.
inline constexpr std::uint64_t kSlabElems = UINT64_C(1) << 21;

/// A Codec has its kName and that of the step, the codec object and a layout for an array, the head of its jobs, and
/// what makes and decodes them.
template <class Codec>
class JobBench {
 public:
  JobBench(Session& session, const BenchArray& array) : session_(session), array_(array) {}

  void run() {
    if (!encode()) return;
    if (jobs_.empty()) {
      std::fprintf(stderr, "bench_gpu: %s of %s: every chunk is the host's to decode\n", Codec::kName,
                   array_.field.c_str());
      return;
    }
    std::vector<typename Codec::Job> heads;
    std::vector<std::uint8_t> jobs;
    for (const Vector<std::uint8_t>& job : jobs_) {
      std::memcpy(&heads.emplace_back(), job.data(), sizeof(typename Codec::Job));
      starts_.push_back(jobs.size());
      jobs.insert(jobs.end(), job.begin(), job.end());
      jobs.resize((jobs.size() + kernels::kJobAlignment - 1) / kernels::kJobAlignment * kernels::kJobAlignment);
    }
    // As many chunks as the array has.
    const std::uint64_t times = std::max<std::uint64_t>(1, array_.bytes() / slab_bytes_);
    const std::uint64_t count = times * jobs_.size();
    std::uint64_t work_bytes = 0;
    for (const auto& head : heads) work_bytes += Codec::work_bytes(head);
    if (!session_.has_room(jobs.size() + times * (work_bytes + slab_bytes_))) return;
    DeviceArray<std::uint8_t> device_jobs(jobs);
    DeviceArray<std::uint8_t> work(times * work_bytes);
    DeviceArray<std::uint8_t> values(times * slab_bytes_);
    std::vector<kernels::JobTask> tasks;
    std::uint64_t at = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::size_t which = i % jobs_.size();
      kernels::JobTask task;
      task.job = device_jobs.data() + starts_[which];
      task.work = work.data() + at;
      task.out = values.data() + i / jobs_.size() * slab_bytes_ + offsets_[which];
      tasks.push_back(task);
      at += Codec::work_bytes(heads[which]);
    }
    DeviceArray<kernels::JobTask> device_tasks(tasks);
    DeviceArray<std::uint32_t> damaged(count);
    check(cudaMemset(values.data(), kNotDecoded, values.bytes()), "cudaMemset");
    const std::uint64_t n = times * decoded_bytes_;
    const std::uint64_t stored = times * stored_bytes_;
    session_.time_step(array_, Codec::kName, Codec::kStep, {n, stored, n + stored}, [&](cudaStream_t stream) {
      return Codec::decode_async(device_tasks.data(), static_cast<std::uint32_t>(count), damaged.data(), stream);
    });
    const auto flags = damaged.get();
    const auto back = values.get();
    bool same = true;
    for (std::uint64_t t = 0; t < times; ++t)
      same = same && std::memcmp(back.data() + t * slab_bytes_, expected_.data(), slab_bytes_) == 0;
    session_.tell(array_, Codec::kName,
                  Members()
                      .count("chunks", count)
                      .number("ratio", static_cast<double>(n) / static_cast<double>(stored))
                      .count("damaged_chunks", std::accumulate(flags.begin(), flags.end(), std::uint64_t{0}))
                      .flag("same_values", same));
  }

 private:
  /// The first planes of the array as an array of their own: jobs of its chunks, and what the host decodes of these.
  /// Chunks without a job, raw or constant ones, are left out. False when the planes cannot be coded.
  bool encode() {
    HostSlab slab;
    if (!slab.plan(Codec::codec(), array_, Codec::kLayout, kSlabElems)) return false;
    slab_bytes_ = slab.data().size();
    expected_.assign(slab_bytes_, 0);
    const ChunkGrid& grid = slab.encoder().plan().grid;
    const auto n = grid.counts();
    Vector<std::uint8_t> bytes(slab.encoder().max_chunk_bytes());
    for (std::uint64_t c = 0; c < n[0] * n[1] * n[2]; ++c) {
      const std::uint64_t place[3] = {c / (n[1] * n[2]), c / n[2] % n[1], c % n[2]};
      MutableBox3 box;
      box.strides = {grid.extents[1] * grid.extents[2], grid.extents[2]};
      std::uint64_t first = 0;
      for (std::size_t a = 0; a < 3; ++a) {
        box.extents[a] = std::min(grid.chunk[a], grid.extents[a] - place[a] * grid.chunk[a]);
        first += place[a] * grid.chunk[a] * (a == 2 ? 1 : box.strides[a]);
      }
      const std::uint64_t offset = first * kernels::element_bytes(array_.element);
      box.data = expected_.data() + offset;
      const auto written =
          slab.encoder().encode({slab.data().data() + offset, box.extents, box.strides}, bytes, slab.scratch());
      if (!written.ok()) return false;
      const std::span<const std::uint8_t> chunk(bytes.data(), *written);
      if (!slab.decoder().decode(chunk, box, slab.scratch()).ok()) return false;
      Vector<std::uint8_t> job;
      if (!Codec::append_job(slab.decoder().device_state(), chunk, box, job)) {
        leave_out(box);
        continue;
      }
      jobs_.push_back(std::move(job));
      offsets_.push_back(offset);
      decoded_bytes_ += box.elems() * kernels::element_bytes(array_.element);
      stored_bytes_ += chunk.size();
    }
    return true;
  }

  /// Expects of a chunk what the device's memory holds before.
  void leave_out(const MutableBox3& box) {
    const std::size_t bytes = kernels::element_bytes(array_.element);
    for (std::uint64_t i = 0; i < box.extents[0]; ++i)
      for (std::uint64_t j = 0; j < box.extents[1]; ++j)
        std::memset(static_cast<std::uint8_t*>(box.data) + (i * box.strides[0] + j * box.strides[1]) * bytes,
                    kNotDecoded, box.extents[2] * bytes);
  }

  static constexpr int kNotDecoded = 0xa5;

  Session& session_;
  const BenchArray& array_;
  std::vector<Vector<std::uint8_t>> jobs_;
  std::vector<std::uint64_t> offsets_;  ///< of a chunk's elements in the slab
  std::vector<std::uint64_t> starts_;   ///< of its job
  std::vector<std::uint8_t> expected_;  ///< the slab as the host decodes it, but for chunks left out
  std::uint64_t slab_bytes_ = 0;
  std::uint64_t decoded_bytes_ = 0;  ///< of the chunks that have jobs
  std::uint64_t stored_bytes_ = 0;
};

}  // namespace quern::bench
