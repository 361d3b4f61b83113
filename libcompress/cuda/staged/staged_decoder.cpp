// Staging, queueing and delivering.
#include "libcompress/cuda/staged/staged_decoder.h"

#include <algorithm>
#include <cstring>

#include "libcompress/core/element_of.h"
#include "libcompress/cuda/staged/staging.h"
#include "libcompress/cuda/stream/chunk_layout.cuh"
#include "libcompress/cuda/stream/mask_waves.cuh"
#include "libcompress/cuda/stream/segment_reader.cuh"
#include "libcompress/cuda/stream/stream_end.cuh"
#include "libcompress/pipeline/boxes.h"

namespace quern::cuda {

StagedDecoder::StagedDecoder(const Header& header, const SegmentLayout& layout, const ChunkDecoder& codec,
                             TaskRunner& runner, const ChunkKernels& kernels, LanePool& pool, int device)
    : header_(header),
      layout_(layout),
      codec_(codec),
      runner_(runner),
      kernels_(kernels),
      pool_(pool),
      device_(device),
      host_(header, layout, &codec, false, runner),
      element_bytes_(dtype_bytes(header.dtype)) {
  const std::uint64_t segments = std::min(kLaneSegments, layout.segments());
  window_bytes_ = largest_span(layout, segments) * element_bytes_;
  stream_bytes_ = segments == 0 ? 0 : segments * max_segment_bytes(layout, 0);
  const auto chunks = segments == 0 ? 0 : static_cast<std::uint32_t>(layout.segment_chunks(0));
  const auto slots = static_cast<std::uint32_t>(segments) * chunks;
  tables_ = SegmentTables({1, static_cast<std::uint32_t>(segments), chunks, slots, slots}, workspace_);
  stored_ = workspace_.add<kernels::StoredChunk>(slots);
  damaged_ = workspace_.add<std::uint32_t>(slots);
  decoding_ = workspace_.add<std::uint8_t>(kernels.decode_workspace_bytes(header.dtype, 1, slots, slots));
  if (segments != 0) {
    mask_workers_ = kernels::MaskWorkers::restoring(layout.segment_box(0).extents, static_cast<std::uint32_t>(segments),
                                                    header.may_have_mask_levels());
    mask_jobs_ = workspace_.add<kernels::RestoreJob>(segments);
    mask_damage_ = workspace_.add<kernels::MaskDamage>(segments);
    mask_memory_ = workspace_.add<std::uint8_t>(mask_workers_.workspace_bytes());
  }
  values_ = workspace_.add<std::uint8_t>(window_bytes_);
  bytes_ = workspace_.add<std::uint8_t>(stream_bytes_);
}

StagedDecoder::~StagedDecoder() {
  const CurrentDevice current(device_);
  pool_.give_back_all(lanes_);
}

std::uint64_t StagedDecoder::scratch_bytes() const {
  return lanes_.kSlots * (window_bytes_ + stream_bytes_ + tables_.chunks.offset) + host_.scratch_bytes();
}

Status StagedDecoder::open() {
  if (open_) return {};
  QUERN_RETURN_IF_ERROR(
      pool_.take_all(lanes_, {workspace_.bytes(), stream_bytes_, tables_.chunks.offset, window_bytes_}));
  open_ = true;
  return {};
}

// Whole segments in a row, of possible sizes. Regions take a few chunks from here and there: the host does that.
bool StagedDecoder::can_stage(std::span<const SegmentJob> jobs) const {
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const SegmentJob& job = jobs[i];
    if (!job.read_status.ok() || job.wanted != ~UINT64_C(0) || job.segment != jobs[0].segment + i) return false;
    if (job.bytes.size() > max_segment_bytes(layout_, job.segment)) return false;
  }
  return true;
}

Status StagedDecoder::submit(Lane& lane, std::span<SegmentJob> jobs) {
  const ElementSpan span = span_of(layout_, jobs[0].segment, jobs.size());
  lane.jobs = jobs;
  lane.begin = span.begin;
  auto* const records = tables_.segments.at(lane.tables.data());
  std::uint64_t offset = 0;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (!jobs[i].bytes.empty()) std::memcpy(lane.in.data() + offset, jobs[i].bytes.data(), jobs[i].bytes.size());
    records[i] = SegmentRecord{};
    records[i].offset = offset;
    records[i].bytes = jobs[i].bytes.size();
    offset += jobs[i].bytes.size();
  }
  DeviceStream stream;
  stream.window = values_.at(lane.device.data());
  stream.window_begin = span.begin;
  stream.bytes = bytes_.at(lane.device.data());
  stream.capacity = offset;
  stream.layout = layout_;
  stream.first_segment = jobs[0].segment;
  stream.segments = jobs.size();
  stream.header_checksum = header_.checksum;
  stream.mask_levels = header_.may_have_mask_levels();
  const auto state = codec_.device_state();
  std::memcpy(stream.codec_state, state.data(), state.size());
  std::memcpy(lane.tables.data(), &stream, sizeof stream);
  return enqueue(lane, offset, span.elems() * element_bytes_);
}

