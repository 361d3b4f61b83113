// The tensor codec: lossless and bounded coding of the tensors of a training checkpoint (weights, copies of them in
// another type, moments of the optimizer). A tensor is coded as a mode, a `side` string that belongs to the whole
// tensor and is often empty, and one byte string for each chunk of 1 MiB of raw elements. Chunks are independent of
// each other, given the side. Names, files and checksums are the store's business. Format: docs/format-tensor.md.
//
// All values are host memory at any address, little-endian as in safetensors, elements in index order. Functions are
// safe to call from several threads at once; what they allocate comes from the scope's memory (quern/memory.h), so they
// may throw std::bad_alloc. What they write depends on description, request and inputs alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>

#include <quern/execution.h>
#include <quern/memory.h>
#include <quern/status.h>

#include "codecs/tensor/description.h"
#include "libcompress/core/buffer.h"

namespace quern::codec::tensor {

/// How a tensor is coded. The numbers are stored.
enum class Mode : std::uint8_t {
  raw = 0,
  constant = 1,  ///< one value
  planes = 2,    ///< byte planes, each with its entropy coder
  delta = 3,     ///< planes of the difference to the base
  derived = 4,   ///< rounded from the companion: nothing is stored
  replay = 5,    ///< the base and one step of the optimizer
  ebq = 6,       ///< uniform quantizer
  updq = 7,      ///< first moment in units of the root of the second, its companion
  logq = 8,      ///< second moment in log space
  blk8 = 9,      ///< 8-bit codes with a scale for each block
  blk4 = 10,     ///< 4-bit codes with a scale for each block
};
inline constexpr std::uint8_t kModes = 11;

/// "planes", ...; "unknown" for a number that is no mode.
const char* mode_name(Mode mode);

/// A tensor and those beside it, whole, each of the size its description demands or empty.
struct TensorInputs {
  std::span<const std::uint8_t> values;     ///< the tensor itself: encoders only
  std::span<const std::uint8_t> base;       ///< decoded values of it in an earlier checkpoint: same type and shape
  std::span<const std::uint8_t> companion;  ///< decoded values of another tensor of this checkpoint: same shape
  ElementType companion_type = ElementType::f32;
  /// Where the optimizer is heading, in this checkpoint and in the base: binary32, same shape, made by
  /// update_direction() (moments.h) from decoded moments. For ebq with a base, which codes less when it has them.
  std::span<const std::uint8_t> direction = {};
  std::span<const std::uint8_t> base_direction = {};
  /// The spans hold the elements of one chunk instead of all: for encode_chunk and decode_chunk of that chunk.
  bool of_chunk = false;
};

struct TensorRequest {
  /// Nothing: the smallest of the lossless modes that the inputs allow.
  std::optional<Mode> mode;
  /// Of modes that lose something, in the mode's own unit.
  double bound = 0;
  /// ebq: the bound is in units of the standard deviation of the values.
  bool bound_in_deviations = true;
  /// 1 to 19: zstd may pack planes where it is smaller. 0: never, and the bytes do not depend on a version of zstd.
  int zstd_level = 0;
};

/// What encoders of chunks need to know; belongs to the tensor it was made for.
struct TensorPlan {
  TensorDescription description;
  TensorRequest request;
  Mode mode = Mode::raw;
  Vector<std::uint8_t> side;  ///< to be stored
};

/// Which inputs a decoder must be given.
struct TensorNeeds {
  bool base = false;
  bool companion = false;
  bool direction = false;
  bool base_direction = false;
};

/// Chooses the mode and makes the side. Fails with `unsupported` when the mode asked for cannot code these values
/// (derived of another tensor, a base that is missing), `invalid_argument` when inputs do not fit the description.
/// Reads a sample of the values, or all of them once, in chunks on `runner`.
Result<TensorPlan> plan_tensor(const TensorDescription& description, const TensorRequest& request,
                               const TensorInputs& inputs, TaskRunner& runner);
/// The same on the calling thread.
Result<TensorPlan> plan_tensor(const TensorDescription& description, const TensorRequest& request,
                               const TensorInputs& inputs);

/// Most bytes that encode_chunk writes: the chunk's raw bytes and a few more, whatever the mode.
std::size_t chunk_bound(const TensorDescription& description, std::uint64_t index);
inline constexpr std::size_t kChunkSlack = 64;  ///< those few

/// Encodes a chunk into `out` of at least chunk_bound() bytes and returns how many it took. `scratch` grows on demand
/// and may serve any number of calls, one at a time.
/// `decoded`: empty, or the chunk's raw bytes, which then hold what decode_chunk would give. The bounded modes make
/// these with the decoder's arithmetic while they code; for other modes the chunk is decoded.
Result<std::size_t> encode_chunk(const TensorPlan& plan, const TensorInputs& inputs, std::uint64_t index,
                                 std::span<std::uint8_t> out, AlignedBuffer& scratch,
                                 std::span<std::uint8_t> decoded = {});

/// What decoding takes beside the chunk's bytes. Fails with `corrupt` on a side that no encoder writes, `unsupported`
/// on a mode that this version lacks.
Result<TensorNeeds> tensor_needs(const TensorDescription& description, Mode mode, std::span<const std::uint8_t> side);

/// Decodes a chunk into `out`, exactly the chunk's raw bytes. Bytes and side may be hostile: the answer is values
/// (which only a checksum can tell from the right ones) or a status, and `out` may be partly written then.
Status decode_chunk(const TensorDescription& description, Mode mode, std::span<const std::uint8_t> side,
                    std::uint64_t index, std::span<const std::uint8_t> bytes, const TensorInputs& inputs,
                    std::span<std::uint8_t> out, AlignedBuffer& scratch);

/// Scratch that a caller keeps from tensor to tensor, so that tensors after the first take no new pages from the
/// system. Serves one call at a time, and all tasks of it. Holds a few MiB for each task that runs at once.
class TensorMemory {
 public:
  AlignedBuffer take();
  void give_back(AlignedBuffer scratch);

