// Preparing, queueing and delivering.
#include "libcompress/cuda/jobs/job_decoder.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "libcompress/core/run_tasks.h"
#include "libcompress/cuda/memory_parts.h"
#include "libcompress/pipeline/boxes.h"

namespace quern::cuda {

using kernels::JobTask;

JobDecoder::JobDecoder(const Header& header, const SegmentLayout& layout, const ChunkDecoder& codec, TaskRunner& runner,
                       const JobKernels& kernels, LanePool& pool, const DeviceInfo& device)
    : codec_(codec),
      runner_(runner),
      kernels_(kernels),
      pool_(pool),
      device_(device.ordinal),
      element_bytes_(dtype_bytes(header.dtype)),
      chunk_bytes_(layout.full_chunk_bytes()),
      segment_chunks_(layout.segments() == 0 ? 1 : layout.segment_chunks(0)),
      host_(header, layout, &codec, false, runner) {
  // Lanes work in four to five times the values, and share the device with others.
  constexpr std::uint64_t kShare = 32;
  const std::uint64_t values = std::min(kLaneBytes, device.memory_bytes / kShare);
  lane_chunks_ = std::clamp<std::uint64_t>(values / std::max<std::uint64_t>(chunk_bytes_, 1), 1, kLaneChunks);
  lane_chunks_ = std::min(lane_chunks_, std::max<std::uint64_t>(layout.chunks(), 1));
  // Full waves where chunks take a quarter of their values, as most do.
  wave_bytes_ = std::max(lane_chunks_ * job_room(chunk_bytes_ / 4), job_room(chunk_bytes_));
  host_.decode_first_by(this);
}

JobDecoder::~JobDecoder() {
  const CurrentDevice current(device_);
  pool_.give_back_all(lanes_);
}

// Of each lane: jobs and classes, values and results; of each thread the job it makes, as it grows.
std::uint64_t JobDecoder::scratch_bytes() const {
  const std::uint64_t values = lane_chunks_ * chunk_bytes_;
  const std::uint64_t frames = lane_chunks_ * (sizeof(JobTask) + 3 * kernels::kJobAlignment);
  const std::uint64_t lane = wave_bytes_ + values / element_bytes_ + values + frames;
  return lanes_.kSlots * lane + runner_.width() * 2 * job_room(chunk_bytes_) + host_.scratch_bytes();
}

std::uint64_t JobDecoder::wanted_segments() const {
  return std::max<std::uint64_t>(1, lanes_.kSlots * lane_chunks_ / std::max<std::uint64_t>(segment_chunks_, 1));
}

Status JobDecoder::open() {
  if (open_) return {};
  QUERN_RETURN_IF_ERROR(pool_.take_all(lanes_, {}));
  open_ = true;
  return {};
}

Status JobDecoder::decode(std::span<SegmentJob> jobs, Vector<Hole>& holes) {
  const CurrentDevice current(device_);
  QUERN_RETURN_IF_ERROR(current.status());
  QUERN_RETURN_IF_ERROR(open());
  return host_.decode(jobs, holes);
}

Status JobDecoder::decode_chunks(std::span<CheckedChunk> chunks) {
  return lanes_.run([&] { return !chunks.empty(); }, [&](Lane& lane) { return harvest(lane); },
                    [&](Lane& lane) {
                      lane.chunks = chunks.first(wave(chunks));
                      chunks = chunks.subspan(lane.chunks.size());
                      QUERN_RETURN_IF_ERROR(prepare(lane));
                      return submit(lane);
                    });
}

bool JobDecoder::tells_special(const CheckedChunk& chunk) const {
  return chunk.out.special != nullptr && kernels_.reads_special();
}

/// The chunk's elements, and their classes, side by side.
MutableBox3 JobDecoder::dense_box(const CheckedChunk& chunk) const {
  MutableBox3 box;
  box.extents = chunk.out.extents;
  box.strides = {box.extents[1] * box.extents[2], box.extents[2]};
  box.special = tells_special(chunk) ? chunk.out.special : nullptr;
  box.special_strides = box.strides;
  return box;
}

std::uint64_t JobDecoder::job_room(std::uint64_t stored) const { return 2 * stored + kTableBytes; }

std::size_t JobDecoder::wave(std::span<const CheckedChunk> chunks) const {
  const std::size_t most = std::min<std::size_t>(chunks.size(), static_cast<std::size_t>(lane_chunks_));
  std::uint64_t bytes = job_room(chunks[0].bytes.size());
  std::size_t count = 1;
  for (; count < most; ++count) {
    bytes += job_room(chunks[count].bytes.size());
    if (bytes > wave_bytes_) break;
  }
  return count;
}

/// Makes the jobs of a wave, side by side where they go to the device from, in whatever order they get done.
Status JobDecoder::prepare(Lane& lane) {
  lane.places.assign(lane.chunks.size(), {});
  MemoryParts most;
  for (const CheckedChunk& chunk : lane.chunks) {
    most.add(job_room(chunk.bytes.size()));
    if (tells_special(chunk)) most.add(chunk.out.elems());
  }
  most.add(lane.chunks.size() * sizeof(JobTask));
  QUERN_RETURN_IF_ERROR(lane.in.reserve(most.bytes));
  std::atomic<std::uint64_t> taken{0};
  const auto take = [&](std::uint64_t count) {
    MemoryParts part;
    part.add(count);
    return taken.fetch_add(part.bytes, std::memory_order_relaxed);
  };
  QUERN_RETURN_IF_ERROR(run_tasks(runner_, lane.chunks.size(), [&](std::size_t i) -> Status {
    const CheckedChunk& chunk = lane.chunks[i];
    Place& place = lane.places[i];
    ChunkJob job;
    place.has_job = kernels_.prepare(codec_.device_state(), chunk.bytes, dense_box(chunk), job) &&
                    job.bytes.size() <= job_room(chunk.bytes.size());
    if (!place.has_job) return {};
    place.work_bytes = job.work_bytes;
    place.job = take(job.bytes.size());
    std::memcpy(lane.in.data() + place.job, job.bytes.data(), job.bytes.size());
    if (!tells_special(chunk)) return {};
    place.special = take(chunk.out.elems());
    gather({chunk.out.special, chunk.out.extents, chunk.out.special_strides}, 1, lane.in.data() + place.special);
    return {};
  }));
  lane.in_bytes = taken;
  return {};
}

Status JobDecoder::submit(Lane& lane) {
  MemoryParts in{lane.in_bytes};
  MemoryParts out;
  MemoryParts work;
  std::uint32_t count = 0;
  for (std::size_t i = 0; i < lane.chunks.size(); ++i) {
    Place& place = lane.places[i];
    if (!place.has_job) continue;
    ++count;
    place.out = out.add(lane.chunks[i].out.elems() * element_bytes_);
    place.work = work.add(place.work_bytes);
  }
  const std::uint64_t tasks_at = in.add(count * sizeof(JobTask));
  lane.out_bytes = out.bytes;
  out.add(count * sizeof(std::uint32_t));
  if (count == 0) return {};
  QUERN_RETURN_IF_ERROR(lane.out.reserve(out.bytes));
  QUERN_RETURN_IF_ERROR(lane.device.reserve(in.bytes + out.bytes + work.bytes));
  std::uint8_t* const device_in = lane.device.data();
  std::uint8_t* const device_out = device_in + in.bytes;
  std::uint8_t* const device_work = device_out + out.bytes;
  std::uint64_t task_at = tasks_at;
  for (const Place& place : lane.places) {
    if (!place.has_job) continue;
    const JobTask task{device_in + place.job, device_work + place.work, device_out + place.out,
                       device_in + place.special};
    std::memcpy(lane.in.data() + task_at, &task, sizeof task);
    task_at += sizeof task;
  }
  const cudaStream_t queue = lane.queue.get();
  cudaError_t error =
      cudaMemcpyAsync(device_in, lane.in.data(), static_cast<std::size_t>(in.bytes), cudaMemcpyHostToDevice, queue);
  if (error == cudaSuccess)
    error = kernels_.decode(reinterpret_cast<const JobTask*>(device_in + tasks_at), count,
                            reinterpret_cast<std::uint32_t*>(device_out + lane.out_bytes), queue);
  if (error == cudaSuccess)
    error = cudaMemcpyAsync(lane.out.data(), device_out, static_cast<std::size_t>(out.bytes), cudaMemcpyDeviceToHost,
                            queue);
  return to_status(error);
}

Status JobDecoder::harvest(Lane& lane) {
  if (lane.chunks.empty()) return {};
  QUERN_RETURN_IF_ERROR(lane.queue.wait());
  const auto* result = reinterpret_cast<const std::uint32_t*>(lane.out.data() + lane.out_bytes);
  for (std::size_t i = 0; i < lane.chunks.size(); ++i)
    if (lane.places[i].has_job) lane.chunks[i].done = *result++ == 0;
  runner_.run(lane.chunks.size(), [&](std::size_t i) {
    const CheckedChunk& chunk = lane.chunks[i];
    if (chunk.done) scatter(lane.out.data() + lane.places[i].out, element_bytes_, chunk.out);
  });
  lane.chunks = {};
  return {};
}

}  // namespace quern::cuda
