// Lanes through their steps: fitted and sent, counted, chosen for and sent again, written, brought back.
#include "libcompress/cuda/program_encoder.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "libcompress/core/run_tasks.h"
#include "libcompress/cuda/memory_parts.h"
#include "libcompress/pipeline/boxes.h"

namespace quern::cuda {

using kernels::EncodeTask;
using State = ChunkToEncode::State;

ProgramEncoder::ProgramEncoder(const StreamSetup& setup, const CompressOptions& options, TaskRunner& runner,
                               const ProgramEncodeKernels& kernels, LanePool& pool, const DeviceInfo& device)
    : setup_(setup),
      runner_(runner),
      kernels_(kernels),
      pool_(pool),
      device_(device.ordinal),
      element_bytes_(dtype_bytes(setup.header.dtype)),
      chunk_bytes_(setup.layout.full_chunk_bytes()),
      host_(setup, options, runner),
      scratch_(setup.encoder->scratch_bytes()) {
  // Lanes share the device with others: each takes an eighth of it at most.
  constexpr std::uint64_t kShare = 8;
  const std::uint64_t elems = chunk_bytes_ / element_bytes_;
  const std::uint64_t on_device = chunk_bytes_ + elems * (1 + kernels.work_bytes_per_element()) + kMostProgramBytes +
                                  kernels.answer_bytes() + kernels.second_program_bytes();
  lane_chunks_ =
      std::min(kLaneBytes / std::max<std::uint64_t>(chunk_bytes_, 1), device.memory_bytes / kShare / on_device);
  lane_chunks_ = std::clamp<std::uint64_t>(lane_chunks_, 1, kLaneChunks);
  lane_chunks_ = std::min(lane_chunks_, std::max<std::uint64_t>(setup.layout.chunks(), 1));
  host_.encode_first_by(this);
}

ProgramEncoder::~ProgramEncoder() {
  const CurrentDevice current(device_);
  for (Lane& lane : lanes_) pool_.give_back(std::move(lane));
}

// Elements and classes on their way there, what stands for elements there, words on their way back, programs and
// answers; scratch for fits, which the threads do not share with what encodes chunks that the device leaves.
std::uint64_t ProgramEncoder::scratch_bytes() const {
  const std::uint64_t chunk = 3 * chunk_bytes_ + chunk_bytes_ / element_bytes_ + 2 * kMostProgramBytes +
                              kernels_.answer_bytes() + kernels_.second_program_bytes();
  return kLanes * lane_chunks_ * chunk + 2 * host_.scratch_bytes();
}

std::uint64_t ProgramEncoder::wanted_segments() const {
  const std::uint64_t in_segment = setup_.layout.segments() == 0 ? 1 : setup_.layout.segment_chunks(0);
  return std::max<std::uint64_t>(1, kLanes * lane_chunks_ / std::max<std::uint64_t>(in_segment, 1));
}

Status ProgramEncoder::open() {
  if (open_) return {};
  for (Lane& lane : lanes_) {
    QUERN_ASSIGN_OR_RETURN(static_cast<StagingLane&>(lane), pool_.take(0, 0, 0, 0));
  }
  open_ = true;
  return {};
}

Status ProgramEncoder::encode(std::uint64_t first, std::size_t count, const ArrayWindow& window) {
  const CurrentDevice current(device_);
  QUERN_RETURN_IF_ERROR(current.status());
  QUERN_RETURN_IF_ERROR(open());
  for (Lane& lane : lanes_) {  // what a failed call left
    QUERN_RETURN_IF_ERROR(lane.queue.wait());
    lane.chunks = {};
  }
  return host_.encode(first, count, window);
}

Status ProgramEncoder::encode_chunks(std::span<ChunkToEncode> chunks) {
  std::size_t next_lane = 0;
  while (!chunks.empty()) {
    Lane& lane = lanes_[next_lane];
    next_lane = (next_lane + 1) % kLanes;
    QUERN_RETURN_IF_ERROR(finish(lane));
    lane.chunks = chunks.first(std::min<std::size_t>(chunks.size(), static_cast<std::size_t>(lane_chunks_)));
    chunks = chunks.subspan(lane.chunks.size());
    QUERN_RETURN_IF_ERROR(start(lane));
    QUERN_RETURN_IF_ERROR(submit_first(lane));
  }
  for (std::size_t i = 0; i < kLanes; ++i) QUERN_RETURN_IF_ERROR(finish(lanes_[(next_lane + i) % kLanes]));
  return {};
}

void ProgramEncoder::leave(Lane& lane, std::size_t i) {
  lane.chunks[i].state = State::left;
  lane.jobs[i].encoding.reset();
}

/// A chunk that is not worth coding.
void ProgramEncoder::leave_or_store_raw(Lane& lane, std::size_t i) {
  const bool raw = lane.jobs[i].encoding->may_be_raw();
  leave(lane, i);
  if (raw) lane.chunks[i].state = State::raw;
}

Status ProgramEncoder::start(Lane& lane) {
  lane.jobs.clear();
  lane.jobs.resize(lane.chunks.size());
  return run_tasks(runner_, lane.chunks.size(), [&](std::size_t i) -> Status {
    Job& job = lane.jobs[i];
    QUERN_ASSIGN_OR_RETURN(auto scratch, scratch_.lend());
    job.encoding = kernels_.chunk(setup_.encoder->device_state());
    if (!job.encoding->start(lane.chunks[i].in, scratch.span(), job.program) ||
        job.program.size() + sizeof(EncodeTask) + kernels::kProgramAlignment > kMostProgramBytes)
      leave(lane, i);
    return {};
  });
}

EncodeTask ProgramEncoder::task_of(const Lane& lane, const Job& job, std::uint8_t* program) {
  return {program, lane.base + job.work_at, lane.base + job.elements_at, lane.base + job.special_at,
          lane.answers + job.answer_at};
}

Status ProgramEncoder::submit_first(Lane& lane) {
  MemoryParts in;
  MemoryParts answers;
  MemoryParts second;
  MemoryParts work;
  lane.count = 0;
  for (std::size_t i = 0; i < lane.jobs.size(); ++i) {
    Job& job = lane.jobs[i];
    if (job.encoding == nullptr) continue;
    ++lane.count;
    const ConstBox3& box = job.encoding->box();
    job.program_at = in.add(job.program.size());
    job.elements_at = in.add(box.elems() * job.encoding->element_bytes());
    job.special_at = box.special != nullptr ? in.add(box.elems()) : 0;
    job.answer_at = answers.add(kernels_.answer_bytes());
    second.add(kernels_.second_program_bytes());
    job.work_at = work.add(job.encoding->work_bytes());
  }
  if (lane.count == 0) return {};
  const std::uint64_t tasks_at = in.add(lane.count * sizeof(EncodeTask));
  second.add(lane.count * sizeof(EncodeTask));
  lane.answers_bytes = answers.bytes;
  QUERN_RETURN_IF_ERROR(lane.in.reserve(std::max(in.bytes, second.bytes)));
  QUERN_RETURN_IF_ERROR(lane.out.reserve(answers.bytes));
  QUERN_RETURN_IF_ERROR(lane.device.reserve(in.bytes + answers.bytes + second.bytes + work.bytes));
  lane.base = lane.device.data();
  lane.answers = lane.base + in.bytes;
  lane.second = lane.answers + answers.bytes;
  std::uint64_t task_at = tasks_at;
  for (Job& job : lane.jobs) {
    if (job.encoding == nullptr) continue;
    job.work_at += in.bytes + answers.bytes + second.bytes;
    const EncodeTask task = task_of(lane, job, lane.base + job.program_at);
    std::memcpy(lane.in.data() + task_at, &task, sizeof task);
    task_at += sizeof task;
  }
  runner_.run(lane.jobs.size(), [&](std::size_t i) {
    const Job& job = lane.jobs[i];
    if (job.encoding == nullptr) return;
    const ConstBox3& box = job.encoding->box();
    std::memcpy(lane.in.data() + job.program_at, job.program.data(), job.program.size());
    gather(box, job.encoding->element_bytes(), lane.in.data() + job.elements_at);
    if (box.special != nullptr)
      gather({box.special, box.extents, box.special_strides}, 1, lane.in.data() + job.special_at);
  });
  const cudaStream_t queue = lane.queue.get();
  cudaError_t error =
      cudaMemcpyAsync(lane.base, lane.in.data(), static_cast<std::size_t>(in.bytes), cudaMemcpyHostToDevice, queue);
  if (error == cudaSuccess)
    error = kernels_.encode(reinterpret_cast<const EncodeTask*>(lane.base + tasks_at), lane.count, queue);
  if (error == cudaSuccess)
    error = cudaMemcpyAsync(lane.out.data(), lane.answers, static_cast<std::size_t>(answers.bytes),
                            cudaMemcpyDeviceToHost, queue);
  return to_status(error);
}

std::span<const std::uint8_t> ProgramEncoder::answer(const Lane& lane, const Job& job) const {
  return {lane.out.data() + job.answer_at, kernels_.answer_bytes()};
}

std::span<const std::uint8_t> ProgramEncoder::piece(const Lane& lane, const Job& job) {
  return {lane.tables.data() + job.piece_at, static_cast<std::size_t>(job.piece_bytes)};
}

template <class From>
Status ProgramEncoder::bring_back(Lane& lane, const From& from) {
  MemoryParts parts;
  for (Job& job : lane.jobs)
    if (job.encoding != nullptr) job.piece_at = parts.add(job.piece_bytes);
  if (parts.bytes == 0) return {};
  QUERN_RETURN_IF_ERROR(lane.tables.reserve(parts.bytes));
  for (const Job& job : lane.jobs) {
    if (job.encoding == nullptr || job.piece_bytes == 0) continue;
    QUERN_RETURN_IF_ERROR(to_status(cudaMemcpyAsync(lane.tables.data() + job.piece_at, from(job),
                                                    static_cast<std::size_t>(job.piece_bytes), cudaMemcpyDeviceToHost,
                                                    lane.queue.get())));
  }
  return lane.queue.wait();
}

Status ProgramEncoder::choose(Lane& lane) {
  for (std::size_t i = 0; i < lane.jobs.size(); ++i) {
    Job& job = lane.jobs[i];
    if (job.encoding == nullptr) continue;
    if (job.encoding->left(answer(lane, job))) {
      leave(lane, i);
    } else {
      job.piece_bytes = job.encoding->wanted(answer(lane, job)).bytes;
    }
  }
  QUERN_RETURN_IF_ERROR(bring_back(
      lane, [&](const Job& job) { return lane.base + job.work_at + job.encoding->wanted(answer(lane, job)).begin; }));
  return run_tasks(runner_, lane.jobs.size(), [&](std::size_t i) -> Status {
    Job& job = lane.jobs[i];
    if (job.encoding == nullptr) return {};
    job.program.clear();
    if (!job.encoding->choose(answer(lane, job), piece(lane, job), job.program)) {
      leave_or_store_raw(lane, i);
    } else if (job.program.size() > kernels_.second_program_bytes()) {
      leave(lane, i);
    }
    return {};
  });
}

Status ProgramEncoder::submit_second(Lane& lane) {
  MemoryParts second;
  lane.count = 0;
  for (Job& job : lane.jobs) {
    if (job.encoding == nullptr) continue;
    ++lane.count;
    job.program_at = second.add(job.program.size());
  }
  if (lane.count == 0) return {};
  const std::uint64_t tasks_at = second.add(lane.count * sizeof(EncodeTask));
  std::uint64_t task_at = tasks_at;
  for (const Job& job : lane.jobs) {
    if (job.encoding == nullptr) continue;
    std::memcpy(lane.in.data() + job.program_at, job.program.data(), job.program.size());
    const EncodeTask task = task_of(lane, job, lane.second + job.program_at);
    std::memcpy(lane.in.data() + task_at, &task, sizeof task);
    task_at += sizeof task;
  }
  const cudaStream_t queue = lane.queue.get();
  cudaError_t error = cudaMemcpyAsync(lane.second, lane.in.data(), static_cast<std::size_t>(second.bytes),
                                      cudaMemcpyHostToDevice, queue);
  if (error == cudaSuccess)
    error = kernels_.write(reinterpret_cast<const EncodeTask*>(lane.second + tasks_at), lane.count, queue);
  if (error == cudaSuccess)
    error = cudaMemcpyAsync(lane.out.data(), lane.answers, static_cast<std::size_t>(lane.answers_bytes),
                            cudaMemcpyDeviceToHost, queue);
  return to_status(error);
}

Status ProgramEncoder::deliver(Lane& lane) {
  for (std::size_t i = 0; i < lane.jobs.size(); ++i) {
    Job& job = lane.jobs[i];
    if (job.encoding == nullptr) continue;
    job.piece_bytes = job.encoding->written(answer(lane, job));
    if (job.piece_bytes == 0) leave_or_store_raw(lane, i);
  }
  QUERN_RETURN_IF_ERROR(bring_back(lane, [&](const Job& job) { return lane.base + job.elements_at; }));
  return run_tasks(runner_, lane.jobs.size(), [&](std::size_t i) -> Status {
    const Job& job = lane.jobs[i];
    if (job.encoding == nullptr) return {};
    ChunkToEncode& chunk = lane.chunks[i];
    chunk.bytes = job.encoding->finish(answer(lane, job), piece(lane, job), chunk.place);
    chunk.state = State::coded;
    if (chunk.bytes == 0) leave_or_store_raw(lane, i);
    return {};
  });
}

Status ProgramEncoder::finish(Lane& lane) {
  if (lane.chunks.empty()) return {};
  QUERN_RETURN_IF_ERROR(lane.queue.wait());
  QUERN_RETURN_IF_ERROR(choose(lane));
  QUERN_RETURN_IF_ERROR(submit_second(lane));
  QUERN_RETURN_IF_ERROR(lane.queue.wait());
  QUERN_RETURN_IF_ERROR(deliver(lane));
  lane.jobs.clear();
  lane.chunks = {};
  return {};
}

}  // namespace quern::cuda
