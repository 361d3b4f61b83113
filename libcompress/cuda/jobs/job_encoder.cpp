// Lanes through their steps: fitted and sent, counted, chosen for and sent again, written, brought back.
#include "libcompress/cuda/jobs/job_encoder.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "libcompress/core/run_tasks.h"
#include "libcompress/cuda/memory_parts.h"
#include "libcompress/pipeline/boxes.h"

namespace quern::cuda {

using kernels::EncodeTask;
using State = ChunkToEncode::State;

JobEncoder::JobEncoder(const StreamSetup& setup, const CompressOptions& options, TaskRunner& runner,
                       const JobEncodeKernels& kernels, LanePool& pool, const DeviceInfo& device)
    : setup_(setup),
      runner_(runner),
      kernels_(kernels),
      pool_(pool),
      device_(device.ordinal),
      element_bytes_(dtype_bytes(setup.header.dtype)),
      chunk_bytes_(setup.layout.full_chunk_bytes()),
      room_(kernels.room(setup.encoder->device_state())),
      host_(setup, options, runner),
      scratch_(setup.encoder->scratch_bytes()) {
  // Lanes share the device with others: each takes an eighth of it at most.
  constexpr std::uint64_t kShare = 8;
  const std::uint64_t on_device = chunk_bytes_ + chunk_bytes_ / element_bytes_ + room_.work + room_.first_job +
                                  room_.later_job + kernels.result_bytes();
  lane_chunks_ =
      std::min(kLaneBytes / std::max<std::uint64_t>(chunk_bytes_, 1), device.memory_bytes / kShare / on_device);
  lane_chunks_ = std::clamp<std::uint64_t>(lane_chunks_, 1, kLaneChunks);
  lane_chunks_ = std::min(lane_chunks_, std::max<std::uint64_t>(setup.layout.chunks(), 1));
  host_.encode_first_by(this);
}

JobEncoder::~JobEncoder() {
  const CurrentDevice current(device_);
  pool_.give_back_all(lanes_);
}

// Elements and classes on their way there, what stands for elements there, what comes back, jobs and results, and
// what chunks keep; scratch for fits, which the threads do not share with what encodes chunks that the device leaves.
std::uint64_t JobEncoder::scratch_bytes() const {
  const std::uint64_t chunk = 3 * chunk_bytes_ + chunk_bytes_ / element_bytes_ + 2 * room_.first_job + room_.later_job +
                              kernels_.result_bytes() + room_.kept;
  return lanes_.kSlots * lane_chunks_ * chunk + 2 * host_.scratch_bytes();
}

std::uint64_t JobEncoder::wanted_segments() const {
  const std::uint64_t in_segment = setup_.layout.segments() == 0 ? 1 : setup_.layout.segment_chunks(0);
  return std::max<std::uint64_t>(1, lanes_.kSlots * lane_chunks_ / std::max<std::uint64_t>(in_segment, 1));
}

Status JobEncoder::open() {
  if (open_) return {};
  QUERN_RETURN_IF_ERROR(pool_.take_all(lanes_, {}));
  open_ = true;
  return {};
}

Status JobEncoder::encode(std::uint64_t first, std::size_t count, const ArrayWindow& window) {
  const CurrentDevice current(device_);
  QUERN_RETURN_IF_ERROR(current.status());
  QUERN_RETURN_IF_ERROR(open());
  for (Lane& lane : lanes_) {  // what a failed call left
    QUERN_RETURN_IF_ERROR(lane.queue.wait());
    lane.chunks = {};
  }
  return host_.encode(first, count, window);
}

Status JobEncoder::encode_chunks(std::span<ChunkToEncode> chunks) {
  return lanes_.run([&] { return !chunks.empty(); }, [&](Lane& lane) { return finish(lane); },
                    [&](Lane& lane) {
                      const auto most = static_cast<std::size_t>(lane_chunks_);
                      lane.chunks = chunks.first(std::min<std::size_t>(chunks.size(), most));
                      chunks = chunks.subspan(lane.chunks.size());
                      QUERN_RETURN_IF_ERROR(start(lane));
                      return submit_first(lane);
                    });
}

void JobEncoder::end(Lane& lane, std::size_t i, EncodeStep how) {
  lane.chunks[i].state = how == EncodeStep::done ? State::coded : how == EncodeStep::raw ? State::raw : State::left;
  lane.codings[i].encoding.reset();
}

Status JobEncoder::start(Lane& lane) {
  lane.codings.clear();
  lane.codings.resize(lane.chunks.size());
  return run_tasks(runner_, lane.chunks.size(), [&](std::size_t i) -> Status {
    ChunkCoding& coding = lane.codings[i];
    QUERN_ASSIGN_OR_RETURN(auto scratch, scratch_.lend());
    coding.encoding = kernels_.chunk(setup_.encoder->device_state());
    if (!coding.encoding->start(lane.chunks[i].in, scratch.span(), coding.job) || coding.job.size() > room_.first_job)
      end(lane, i, EncodeStep::host);
    return {};
  });
}

EncodeTask JobEncoder::task_of(const Lane& lane, const ChunkCoding& coding, std::uint8_t* job) {
  return {job, lane.base + coding.work_at, lane.base + coding.elements_at, lane.base + coding.special_at,
          lane.results + coding.result_at};
}

bool JobEncoder::any_at(const Lane& lane, EncodeStep step) {
  return std::any_of(lane.codings.begin(), lane.codings.end(),
                     [&](const ChunkCoding& coding) { return coding.encoding != nullptr && coding.step == step; });
}

Status JobEncoder::submit_first(Lane& lane) {
  MemoryParts in;
  MemoryParts results;
  MemoryParts later;
  MemoryParts work;
  std::uint32_t count = 0;
  for (ChunkCoding& coding : lane.codings) {
    if (coding.encoding == nullptr) continue;
    ++count;
    const ConstBox3& box = coding.encoding->box();
    coding.job_at = in.add(coding.job.size());
    coding.elements_at = in.add(box.elems() * coding.encoding->element_bytes());
    coding.special_at = box.special != nullptr ? in.add(box.elems()) : 0;
    coding.result_at = results.add(kernels_.result_bytes());
    later.add(room_.later_job);
    coding.work_at = work.add(coding.encoding->work_bytes());
  }
  if (count == 0) return {};
  const std::uint64_t tasks_at = in.add(count * sizeof(EncodeTask));
  later.add(count * sizeof(EncodeTask));
  lane.results_bytes = results.bytes;
  QUERN_RETURN_IF_ERROR(lane.in.reserve(std::max(in.bytes, later.bytes)));
  QUERN_RETURN_IF_ERROR(lane.out.reserve(results.bytes));
  QUERN_RETURN_IF_ERROR(lane.device.reserve(in.bytes + results.bytes + later.bytes + work.bytes));
  lane.base = lane.device.data();
  lane.results = lane.base + in.bytes;
  lane.later = lane.results + results.bytes;
  std::uint64_t task_at = tasks_at;
  for (ChunkCoding& coding : lane.codings) {
    if (coding.encoding == nullptr) continue;
    coding.work_at += in.bytes + results.bytes + later.bytes;
    const EncodeTask task = task_of(lane, coding, lane.base + coding.job_at);
    std::memcpy(lane.in.data() + task_at, &task, sizeof task);
    task_at += sizeof task;
  }
  runner_.run(lane.codings.size(), [&](std::size_t i) {
    const ChunkCoding& coding = lane.codings[i];
    if (coding.encoding == nullptr) return;
    const ConstBox3& box = coding.encoding->box();
    std::memcpy(lane.in.data() + coding.job_at, coding.job.data(), coding.job.size());
    gather(box, coding.encoding->element_bytes(), lane.in.data() + coding.elements_at);
    if (box.special != nullptr)
      gather({box.special, box.extents, box.special_strides}, 1, lane.in.data() + coding.special_at);
  });
  const cudaStream_t queue = lane.queue.get();
  cudaError_t error =
      cudaMemcpyAsync(lane.base, lane.in.data(), static_cast<std::size_t>(in.bytes), cudaMemcpyHostToDevice, queue);
  if (error == cudaSuccess)
    error = kernels_.encode(reinterpret_cast<const EncodeTask*>(lane.base + tasks_at), count, queue);
  if (error == cudaSuccess)
    error = cudaMemcpyAsync(lane.out.data(), lane.results, static_cast<std::size_t>(results.bytes),
                            cudaMemcpyDeviceToHost, queue);
  return to_status(error);
}

std::span<const std::uint8_t> JobEncoder::result(const Lane& lane, const ChunkCoding& coding) const {
  return {lane.out.data() + coding.result_at, kernels_.result_bytes()};
}

std::span<const std::uint8_t> JobEncoder::piece(const Lane& lane, const ChunkCoding& coding) {
  return {lane.tables.data() + coding.piece_at, static_cast<std::size_t>(coding.piece_bytes)};
}

template <class From>
Status JobEncoder::bring_back(Lane& lane, const From& from) {
  MemoryParts parts;
  for (ChunkCoding& coding : lane.codings)
    if (coding.encoding != nullptr) coding.piece_at = parts.add(coding.piece_bytes);
  if (parts.bytes == 0) return {};
  QUERN_RETURN_IF_ERROR(lane.tables.reserve(parts.bytes));
  for (const ChunkCoding& coding : lane.codings) {
    if (coding.encoding == nullptr || coding.piece_bytes == 0) continue;
    QUERN_RETURN_IF_ERROR(to_status(cudaMemcpyAsync(lane.tables.data() + coding.piece_at, from(coding),
                                                    static_cast<std::size_t>(coding.piece_bytes),
                                                    cudaMemcpyDeviceToHost, lane.queue.get())));
  }
  return lane.queue.wait();
}

Status JobEncoder::advance(Lane& lane) {
  const auto waits = [](const ChunkCoding& coding) {
    return coding.encoding != nullptr && coding.step == EncodeStep::encode;
  };
  for (ChunkCoding& coding : lane.codings)
    coding.piece_bytes = waits(coding) ? coding.encoding->wanted(result(lane, coding)).bytes : 0;
  QUERN_RETURN_IF_ERROR(bring_back(lane, [&](const ChunkCoding& coding) {
    return lane.base + coding.work_at + coding.encoding->wanted(result(lane, coding)).begin;
  }));
  return run_tasks(runner_, lane.codings.size(), [&](std::size_t i) -> Status {
    ChunkCoding& coding = lane.codings[i];
    if (!waits(coding)) return {};
    coding.job.clear();
    coding.step = coding.encoding->next(result(lane, coding), piece(lane, coding), coding.job);
    const bool more = coding.step == EncodeStep::encode || coding.step == EncodeStep::write;
    if (!more) {
      end(lane, i, coding.step);
    } else if (coding.job.size() > room_.later_job) {
      end(lane, i, EncodeStep::host);
    }
    return {};
  });
}

Status JobEncoder::submit(Lane& lane, EncodeStep step) {
  MemoryParts later;
  std::uint32_t count = 0;
  for (ChunkCoding& coding : lane.codings) {
    if (coding.encoding == nullptr || coding.step != step) continue;
    ++count;
    coding.job_at = later.add(coding.job.size());
  }
  const std::uint64_t tasks_at = later.add(count * sizeof(EncodeTask));
  std::uint64_t task_at = tasks_at;
  for (const ChunkCoding& coding : lane.codings) {
    if (coding.encoding == nullptr || coding.step != step) continue;
    std::memcpy(lane.in.data() + coding.job_at, coding.job.data(), coding.job.size());
    const EncodeTask task = task_of(lane, coding, lane.later + coding.job_at);
    std::memcpy(lane.in.data() + task_at, &task, sizeof task);
    task_at += sizeof task;
  }
  const cudaStream_t queue = lane.queue.get();
  cudaError_t error =
      cudaMemcpyAsync(lane.later, lane.in.data(), static_cast<std::size_t>(later.bytes), cudaMemcpyHostToDevice, queue);
  const auto* const tasks = reinterpret_cast<const EncodeTask*>(lane.later + tasks_at);
  if (error == cudaSuccess)
    error = step == EncodeStep::write ? kernels_.write(tasks, count, queue) : kernels_.encode(tasks, count, queue);
  if (error == cudaSuccess)
    error = cudaMemcpyAsync(lane.out.data(), lane.results, static_cast<std::size_t>(lane.results_bytes),
                            cudaMemcpyDeviceToHost, queue);
  return to_status(error);
}

Status JobEncoder::deliver(Lane& lane) {
  for (ChunkCoding& coding : lane.codings)
    if (coding.encoding != nullptr) coding.piece_bytes = coding.encoding->written(result(lane, coding));
  QUERN_RETURN_IF_ERROR(bring_back(lane, [&](const ChunkCoding& coding) { return lane.base + coding.elements_at; }));
  return run_tasks(runner_, lane.codings.size(), [&](std::size_t i) -> Status {
    const ChunkCoding& coding = lane.codings[i];
    if (coding.encoding == nullptr) return {};
    ChunkToEncode& chunk = lane.chunks[i];
    end(lane, i, coding.encoding->finish(result(lane, coding), piece(lane, coding), chunk.place, chunk.bytes));
    return {};
  });
}

Status JobEncoder::finish(Lane& lane) {
  if (lane.chunks.empty()) return {};
  QUERN_RETURN_IF_ERROR(lane.queue.wait());
  while (any_at(lane, EncodeStep::encode)) {
    QUERN_RETURN_IF_ERROR(advance(lane));
    if (!any_at(lane, EncodeStep::encode)) break;
    QUERN_RETURN_IF_ERROR(submit(lane, EncodeStep::encode));
    QUERN_RETURN_IF_ERROR(lane.queue.wait());
  }
  if (any_at(lane, EncodeStep::write)) {
    QUERN_RETURN_IF_ERROR(submit(lane, EncodeStep::write));
    QUERN_RETURN_IF_ERROR(lane.queue.wait());
    QUERN_RETURN_IF_ERROR(deliver(lane));
  }
  lane.codings.clear();
  lane.chunks = {};
  return {};
}

}  // namespace quern::cuda
