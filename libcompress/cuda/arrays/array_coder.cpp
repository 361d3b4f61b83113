// Calls on arrays in device memory: which kernels are queued, in which order.
#include <algorithm>
#include <new>
#include <string>

#include <quern/device_arrays.h>

#include "kernels/common/cuda/range_cuda.h"
#include "libcompress/core/element_of.h"
#include "libcompress/cuda/arrays/array_request.h"
#include "libcompress/cuda/arrays/array_room.h"
#include "libcompress/cuda/cuda_memory.h"
#include "libcompress/cuda/stream/chunk_layout.cuh"
#include "libcompress/cuda/stream/masked_encoding.h"
#include "libcompress/cuda/stream/second_reading.cuh"
#include "libcompress/cuda/stream/segment_reader.cuh"
#include "libcompress/cuda/stream/segment_writer.cuh"
#include "libcompress/cuda/stream/stream_end.cuh"
#include "libcompress/cuda/stream/stream_start.cuh"
#include "libcompress/device/device_codec.h"
#include "libcompress/format/frame/trailer_frame.h"
#include "libcompress/format/grid/stored_grid.h"
#include "libcompress/pipeline/encode/mask_setting.h"
#include "libcompress/pipeline/encode/setup.h"

namespace quern::cuda {
namespace {

/// Steps of a queue: after one that fails, none.
class Steps {
 public:
  template <class Step>
  Steps& then(const Step& step) {
    if (error_ == cudaSuccess) error_ = step();
    return *this;
  }
  Status status() const { return to_status(error_); }

 private:
  cudaError_t error_ = cudaSuccess;
};

class CudaArrayCoder final : public DeviceArrayCoder {
 public:
  CudaArrayCoder(int ordinal, DType dtype, const Shape& shape) : ordinal_(ordinal), dtype_(dtype), shape_(shape) {}
  ~CudaArrayCoder() override {
    const CurrentDevice current(ordinal_);
    request_ = {};
  }

  Status open_decompressor(const ChunkKernels& kernels, bool check_faults) {
    kernels_ = &kernels;
    checks_faults_ = check_faults && shape_.elems() != 0;
    set_readable({});
    return {};
  }

  Status open_compressor(const ChunkKernels& kernels, const CompressOptions& options) {
    const CurrentDevice current(ordinal_);
    QUERN_RETURN_IF_ERROR(current.status());
    QUERN_ASSIGN_OR_RETURN(const mask::MaskForm form, mask_form(options, kernels.info().tier));
    const bool masks_by_levels = form == mask::MaskForm::levels;
    if (shape_.elems() != 0) {
      QUERN_ASSIGN_OR_RETURN(
          planner_, kernels.planner(dtype_, shape_, codec_settings(options.settings), sample_elems(dtype_, shape_)));
      writable_ = LayoutLimits(planner_->layouts(), planner_->layouts().size(), masks_by_levels);
      QUERN_RETURN_IF_ERROR(check_promise(options));
      checks_faults_ = planner_->checks_faults();
      if (checks_faults_) set_readable(planner_->layouts());
    }
    compresses_ = true;
    return request_.open(dtype_, options, masks_by_levels,
                         planner_ ? planner_->constants() : std::span<const std::uint8_t>());
  }

  std::uint64_t workspace_bytes(std::uint32_t count) const override {
    const std::uint64_t reading = DecompressRoom(readable_, count, *kernels_, dtype_).workspace.bytes();
    const std::uint64_t call = compresses_ ? std::max(reading, compress_room(count).workspace.bytes()) : reading;
    return checks_faults_ ? call + fault_room(count).workspace.bytes() : call;
  }

  Status compress(const DeviceArrays& arrays, void* workspace, std::uint64_t workspace_bytes,
                  void* queue) const override {
    if (!compresses_) return Status(StatusCode::invalid_argument, "this coder was made for decompressing");
    QUERN_RETURN_IF_ERROR(check_call(writable_, arrays, workspace));
    if (checks_faults_) QUERN_RETURN_IF_ERROR(check_call(readable_, arrays, workspace));
    const CompressRoom room = compress_room(arrays.count);
    QUERN_RETURN_IF_ERROR(check_workspace(room.workspace, arrays.count, workspace_bytes));
    const CurrentDevice current(ordinal_);
    QUERN_RETURN_IF_ERROR(current.status());
    auto* const memory = static_cast<std::uint8_t*>(workspace);
    auto* const stream = static_cast<cudaStream_t>(queue);
    QUERN_RETURN_IF_ERROR(queue_compression(arrays, room, memory, stream));
    return queue_fault_check(arrays, room, room.tables.streams.at(memory), memory, stream);
  }

