// What a codec offers on CUDA whose chunks a host and lanes encode in turns: the host fits a model on parts of a chunk,
// lanes code and count, once or several times, the host makes tables of the counts, lanes write. The twin of
// ChunkEncoder::encode for such chunks.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <quern/codec.h>
#include <quern/memory.h>

#include "kernels/common/encode_task.h"

namespace quern::cuda {

/// What comes back from the device beside a result: a piece of the working memory.
struct WorkPiece {
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
};

/// What is left to do for a chunk.
enum class EncodeStep : std::uint8_t {
  encode,  ///< a job of JobEncodeKernels::encode
  write,   ///< the last job, which is one of write()
  done,
  raw,   ///< it is not worth coding and stored as it is
  host,  ///< the host has to encode it
};

/// One chunk between its jobs. Everything may throw std::bad_alloc.
class ChunkEncoding : public Allocated {
 public:
  virtual ~ChunkEncoding() = default;
  /// Appends the first job, one of encode(). False when the host has to encode the chunk. The box stays; scratch is
  /// that of ChunkEncoder::encode.
  virtual bool start(const ConstBox3& in, std::span<std::uint8_t> scratch, Vector<std::uint8_t>& job) = 0;
  /// What travels: elements, of no more bytes than the chunk's, and their classes, side by side.
  virtual const ConstBox3& box() const = 0;
  virtual std::size_t element_bytes() const = 0;
  /// Bytes of device memory that all jobs work in.
  virtual std::uint64_t work_bytes() const = 0;

  /// From the result of a job of encode(): what else comes back.
  virtual WorkPiece wanted(std::span<const std::uint8_t> result) const = 0;
  /// And what to do next, of which it appends the job: all but `done`.
  virtual EncodeStep next(std::span<const std::uint8_t> result, std::span<const std::uint8_t> piece,
                          Vector<std::uint8_t>& job) = 0;

  /// From the result of the last job: bytes that lie where the elements were.
  virtual std::uint64_t written(std::span<const std::uint8_t> result) const = 0;
  /// The chunk's bytes, and how many: `done`, `raw` or `host`.
  virtual EncodeStep finish(std::span<const std::uint8_t> result, std::span<const std::uint8_t> bytes,
                            std::span<std::uint8_t> out, std::size_t& size) const = 0;
};

/// What a full chunk takes, in bytes. Jobs are no larger; the rest is about that.
struct EncodeRoom {
  std::uint64_t first_job = 0;
  std::uint64_t later_job = 0;  ///< a single one
  std::uint64_t work = 0;       ///< see ChunkEncoding::work_bytes
  std::uint64_t kept = 0;       ///< on the host, from the first job to the last
};

/// Stateless; may be asked from several threads at once.
class JobEncodeKernels {
 public:
  virtual ~JobEncodeKernels() = default;
  /// Of an encoder with the device_state() that they were found by; so below.
  virtual std::unique_ptr<ChunkEncoding> chunk(std::span<const std::uint8_t> state) const = 0;
  virtual EncodeRoom room(std::span<const std::uint8_t> state) const = 0;
  /// The largest result.
  virtual std::size_t result_bytes() const = 0;
  /// Queue jobs of `count` chunks, the last ones or others. Neither allocates nor waits.
  virtual cudaError_t encode(const kernels::EncodeTask* tasks, std::uint32_t count, cudaStream_t queue) const = 0;
  virtual cudaError_t write(const kernels::EncodeTask* tasks, std::uint32_t count, cudaStream_t queue) const = 0;
};

}  // namespace quern::cuda
