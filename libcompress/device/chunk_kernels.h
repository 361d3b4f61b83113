// What a codec offers on CUDA: the twin of ChunkEncoder::encode and ChunkDecoder::decode for many chunks at once.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include <quern/bound.h>
#include <quern/codec.h>
#include <quern/device_arrays.h>
#include <quern/dtype.h>
#include <quern/memory.h>
#include <quern/shape.h>

#include "kernels/common/cuda/chunk.h"
#include "libcompress/device/device_stream.h"

namespace quern::cuda {

/// Chunks of several streams of one element type. Stream i has DeviceStream::codec_state and the places
/// [i * chunks, (i + 1) * chunks); `coded` of them, the first ones, may be coded.
struct ChunkPlaces {
  DType dtype = DType::f32;
  const DeviceStream* streams = nullptr;
  std::uint32_t count = 0;
  std::uint32_t chunks = 0;
  std::uint32_t coded = 0;
  const kernels::CudaChunk* at = nullptr;
  /// The codec state if it is known on the host, where it saves launches: of all streams the same.
  std::span<const std::uint8_t> state;
  /// Encoding: ArrayPlanner::variants() of who made the states, if that is known; it saves launches too.
  std::uint32_t variants = 0;
  /// Encoding: not all places but the `*listed` ones that `list` names, each once.
  const std::uint32_t* list = nullptr;
  const std::uint32_t* listed = nullptr;
};

/// Where chunks are encoded to: the chunk with slot s to slots + s * slot_bytes, its bytes to sizes[s]. A codec may leave
/// a chunk in parts, which its size then says (kernels::kChunkInParts); it is joined once its place is known.
struct EncodedSlots {
  std::uint8_t* slots = nullptr;
  std::uint64_t slot_bytes = 0;
  std::uint32_t* sizes = nullptr;
  /// Memory of ChunkKernels::parts_bytes, at a multiple of 16; null: no chunk may be in parts.
  std::uint8_t* parts = nullptr;
  /// By slot: the place of a chunk in parts, in the stream; null if it has none. Encoding clears them.
  std::uint8_t** targets = nullptr;
};

/// Streams of one element type and shape whose first bytes are not written yet, or not read.
struct StreamPlaces {
  DType dtype = DType::f32;
  Shape shape;
  DeviceStream* streams = nullptr;
  StreamPlan* plans = nullptr;
  std::uint32_t count = 0;
};

/// Arrays of one type and shape that are held against what was decoded a second time of their streams.
struct FaultPlaces {
  DType dtype = DType::f32;
  BoundKind bound = BoundKind::abs;  ///< that was asked for
  std::uint32_t count = 0;
  std::uint64_t elems = 0;  ///< of each
  DeviceArrays arrays;
  const std::uint8_t* decoded = nullptr;  ///< that of array i begins i * decoded_stride bytes from here
  std::uint64_t decoded_stride = 0;
  /// What the streams were written with: decoded are values under their bound. Null: streams were only read, and all
  /// bits are the same.
  const DeviceStream* written = nullptr;
  const DeviceStream* read = nullptr;  ///< the second reading; what failed there is not read
  std::uint32_t* faults = nullptr;     ///< faults[i] is 0 and becomes 1
};

/// Chooses layouts and codec states of arrays that lie on the device, as ArrayCodec::plan does. Made for arrays of one
/// type and shape; what it queues for them neither allocates nor waits.
class ArrayPlanner : public Allocated {
 public:
  virtual ~ArrayPlanner() = default;
  /// Those it may choose.
  virtual std::span<const SegmentLayout> layouts() const = 0;
  /// What it reads on the device, the same for every call: at a multiple of 16 bytes.
  virtual std::span<const std::uint8_t> constants() const = 0;
  virtual std::uint64_t workspace_bytes(std::uint32_t count) const = 0;
  /// Which kinds of codec states it may choose, as bits that mean something to the codec's kernels.
  virtual std::uint32_t variants() const = 0;
  /// Whether settings ask for a look for hardware faults (ChunkKernels::find_faults).
  virtual bool checks_faults() const = 0;
  /// Given StreamPlan::enforced and mask, fills codec_state and layout of the streams whose status is ok, and params.
  virtual cudaError_t plan(const StreamPlaces& places, const std::uint8_t* constants, std::uint8_t* workspace,
                           cudaStream_t queue) const = 0;
};

/// Stateless; queues work and neither allocates nor waits.
class ChunkKernels {
 public:
  virtual ~ChunkKernels() = default;
  /// Whether they do what a codec object with that device_state() does.
  virtual bool serves(std::span<const std::uint8_t> state) const = 0;
  virtual const CodecInfo& info() const = 0;
  /// Fails on settings that make no sense. The sample that plans are made from is the array's first `sample` elements.
  virtual Result<std::unique_ptr<ArrayPlanner>> planner(DType dtype, const Shape& shape, const Settings& settings,
                                                        std::uint64_t sample) const = 0;
  /// The layouts that encoders choose for a type and shape unless they are told another.
  virtual Vector<SegmentLayout> usual_layouts(DType dtype, const Shape& shape) const = 0;
  /// Streams whose plan names this codec: reads the parameters to codec_state, and sets the status of streams that do
  /// not make sense, for instance because the layout is not the codec's. Others get a state under which plain chunks
  /// are decoded.
  virtual cudaError_t open(const StreamPlaces& places, cudaStream_t queue) const = 0;
  /// What encoding chunks in parts takes, for so many places; 0 where no chunk of the type is left in parts under such a
  /// bound.
  virtual std::uint64_t parts_bytes(DType dtype, BoundKind bound, std::uint64_t places) const = 0;
  /// Every chunk to its slot. What the slot of a chunk holds that takes as many bytes as its values is undefined.
  virtual cudaError_t encode(const ChunkPlaces& places, const EncodedSlots& slots, const kernels::ScanRequest& scan,
                             cudaStream_t queue) const = 0;
  /// After encode() with the same places and slots: every chunk that has a target is joined there.
  virtual cudaError_t join(const ChunkPlaces& places, const EncodedSlots& slots, cudaStream_t queue) const = 0;
  /// Bytes of device memory that decode() works in, for `count` streams of so many places.
  virtual std::uint64_t decode_workspace_bytes(DType dtype, std::uint32_t count, std::uint32_t chunks,
                                               std::uint32_t coded) const = 0;
  /// What is stored of chunk q, which may be any bytes, to its box; damaged[q] becomes 0 or 1. So are plain chunks. The
  /// workspace begins at a multiple of 16 bytes.
  virtual cudaError_t decode(const ChunkPlaces& places, const kernels::StoredChunk* stored, std::uint8_t* workspace,
                             std::uint32_t* damaged, cudaStream_t queue) const = 0;
  /// Looks for elements that are neither decoded bit for bit nor, in written streams, to the value of their code.
  virtual cudaError_t find_faults(const FaultPlaces& places, cudaStream_t queue) const = 0;
};

}  // namespace quern::cuda