  Status decompress(const DeviceArrays& arrays, void* workspace, std::uint64_t workspace_bytes,
                    void* queue) const override {
    QUERN_RETURN_IF_ERROR(check_call(readable_, arrays, workspace));
    const DecompressRoom room(readable_, arrays.count, *kernels_, dtype_);
    QUERN_RETURN_IF_ERROR(check_workspace(room.workspace, arrays.count, workspace_bytes));
    const CurrentDevice current(ordinal_);
    QUERN_RETURN_IF_ERROR(current.status());
    auto* const memory = static_cast<std::uint8_t*>(workspace);
    auto* const stream = static_cast<cudaStream_t>(queue);
    QUERN_RETURN_IF_ERROR(queue_decompression(arrays, room, memory, stream));
    return queue_fault_check(arrays, room, nullptr, memory, stream);
  }

 private:
  /// Streams of the layouts that encoders choose, of these, and of arrays that no codec was used for.
  void set_readable(std::span<const SegmentLayout> more) {
    Vector<SegmentLayout> layouts = kernels_->usual_layouts(dtype_, shape_);
    layouts.insert(layouts.end(), more.begin(), more.end());
    layouts.push_back(SegmentLayout(stored_grid(shape_.elems(), dtype_), dtype_));
    readable_ = LayoutLimits(layouts, layouts.size() - 1);
  }

  /// Where a layout's tables might take more than streams may grow by, the pipeline looks at the outcome and chooses
  /// again; kernels cannot.
  Status check_promise(const CompressOptions& options) const {
    QUERN_ASSIGN_OR_RETURN(const std::uint64_t limit, max_stream_bytes(dtype_, shape_, options.metadata.size()));
    // Numbers of a header that the plan decides are at their longest.
    const std::uint64_t header = 160 + 8 * options.fill_bits.size() + options.metadata.size();
    for (const SegmentLayout& layout : planner_->layouts())
      if (worst_stream_bytes(layout, header) > limit)
        return Status(StatusCode::unsupported,
                      "arrays of this shape have chunks too small for a device; give a layout that merges axes "
                      "(layout=1d), or compress on the host");
    return {};
  }

  static Status check_call(const LayoutLimits& limits, const DeviceArrays& arrays, const void* workspace) {
    if (arrays.count == 0) return Status(StatusCode::invalid_argument, "a call needs at least one array");
    if (arrays.count > 1 && (arrays.arrays == nullptr || arrays.streams == nullptr || arrays.stream_sizes == nullptr))
      return Status(StatusCode::invalid_argument, "more than one array: give tables of arrays, streams and sizes");
    if (workspace == nullptr || reinterpret_cast<std::uintptr_t>(workspace) % kPartAlignment != 0)
      return Status(StatusCode::invalid_argument, "the workspace must lie at a multiple of {0} bytes",
                    static_cast<std::int64_t>(kPartAlignment));
    if (!limits.fits(arrays.count))
      return Status(StatusCode::unsupported, "too many chunks for one call: give fewer arrays at a time");
    return {};
  }
  /// What a fault check works in comes behind the rest.
  Status check_workspace(const Workspace& call, std::uint32_t count, std::uint64_t given) const {
    const std::uint64_t needed = call.bytes() + (checks_faults_ ? fault_room(count).workspace.bytes() : 0);
    if (given >= needed) return {};
    return Status(StatusCode::destination_too_small, "the workspace has {0} bytes; {1} are needed",
                  static_cast<std::int64_t>(given), static_cast<std::int64_t>(needed));
  }

  CompressRoom compress_room(std::uint32_t count) const {
    return {writable_, count,  planner_ ? planner_->workspace_bytes(count) : 0,
            *kernels_, dtype_, request_.stream().bound.kind};
  }
  FaultRoom fault_room(std::uint32_t count) const {
    return {readable_, count, *kernels_, dtype_, shape_.elems() * dtype_bytes(dtype_)};
  }
  StreamPlaces places_of(const ArrayRoom& room, std::uint8_t* memory, std::uint32_t count) const {
    return {dtype_, shape_, room.tables.streams.at(memory), room.plans.at(memory), count};
  }

  ChunkPlaces chunk_places(const ArrayRoom& room, const StreamTables& tables, const kernels::CudaChunk* boxes) const {
    ChunkPlaces places;
    places.dtype = dtype_;
    places.streams = tables.streams;
    places.count = tables.count;
    places.chunks = tables.slots;
    places.coded = room.tables.shape.coded;
    places.at = boxes;
    return places;
  }

  ChunkPlaces encoded_places(const ArrayRoom& room, const StreamTables& tables, const kernels::CudaChunk* boxes) const {
    ChunkPlaces places = chunk_places(room, tables, boxes);
    places.variants = planner_->variants();
    return places;
  }

