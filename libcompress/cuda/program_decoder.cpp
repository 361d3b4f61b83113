// Preparing, queueing and delivering.
#include "libcompress/cuda/program_decoder.h"

#include <algorithm>
#include <cstring>

#include "libcompress/core/run_tasks.h"
#include "libcompress/cuda/memory_parts.h"
#include "libcompress/pipeline/boxes.h"

namespace quern::cuda {

using kernels::ProgramTask;

ProgramDecoder::ProgramDecoder(const Header& header, const SegmentLayout& layout, const ChunkDecoder& codec,
                               TaskRunner& runner, const ProgramKernels& kernels, LanePool& pool,
                               const DeviceInfo& device)
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
  host_.decode_first_by(this);
}

ProgramDecoder::~ProgramDecoder() {
  const CurrentDevice current(device_);
  for (Lane& lane : lanes_) pool_.give_back(std::move(lane));
}

// A program takes no more than the values and its tables.
std::uint64_t ProgramDecoder::scratch_bytes() const {
  return kLanes * lane_chunks_ * (2 * (2 * chunk_bytes_ + kMostTableBytes)) + host_.scratch_bytes();
}

std::uint64_t ProgramDecoder::wanted_segments() const {
  return std::max<std::uint64_t>(1, kLanes * lane_chunks_ / std::max<std::uint64_t>(segment_chunks_, 1));
}

Status ProgramDecoder::open() {
  if (open_) return {};
  for (Lane& lane : lanes_) {
    QUERN_ASSIGN_OR_RETURN(static_cast<StagingLane&>(lane), pool_.take(0, 0, 0, 0));
  }
  open_ = true;
  return {};
}

Status ProgramDecoder::decode(std::span<SegmentJob> jobs, Vector<Hole>& holes) {
  const CurrentDevice current(device_);
  QUERN_RETURN_IF_ERROR(current.status());
  QUERN_RETURN_IF_ERROR(open());
  return host_.decode(jobs, holes);
}

Status ProgramDecoder::decode_chunks(std::span<CheckedChunk> chunks) {
  std::size_t next_lane = 0;
  while (!chunks.empty()) {
    Lane& lane = lanes_[next_lane];
    next_lane = (next_lane + 1) % kLanes;
    QUERN_RETURN_IF_ERROR(harvest(lane));
    lane.chunks = chunks.first(std::min<std::size_t>(chunks.size(), static_cast<std::size_t>(lane_chunks_)));
    chunks = chunks.subspan(lane.chunks.size());
    QUERN_RETURN_IF_ERROR(prepare(lane));
    QUERN_RETURN_IF_ERROR(submit(lane));
  }
  for (std::size_t i = 0; i < kLanes; ++i) QUERN_RETURN_IF_ERROR(harvest(lanes_[(next_lane + i) % kLanes]));
  return {};
}

/// The chunk's elements, and their classes, side by side.
MutableBox3 ProgramDecoder::dense_box(const CheckedChunk& chunk) const {
  MutableBox3 box;
  box.extents = chunk.out.extents;
  box.strides = {box.extents[1] * box.extents[2], box.extents[2]};
  box.special = chunk.out.special;
  box.special_strides = box.strides;
  return box;
}

Status ProgramDecoder::prepare(Lane& lane) {
  lane.programs.clear();
  lane.programs.resize(lane.chunks.size());
  return run_tasks(runner_, lane.chunks.size(), [&](std::size_t i) -> Status {
    const CheckedChunk& chunk = lane.chunks[i];
    ChunkProgram& program = lane.programs[i];
    const bool can = kernels_.prepare(codec_.device_state(), chunk.bytes, dense_box(chunk), program);
    if (!can || program.bytes.size() > 2 * chunk_bytes_ + kMostTableBytes) program = {};
    return {};
  });
}

Status ProgramDecoder::submit(Lane& lane) {
  MemoryParts in;
  MemoryParts out;
  MemoryParts work;
  std::uint32_t count = 0;
  lane.places.assign(lane.chunks.size(), {});
  for (std::size_t i = 0; i < lane.chunks.size(); ++i) {
    const CheckedChunk& chunk = lane.chunks[i];
    if (lane.programs[i].bytes.empty()) continue;
    ++count;
    lane.places[i].program = in.add(lane.programs[i].bytes.size());
    if (chunk.out.special != nullptr) lane.places[i].special = in.add(chunk.out.elems());
    lane.places[i].out = out.add(chunk.out.elems() * element_bytes_);
    lane.places[i].work = work.add(lane.programs[i].work_bytes);
  }
  const std::uint64_t tasks_at = in.add(count * sizeof(ProgramTask));
  lane.out_bytes = out.bytes;
  out.add(count * sizeof(std::uint32_t));
  if (count == 0) return {};
  QUERN_RETURN_IF_ERROR(lane.in.reserve(in.bytes));
  QUERN_RETURN_IF_ERROR(lane.out.reserve(out.bytes));
  QUERN_RETURN_IF_ERROR(lane.device.reserve(in.bytes + out.bytes + work.bytes));
  std::uint8_t* const device_in = lane.device.data();
  std::uint8_t* const device_out = device_in + in.bytes;
  std::uint8_t* const device_work = device_out + out.bytes;
  std::uint64_t task_at = tasks_at;
  for (std::size_t i = 0; i < lane.chunks.size(); ++i) {
    if (lane.programs[i].bytes.empty()) continue;
    const Place& place = lane.places[i];
    const ProgramTask task{device_in + place.program, device_work + place.work, device_out + place.out,
                           device_in + place.special};
    std::memcpy(lane.in.data() + task_at, &task, sizeof task);
    task_at += sizeof task;
  }
  runner_.run(lane.chunks.size(), [&](std::size_t i) {
    const CheckedChunk& chunk = lane.chunks[i];
    Vector<std::uint8_t>& program = lane.programs[i].bytes;
    if (program.empty()) return;
    std::memcpy(lane.in.data() + lane.places[i].program, program.data(), program.size());
    if (chunk.out.special == nullptr) return;
    gather({chunk.out.special, chunk.out.extents, chunk.out.special_strides}, 1,
           lane.in.data() + lane.places[i].special);
  });
  const cudaStream_t queue = lane.queue.get();
  cudaError_t error =
      cudaMemcpyAsync(device_in, lane.in.data(), static_cast<std::size_t>(in.bytes), cudaMemcpyHostToDevice, queue);
  if (error == cudaSuccess)
    error = kernels_.decode(reinterpret_cast<const ProgramTask*>(device_in + tasks_at), count,
                            reinterpret_cast<std::uint32_t*>(device_out + lane.out_bytes), queue);
  if (error == cudaSuccess)
    error = cudaMemcpyAsync(lane.out.data(), device_out, static_cast<std::size_t>(out.bytes), cudaMemcpyDeviceToHost,
                            queue);
  return to_status(error);
}

Status ProgramDecoder::harvest(Lane& lane) {
  if (lane.chunks.empty()) return {};
  QUERN_RETURN_IF_ERROR(lane.queue.wait());
  const auto* answer = reinterpret_cast<const std::uint32_t*>(lane.out.data() + lane.out_bytes);
  for (std::size_t i = 0; i < lane.chunks.size(); ++i)
    if (!lane.programs[i].bytes.empty()) lane.chunks[i].done = *answer++ == 0;
  runner_.run(lane.chunks.size(), [&](std::size_t i) {
    const CheckedChunk& chunk = lane.chunks[i];
    if (chunk.done) scatter(lane.out.data() + lane.places[i].out, element_bytes_, chunk.out);
  });
  lane.chunks = {};
  return {};
}

}  // namespace quern::cuda