Status StagedDecoder::enqueue(Lane& lane, std::uint64_t stream_bytes, std::uint64_t values_bytes) {
  std::uint8_t* const device = lane.device.data();
  const cudaStream_t queue = lane.queue.get();
  StreamTables tables = tables_.bind(device);
  tables.segments = static_cast<std::uint32_t>(lane.jobs.size());
  kernels::CudaChunk* const boxes = tables_.boxes.at(device);
  const ChunkPlaces places{header_.dtype, tables.streams, 1, tables.slots, tables.slots, boxes, codec_.device_state()};
  const auto queued = [&]() -> cudaError_t {
    cudaError_t error = cudaMemcpyAsync(bytes_.at(device), lane.in.data(), static_cast<std::size_t>(stream_bytes),
                                        cudaMemcpyHostToDevice, queue);
    if (error == cudaSuccess)
      error = cudaMemcpyAsync(tables.streams, lane.tables.data(), static_cast<std::size_t>(tables_.chunks.offset),
                              cudaMemcpyHostToDevice, queue);
    if (error == cudaSuccess)
      error = read_segments_async(tables, {boxes, stored_.at(device), mask_jobs_.at(device), mask_damage_.at(device)},
                                  queue);
    if (error == cudaSuccess)
      error = kernels_.decode(places, stored_.at(device), decoding_.at(device), damaged_.at(device), queue);
    if (error == cudaSuccess)
      error =
          kernels::restore_jobs_async(element_of(header_.dtype), mask_jobs_.at(device), tables.segments,
                                      header_.may_have_mask_levels(), mask_workers_, mask_memory_.at(device), queue);
    if (error == cudaSuccess) error = join_statuses_async(tables, damaged_.at(device), mask_damage_.at(device), queue);
    if (error == cudaSuccess)
      error = cudaMemcpyAsync(lane.tables.data(), tables.streams, static_cast<std::size_t>(tables_.chunks.offset),
                              cudaMemcpyDeviceToHost, queue);
    if (error == cudaSuccess)
      error = cudaMemcpyAsync(lane.out.data(), values_.at(device), static_cast<std::size_t>(values_bytes),
                              cudaMemcpyDeviceToHost, queue);
    return error;
  };
  return to_status(queued());
}

void StagedDecoder::deliver(const Lane& lane, std::size_t i) const {
  const SegmentJob& job = lane.jobs[i];
  const GridBox box = layout_.segment_box(job.segment);
  const auto& extents = layout_.grid().extents;
  const std::uint8_t* const from = lane.out.data() + (layout_.flat(box.begin) - lane.begin) * element_bytes_;
  auto* const to = static_cast<std::uint8_t*>(job.out.data);
  const auto row_bytes = static_cast<std::size_t>(box.extents[2] * element_bytes_);
  for (std::uint64_t z = 0; z < box.extents[0]; ++z)
    for (std::uint64_t y = 0; y < box.extents[1]; ++y)
      std::memcpy(to + (z * job.out.strides[0] + y * job.out.strides[1]) * element_bytes_,
                  from + (z * extents[1] + y) * extents[2] * element_bytes_, row_bytes);
}

Status StagedDecoder::harvest(Lane& lane, bool& good) {
  if (lane.jobs.empty()) return {};
  QUERN_RETURN_IF_ERROR(lane.queue.wait());
  DeviceStream stream;
  std::memcpy(&stream, lane.tables.data(), sizeof stream);
  good = good && stream.status == StatusCode::ok;
  if (good) runner_.run(lane.jobs.size(), [&](std::size_t i) { deliver(lane, i); });
  lane.jobs = {};
  return {};
}

Status StagedDecoder::decode(std::span<SegmentJob> jobs, Vector<Hole>& holes) {
  if (!can_stage(jobs)) return host_.decode(jobs, holes);
  const CurrentDevice current(device_);
  QUERN_RETURN_IF_ERROR(current.status());
  QUERN_RETURN_IF_ERROR(open());
  bool good = true;
  std::span<SegmentJob> left = jobs;
  QUERN_RETURN_IF_ERROR(lanes_.run([&] { return !left.empty() && good; },
                                   [&](Lane& lane) { return harvest(lane, good); },
                                   [&](Lane& lane) {
                                     const auto next = left.first(std::min<std::size_t>(kLaneSegments, left.size()));
                                     left = left.subspan(next.size());
                                     return submit(lane, next);
                                   }));
  if (good) return {};
  const Status named = host_.decode(jobs, holes);
  if (!named.ok()) return named;
  return Status(StatusCode::internal, "the device refused segments that the host decodes");
}

}  // namespace quern::cuda