  Status queue_compression(const DeviceArrays& arrays, const CompressRoom& room, std::uint8_t* memory,
                           cudaStream_t queue) const {
    const StreamTables tables = room.tables.bind(memory);
    const StreamPlaces places = places_of(room, memory, arrays.count);
    const kernels::RangeKeys* const ranges = request_.needs_range() ? room.ranges.at(memory) : nullptr;
    Steps steps;
    if (ranges != nullptr)
      steps.then([&] {
        return kernels::find_ranges_async(element_of(dtype_),
                                          {arrays.arrays, arrays.array, arrays.count, shape_.elems()}, request_.fills(),
                                          room.ranges.at(memory), queue);
      });
    steps.then([&] { return start_streams_async(arrays, request_.stream(), ranges, places, queue); });
    if (planner_ == nullptr) {
      steps.then([&] { return plan_stored_async(SegmentLayout(stored_grid(0, dtype_), dtype_), places, queue); });
    } else {
      steps.then([&] { return planner_->plan(places, request_.planner_constants(), room.planning.at(memory), queue); });
    }
    steps.then([&] { return write_headers_async(request_.stream(), places, queue); });
    const EncodedSlots slots = room.encoded(memory);
    if (tables.segments != 0) {
      encode_chunks(steps, room, memory, tables, queue);
      encode_masked(steps, room, memory, tables, queue);
    }
    steps.then([&] { return place_segments_async(tables, slots, kFooterBytes, queue); })
        .then([&] { return write_chunks_async(tables, slots, queue); })
        .then([&] { return join_chunks(room, memory, tables, slots, queue); })
        .then([&] { return seal_streams_async(tables, arrays, room.outcomes.at(memory), queue); });
    return steps.status();
  }

  /// Every chunk as if there were no special values, which the encoder looks for.
  void encode_chunks(Steps& steps, const CompressRoom& room, std::uint8_t* memory, const StreamTables& tables,
                     cudaStream_t queue) const {
    kernels::CudaChunk* const boxes = room.tables.boxes.at(memory);
    const ChunkPlaces chunks = encoded_places(room, tables, boxes);
    steps.then([&] { return start_encoding_async(tables, boxes, room.masks.zeroed(memory), queue); }).then([&] {
      return kernels_->encode(chunks, room.encoded(memory), request_.scan(room.masks.chunk_scans.at(memory)), queue);
    });
  }
  cudaError_t join_chunks(const CompressRoom& room, std::uint8_t* memory, const StreamTables& tables,
                          const EncodedSlots& slots, cudaStream_t queue) const {
    if (tables.segments == 0 || slots.parts == nullptr) return cudaSuccess;
    return kernels_->join(encoded_places(room, tables, room.tables.boxes.at(memory)), slots, queue);
  }

  /// Again the chunks of segments that have some, wave by wave.
  void encode_masked(Steps& steps, const CompressRoom& room, std::uint8_t* memory, const StreamTables& tables,
                     cudaStream_t queue) const {
    const StreamPlan* const plans = room.plans.at(memory);
    const MaskList list = room.masks.list(memory);
    steps.then([&] { return list_masked_async(tables, plans, list, room.masks.wave(memory, 0), queue); });
    for (std::uint32_t number = 0; number < room.masks.waves; ++number) {
      const MaskWave wave = room.masks.wave(memory, number);
      steps.then([&] {
        return encode_wave_async(tables, plans, list, wave, room.masks.masking_warps(memory), *kernels_, dtype_,
                                 planner_->variants(), room.encoded(memory), queue);
      });
    }
  }

  Status queue_decompression(const DeviceArrays& arrays, const DecompressRoom& room, std::uint8_t* memory,
                             cudaStream_t queue) const {
    const StreamTables tables = room.tables.bind(memory);
    const StreamPlaces places = places_of(room, memory, arrays.count);
    kernels::CudaChunk* const boxes = room.tables.boxes.at(memory);
    const ChunkPlaces chunks = chunk_places(room, tables, boxes);
    kernels::StoredChunk* const stored = room.stored.at(memory);
    std::uint32_t* const damaged = room.damaged.at(memory);
    kernels::MaskDamage* const mask_damage = room.mask_damage.at(memory);
    Steps steps;
    steps.then([&] { return read_headers_async(arrays, kernels_->info().id, places, queue); })
        .then([&] { return kernels_->open(places, queue); })
        .then([&] { return read_trailers_async(tables, room.workers.bytes_per_warp, queue); });
    if (tables.segments != 0)
      steps.then([&] {
             return read_segments_async(tables, {boxes, stored, room.jobs.at(memory), mask_damage}, queue);
           })
          .then([&] { return kernels_->decode(chunks, stored, room.decoding.at(memory), damaged, queue); })
          .then([&] {
            return kernels::restore_jobs_async(element_of(dtype_), room.jobs.at(memory),
                                               static_cast<std::uint32_t>(room.tables.shape.segment_places()), true,
                                               room.workers, room.warps.at(memory), queue);
          });
    const bool segments = tables.segments != 0;
    steps.then([&] {
      return tell_outcomes_async(tables, segments ? damaged : nullptr, segments ? mask_damage : nullptr, arrays,
                                 shape_.elems() * dtype_bytes(dtype_), room.outcomes.at(memory), queue);
    });
    return steps.status();
  }