 private:
  std::mutex mutex_;
  Vector<AlignedBuffer> spare_;
};

/// A whole coded tensor in memory. Each chunk has room for the most it could take, so that none has to be moved. Kept
/// and encoded into again, it keeps its memory.
struct EncodedTensor {
  static constexpr std::size_t kRoom = kChunkBytes + kChunkSlack;

  Mode mode = Mode::raw;
  Vector<std::uint8_t> side;
  AlignedBuffer memory;
  Vector<std::size_t> sizes;  ///< bytes of each chunk

  std::span<const std::uint8_t> chunk(std::size_t index) const {
    if (sizes[index] == 0) return {};
    return {memory.data() + index * kRoom, sizes[index]};
  }
  std::uint64_t total_bytes() const {
    std::uint64_t total = side.size();
    for (const std::size_t size : sizes) total += size;
    return total;
  }
};

/// Plans and encodes all chunks on `runner` into `encoded`, in whose memory there is room for about the tensor's size,
/// of which what the chunks take is written to. After a failure, `encoded` holds nothing of use. `decoded`: empty, or
/// the tensor's bytes, which then hold what decode_tensor would give (see encode_chunk).
Status encode_tensor(const TensorDescription& description, const TensorRequest& request, const TensorInputs& inputs,
                     TaskRunner& runner, TensorMemory& memory, EncodedTensor& encoded,
                     std::span<std::uint8_t> decoded = {});
/// The same with memory of its own.
Result<EncodedTensor> encode_tensor(const TensorDescription& description, const TensorRequest& request,
                                    const TensorInputs& inputs, TaskRunner& runner);

/// Decodes all chunks on `runner` into `out`, the tensor's bytes.
Status decode_tensor(const TensorDescription& description, const EncodedTensor& encoded, const TensorInputs& inputs,
                     std::span<std::uint8_t> out, TaskRunner& runner, TensorMemory& memory);
/// The same with memory of its own.
Status decode_tensor(const TensorDescription& description, const EncodedTensor& encoded, const TensorInputs& inputs,
                     std::span<std::uint8_t> out, TaskRunner& runner);

}  // namespace quern::codec::tensor
