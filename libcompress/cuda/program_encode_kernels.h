// What a codec offers on CUDA whose chunks are encoded in two steps: a host fits a model on parts of a chunk, lanes
// code all of it and count, the host makes tables of the counts, lanes write. The twin of ChunkEncoder::encode for such
// chunks.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <quern/codec.h>
#include <quern/memory.h>

#include "kernels/core/encode_task.h"

namespace quern::cuda {

/// What comes back from the device beside an answer: a piece of the working memory.
struct WorkPiece {
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
};

/// One chunk between its programs. Everything may throw std::bad_alloc.
class ChunkEncoding : public Allocated {
 public:
  virtual ~ChunkEncoding() = default;
  /// Appends the first program. False when the host has to encode the chunk. The box stays; scratch is that of
  /// ChunkEncoder::encode.
  virtual bool start(const ConstBox3& in, std::span<std::uint8_t> scratch, Vector<std::uint8_t>& program) = 0;
  /// What travels: elements, of no more bytes than the chunk's, and their classes, side by side.
  virtual const ConstBox3& box() const = 0;
  virtual std::size_t element_bytes() const = 0;
  /// Bytes of device memory that both programs work in.
  virtual std::uint64_t work_bytes() const = 0;

  /// From the first answer: whether the host has to encode the chunk after all, and what else comes back.
  virtual bool left(std::span<const std::uint8_t> answer) const = 0;
  virtual WorkPiece wanted(std::span<const std::uint8_t> answer) const = 0;
  /// Appends the second program; false when the chunk is not worth coding.
  virtual bool choose(std::span<const std::uint8_t> answer, std::span<const std::uint8_t> piece,
                      Vector<std::uint8_t>& program) = 0;

  /// From the second answer: bytes that lie where the elements were; 0 when the chunk is not worth coding.
  virtual std::uint64_t written(std::span<const std::uint8_t> answer) const = 0;
  /// The chunk's bytes, and how many; 0 when it is not worth coding.
  virtual std::size_t finish(std::span<const std::uint8_t> answer, std::span<const std::uint8_t> bytes,
                             std::span<std::uint8_t> out) const = 0;
  /// Whether a chunk that is not worth coding is stored raw; else the host encodes it.
  virtual bool may_be_raw() const = 0;
};

/// Stateless; may be asked from several threads at once.
class ProgramEncodeKernels {
 public:
  virtual ~ProgramEncodeKernels() = default;
  /// Whether they encode chunks of an encoder with that device_state().
  virtual bool serves(std::span<const std::uint8_t> state) const = 0;
  virtual std::unique_ptr<ChunkEncoding> chunk(std::span<const std::uint8_t> state) const = 0;
  /// The larger of both answers, the most that the second program takes, and the most that an element takes of the
  /// memory that programs work in.
  virtual std::size_t answer_bytes() const = 0;
  virtual std::size_t second_program_bytes() const = 0;
  virtual std::size_t work_bytes_per_element() const = 0;
  /// Queue the first and the second programs of `count` chunks. Neither allocates nor waits.
  virtual cudaError_t encode(const kernels::EncodeTask* tasks, std::uint32_t count, cudaStream_t queue) const = 0;
  virtual cudaError_t write(const kernels::EncodeTask* tasks, std::uint32_t count, cudaStream_t queue) const = 0;
};

/// Those of a codec, or null.
const ProgramEncodeKernels* builtin_program_encode_kernels(std::uint16_t codec_id);

}  // namespace quern::cuda
