// Staging, queueing and harvesting.
#include "libcompress/cuda/staged/staged_encoder.h"

#include <algorithm>
#include <cstring>

#include "libcompress/cuda/staged/staging.h"
#include "libcompress/cuda/stream/chunk_layout.cuh"
#include "libcompress/cuda/stream/segment_writer.cuh"
#include "libcompress/pipeline/encode/setup.h"

namespace quern::cuda {

StagedEncoder::StagedEncoder(const StreamSetup& setup, const CompressOptions& options, TaskRunner& runner,
                             const ChunkKernels& kernels, LanePool& pool, int device)
    : setup_(setup),
      options_(options),
      runner_(runner),
      kernels_(kernels),
      pool_(pool),
      device_(device),
      element_bytes_(dtype_bytes(setup.header.dtype)) {
  const SegmentLayout& layout = setup_.layout;
  const std::uint64_t segments = std::min(kLaneSegments, layout.segments());
  slot_bytes_ = (layout.full_chunk_bytes() + kPartAlignment - 1) / kPartAlignment * kPartAlignment;
  window_bytes_ = largest_span(layout, segments) * element_bytes_;
  stream_bytes_ =
      segments == 0 ? 0 : segments * (max_segment_bytes(layout, 0) + varint_bytes(max_segment_bytes(layout, 0)));
  const auto chunks = segments == 0 ? 0 : static_cast<std::uint32_t>(layout.segment_chunks(0));
  const auto slots = static_cast<std::uint32_t>(segments) * chunks;
  tables_ = SegmentTables({1, static_cast<std::uint32_t>(segments), chunks, slots, slots}, workspace_);
  if (segments != 0) {
    plan_.mask = mask_rules(setup.header.dtype, options, setup.header.enforced, setup.header.may_have_mask_levels());
    plan_.mask.views = setup.mask_views;
    masks_ = StagedMasks(layout, tables_.shape, slot_bytes_, static_cast<std::uint32_t>(options.fill_bits.size()),
                         plan_.mask.by_levels, workspace_);
  }
  sizes_ = workspace_.add<std::uint32_t>(tables_.shape.chunk_places());
  parts_bytes_ = kernels.parts_bytes(setup.header.dtype, setup.header.enforced.kind, tables_.shape.slot_places());
  parts_ = workspace_.add<std::uint8_t>(parts_bytes_);
  targets_ = workspace_.add<std::uint8_t*>(parts_bytes_ == 0 ? 0 : tables_.shape.slot_places());
  values_ = workspace_.add<std::uint8_t>(window_bytes_);
  slots_ = workspace_.add<std::uint8_t>(tables_.shape.chunk_places() * slot_bytes_);
  bytes_ = workspace_.add<std::uint8_t>(stream_bytes_);
}

StagedEncoder::~StagedEncoder() {
  const CurrentDevice current(device_);
  pool_.give_back_all(lanes_);
}

std::uint64_t StagedEncoder::bytes_per_segment() const {
  if (setup_.layout.segments() == 0) return 0;
  return max_segment_bytes(setup_.layout, 0) + sizeof(Result);
}

std::uint64_t StagedEncoder::scratch_bytes() const {
  return lanes_.kSlots * (window_bytes_ + stream_bytes_ + tables_.boxes.offset + masks_.head_bytes());
}

Status StagedEncoder::open() {
  if (open_) return {};
  QUERN_RETURN_IF_ERROR(pool_.take_all(
      lanes_, {workspace_.bytes(), window_bytes_, tables_.boxes.offset + masks_.head_bytes(), stream_bytes_}));
  open_ = true;
  return {};
}

Status StagedEncoder::submit(Lane& lane, std::uint64_t first, std::size_t count, const ArrayWindow& window) {
  const SegmentLayout& layout = setup_.layout;
  const ElementSpan span = span_of(layout, first, count);
  const std::uint64_t bytes = span.elems() * element_bytes_;
  const std::uint8_t* const from = window.data + (span.begin - window.begin) * element_bytes_;
  copy_in_pieces(runner_, lane.in.data(), from, bytes);
  lane.first = first;
  lane.count = count;
  DeviceStream stream;
  stream.window = values_.at(lane.device.data());
  stream.window_begin = span.begin;
  stream.bytes = bytes_.at(lane.device.data());
  stream.capacity = stream_bytes_;
  stream.layout = layout;
  stream.first_segment = first;
  stream.segments = count;
  stream.header_checksum = setup_.header.checksum;
  const auto state = setup_.encoder->device_state();
  std::memcpy(stream.codec_state, state.data(), state.size());
  std::memcpy(lane.tables.data(), &stream, sizeof stream);
  masks_.fill_head(lane.tables.data() + tables_.boxes.offset, plan_, options_.fill_bits);
  return enqueue(lane, bytes);
}

Status StagedEncoder::enqueue(Lane& lane, std::uint64_t values_bytes) {
  std::uint8_t* const device = lane.device.data();
  const cudaStream_t queue = lane.queue.get();
  StreamTables tables = tables_.bind(device);
  tables.segments = static_cast<std::uint32_t>(lane.count);
  const ChunkPlaces places{
      setup_.header.dtype,           tables.streams, 1, tables.slots, tables.slots, tables_.boxes.at(device),
      setup_.encoder->device_state()};
  std::uint8_t* const mask_head = lane.tables.data() + tables_.boxes.offset;
  EncodedSlots slots{slots_.at(device), slot_bytes_, sizes_.at(device)};
  if (parts_bytes_ != 0) {
    slots.parts = parts_.at(device);
    slots.targets = targets_.at(device);
  }
  const auto queued = [&]() -> cudaError_t {
    cudaError_t error = cudaMemcpyAsync(values_.at(device), lane.in.data(), static_cast<std::size_t>(values_bytes),
                                        cudaMemcpyHostToDevice, queue);
    if (error == cudaSuccess)
      error = cudaMemcpyAsync(tables.streams, lane.tables.data(), sizeof(DeviceStream), cudaMemcpyHostToDevice, queue);
    if (error == cudaSuccess) error = masks_.send_async(mask_head, device, queue);
    if (error == cudaSuccess)
      error = start_encoding_async(tables, tables_.boxes.at(device), masks_.zeroed(device), queue);
    if (error == cudaSuccess) error = kernels_.encode(places, slots, masks_.scan(device), queue);
    if (error == cudaSuccess) error = masks_.encode_async(tables, kernels_, setup_.header.dtype, slots, device, queue);
    if (error == cudaSuccess) error = place_segments_async(tables, slots, 0, queue);
    if (error == cudaSuccess) error = write_chunks_async(tables, slots, queue);
    if (error == cudaSuccess && parts_bytes_ != 0) error = kernels_.join(places, slots, queue);
    if (error == cudaSuccess) error = seal_segments_async(tables, queue);
    if (error == cudaSuccess)
      error = cudaMemcpyAsync(lane.tables.data(), device, static_cast<std::size_t>(tables_.boxes.offset),
                              cudaMemcpyDeviceToHost, queue);
    if (error == cudaSuccess) error = masks_.bring_back_async(mask_head, device, queue);
    return error;
  };
  return to_status(queued());
}

Status StagedEncoder::harvest(Lane& lane) {
  if (lane.count == 0) return {};
  const std::size_t count = std::exchange(lane.count, 0);
  QUERN_RETURN_IF_ERROR(lane.queue.wait());
  DeviceStream stream;
  std::memcpy(&stream, lane.tables.data(), sizeof stream);
  if (stream.status != StatusCode::ok)
    return Status(StatusCode::internal, "the device could not place its segments: status {0}",
                  static_cast<std::int64_t>(stream.status));
  QUERN_RETURN_IF_ERROR(
      to_status(cudaMemcpyAsync(lane.out.data(), bytes_.at(lane.device.data()), static_cast<std::size_t>(stream.end),
                                cudaMemcpyDeviceToHost, lane.queue.get())));
  QUERN_RETURN_IF_ERROR(lane.queue.wait());
  const auto* const records = tables_.segments.at(lane.tables.data());
  const auto* const chunks = tables_.chunks.at(lane.tables.data());
  for (std::size_t i = 0; i < count; ++i) {
    Result& result = results_[lane.result + i];
    keep(lane.result + i, {lane.out.data() + records[i].offset, static_cast<std::size_t>(records[i].bytes)});
    const std::uint64_t in_segment = setup_.layout.segment_chunks(lane.first + i);
    for (std::uint64_t k = 0; k < in_segment; ++k)
      result.raw_chunks += chunks[i * tables_.shape.chunks + k].form == ChunkForm::raw;
  }
  const kernels::MaskSlotInfo* const infos = masks_.infos(lane.tables.data() + tables_.boxes.offset);
  for (std::size_t k = 0; k < count; ++k)
    if (infos[k].segment != kernels::kNoSegment)
      results_[lane.result + infos[k].segment].masked_elems = infos[k].masked;
  return {};
}

void StagedEncoder::keep(std::size_t i, std::span<const std::uint8_t> bytes) {
  std::uint8_t* const place = kept_.data() + kept_bytes_;
  std::memcpy(place, bytes.data(), bytes.size());
  kept_bytes_ += bytes.size();
  results_[i].bytes = {place, bytes.size()};
}

Status StagedEncoder::encode(std::uint64_t first, std::size_t count, const ArrayWindow& window) {
  const CurrentDevice current(device_);
  QUERN_RETURN_IF_ERROR(current.status());
  QUERN_RETURN_IF_ERROR(open());
  results_.assign(count, {});
  kept_bytes_ = 0;
  std::uint64_t most = 0;
  for (std::size_t i = 0; i < count; ++i) most += max_segment_bytes(setup_.layout, first + i);
  QUERN_RETURN_IF_ERROR(kept_.resize(most));
  std::size_t done = 0;
  return lanes_.run([&] { return done < count; }, [&](Lane& lane) { return harvest(lane); },
                    [&](Lane& lane) {
                      const std::size_t n = std::min<std::size_t>(kLaneSegments, count - done);
                      lane.result = done;
                      done += n;
                      return submit(lane, first + lane.result, n, window);
                    });
}

}  // namespace quern::cuda
