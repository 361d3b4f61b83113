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

ProgramEncoder::ProgramEncoder(const StreamSetup& setup, const CompressOptions& options, TaskRunner& runner,
                               const ProgramEncodeKernels& kernels, LanePool& pool, const DeviceInfo& device)
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
  const std::uint64_t on_device = chunk_bytes_ + chunk_bytes_ / element_bytes_ + room_.work + room_.first_program +
                                  room_.later_program + kernels.answer_bytes();
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

// Elements and classes on their way there, what stands for elements there, what comes back, programs and answers, and
// what chunks keep; scratch for fits, which the threads do not share with what encodes chunks that the device leaves.
std::uint64_t ProgramEncoder::scratch_bytes() const {
  const std::uint64_t chunk = 3 * chunk_bytes_ + chunk_bytes_ / element_bytes_ + 2 * room_.first_program +
                              room_.later_program + kernels_.answer_bytes() + room_.kept;
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

void ProgramEncoder::end(Lane& lane, std::size_t i, EncodeStep how) {
  lane.chunks[i].state = how == EncodeStep::done ? State::coded : how == EncodeStep::raw ? State::raw : State::left;
  lane.jobs[i].encoding.reset();
}

Status ProgramEncoder::start(Lane& lane) {
  lane.jobs.clear();
  lane.jobs.resize(lane.chunks.size());
  return run_tasks(runner_, lane.chunks.size(), [&](std::size_t i) -> Status {
    Job& job = lane.jobs[i];
    QUERN_ASSIGN_OR_RETURN(auto scratch, scratch_.lend());
    job.encoding = kernels_.chunk(setup_.encoder->device_state());
    if (!job.encoding->start(lane.chunks[i].in, scratch.span(), job.program) ||
        job.program.size() > room_.first_program)
      end(lane, i, EncodeStep::host);
    return {};
  });
}

EncodeTask ProgramEncoder::task_of(const Lane& lane, const Job& job, std::uint8_t* program) {
  return {program, lane.base + job.work_at, lane.base + job.elements_at, lane.base + job.special_at,
          lane.answers + job.answer_at};
}

bool ProgramEncoder::any_at(const Lane& lane, EncodeStep step) {
  return std::any_of(lane.jobs.begin(), lane.jobs.end(),
                     [&](const Job& job) { return job.encoding != nullptr && job.step == step; });
}

Status ProgramEncoder::submit_first(Lane& lane) {
  MemoryParts in;
  MemoryParts answers;
  MemoryParts later;
  MemoryParts work;
  std::uint32_t count = 0;
  for (Job& job : lane.jobs) {
    if (job.encoding == nullptr) continue;
    ++count;
    const ConstBox3& box = job.encoding->box();
    job.program_at = in.add(job.program.size());
    job.elements_at = in.add(box.elems() * job.encoding->element_bytes());
    job.special_at = box.special != nullptr ? in.add(box.elems()) : 0;
    job.answer_at = answers.add(kernels_.answer_bytes());
    later.add(room_.later_program);
    job.work_at = work.add(job.encoding->work_bytes());
  }
  if (count == 0) return {};
  const std::uint64_t tasks_at = in.add(count * sizeof(EncodeTask));
  later.add(count * sizeof(EncodeTask));
  lane.answers_bytes = answers.bytes;
  QUERN_RETURN_IF_ERROR(lane.in.reserve(std::max(in.bytes, later.bytes)));
  QUERN_RETURN_IF_ERROR(lane.out.reserve(answers.bytes));
  QUERN_RETURN_IF_ERROR(lane.device.reserve(in.bytes + answers.bytes + later.bytes + work.bytes));
  lane.base = lane.device.data();
  lane.answers = lane.base + in.bytes;
  lane.later = lane.answers + answers.bytes;
  std::uint64_t task_at = tasks_at;
  for (Job& job : lane.jobs) {
    if (job.encoding == nullptr) continue;
    job.work_at += in.bytes + answers.bytes + later.bytes;
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
    error = kernels_.encode(reinterpret_cast<const EncodeTask*>(lane.base + tasks_at), count, queue);
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

Status ProgramEncoder::advance(Lane& lane) {
  const auto waits = [](const Job& job) { return job.encoding != nullptr && job.step == EncodeStep::encode; };
  for (Job& job : lane.jobs) job.piece_bytes = waits(job) ? job.encoding->wanted(answer(lane, job)).bytes : 0;
  QUERN_RETURN_IF_ERROR(bring_back(
      lane, [&](const Job& job) { return lane.base + job.work_at + job.encoding->wanted(answer(lane, job)).begin; }));
  return run_tasks(runner_, lane.jobs.size(), [&](std::size_t i) -> Status {
    Job& job = lane.jobs[i];
    if (!waits(job)) return {};
    job.program.clear();
    job.step = job.encoding->next(answer(lane, job), piece(lane, job), job.program);
    const bool more = job.step == EncodeStep::encode || job.step == EncodeStep::write;
    if (!more) {
      end(lane, i, job.step);
    } else if (job.program.size() > room_.later_program) {
      end(lane, i, EncodeStep::host);
    }
    return {};
  });
}

Status ProgramEncoder::submit(Lane& lane, EncodeStep step) {
  MemoryParts later;
  std::uint32_t count = 0;
  for (Job& job : lane.jobs) {
    if (job.encoding == nullptr || job.step != step) continue;
    ++count;
    job.program_at = later.add(job.program.size());
  }
  const std::uint64_t tasks_at = later.add(count * sizeof(EncodeTask));
  std::uint64_t task_at = tasks_at;
  for (const Job& job : lane.jobs) {
    if (job.encoding == nullptr || job.step != step) continue;
    std::memcpy(lane.in.data() + job.program_at, job.program.data(), job.program.size());
    const EncodeTask task = task_of(lane, job, lane.later + job.program_at);
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
    error = cudaMemcpyAsync(lane.out.data(), lane.answers, static_cast<std::size_t>(lane.answers_bytes),
                            cudaMemcpyDeviceToHost, queue);
  return to_status(error);
}

Status ProgramEncoder::deliver(Lane& lane) {
  for (Job& job : lane.jobs)
    if (job.encoding != nullptr) job.piece_bytes = job.encoding->written(answer(lane, job));
  QUERN_RETURN_IF_ERROR(bring_back(lane, [&](const Job& job) { return lane.base + job.elements_at; }));
  return run_tasks(runner_, lane.jobs.size(), [&](std::size_t i) -> Status {
    const Job& job = lane.jobs[i];
    if (job.encoding == nullptr) return {};
    ChunkToEncode& chunk = lane.chunks[i];
    end(lane, i, job.encoding->finish(answer(lane, job), piece(lane, job), chunk.place, chunk.bytes));
    return {};
  });
}

Status ProgramEncoder::finish(Lane& lane) {
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
  lane.jobs.clear();
  lane.chunks = {};
  return {};
}

}  // namespace quern::cuda