  /// Reads the streams of a call that is queued once more, to memory of its own, and holds what comes out against the
  /// arrays. `written`: the call wrote the streams; null: it read them.
  Status queue_fault_check(const DeviceArrays& call, const ArrayRoom& used, const DeviceStream* written,
                           std::uint8_t* memory, cudaStream_t queue) const {
    if (!checks_faults_) return {};
    const FaultRoom room = fault_room(call.count);
    std::uint8_t* const own = memory + used.workspace.bytes();
    DeviceOutcome* const outcomes = used.outcomes.at(memory);
    const SecondReading reading = room.reading(own, written != nullptr);
    QUERN_RETURN_IF_ERROR(to_status(aim_second_reading_async(call, outcomes, reading, queue)));
    QUERN_RETURN_IF_ERROR(queue_decompression(reading.reading(call), room, own, queue));
    FaultPlaces places;
    places.dtype = dtype_;
    places.bound = request_.stream().bound.kind;
    places.count = call.count;
    places.elems = shape_.elems();
    places.arrays = call;
    places.decoded = reading.decoded;
    places.decoded_stride = reading.stride;
    places.written = written;
    places.read = room.tables.streams.at(own);
    places.faults = reading.faults;
    QUERN_RETURN_IF_ERROR(to_status(kernels_->find_faults(places, queue)));
    return to_status(tell_faults_async(call, room.outcomes.at(own), reading, outcomes, queue));
  }

  int ordinal_;
  DType dtype_;
  Shape shape_;
  const ChunkKernels* kernels_ = nullptr;
  std::unique_ptr<ArrayPlanner> planner_;  ///< null: decompressing alone, or arrays without elements
  bool compresses_ = false;
  bool checks_faults_ = false;
  LayoutLimits readable_;
  LayoutLimits writable_;
  ArrayRequest request_;
};

/// The codec whose streams are decoded: the first one with kernels for whole arrays.
DeviceCodec read_codec() {
  for (const DeviceCodec* codec : builtin_device_codecs())
    if (codec->chunks != nullptr) return *codec;
  return {};
}

/// Of a codec without such kernels. Lives as long as the job.
const char* no_kernels_message() {
  static const std::string text =
      std::string("plans for arrays in device memory: name a codec that has kernels for them, as in codec=") +
      read_codec().name + "; others (and auto, which may mean one) take quern_compress and quern_decompress";
  return text.c_str();
}

Result<std::unique_ptr<DeviceArrayCoder>> make_coder(int ordinal, DType dtype, const Shape& shape,
                                                     const CompressOptions* options, bool check_faults) {
  const DeviceCodec codec = options != nullptr ? builtin_device_codec(options->codec) : read_codec();
  const ChunkKernels* const kernels = codec.chunks;
  if (kernels == nullptr) return Status(StatusCode::unsupported, no_kernels_message());
  QUERN_RETURN_IF_ERROR(check_ordinal(ordinal));
  auto coder = std::make_unique<CudaArrayCoder>(ordinal, dtype, shape);
  QUERN_RETURN_IF_ERROR(coder->open_decompressor(*kernels, check_faults));
  if (options != nullptr) QUERN_RETURN_IF_ERROR(coder->open_compressor(*kernels, *options));
  return std::unique_ptr<DeviceArrayCoder>(std::move(coder));
}

}  // namespace
}  // namespace quern::cuda

namespace quern {

Result<std::unique_ptr<DeviceArrayCoder>> device_compressor(int ordinal, DType dtype, const Shape& shape,
                                                            const CompressOptions& options) {
  QUERN_RETURN_IF_ERROR(check_options(dtype, options));
  if (options.idempotent && options.bound.kind != BoundKind::lossless)
    return Status(StatusCode::unsupported, "idempotent=1 takes arrays in host memory; this one is in device memory");
  if (options.bound.kind == BoundKind::psnr || options.bound.kind == BoundKind::ratio)
    return Status(StatusCode::unsupported,
                  "a bound of kind psnr or ratio is found by search, which cannot be queued; give abs, rel or pwrel");
  try {
    return cuda::make_coder(ordinal, dtype, shape, &options, false);
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::out_of_memory, "out of memory");
  }
}

Result<std::unique_ptr<DeviceArrayCoder>> device_decompressor(int ordinal, DType dtype, const Shape& shape,
                                                              bool check_faults) {
  try {
    return cuda::make_coder(ordinal, dtype, shape, nullptr, check_faults);
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::out_of_memory, "out of memory");
  }
}

}  // namespace quern
