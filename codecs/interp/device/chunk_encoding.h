// A chunk whose points are coded by a device (kernels/interp/interp_encode_job.h), by the rules of encode_chunk and to
// the same bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <quern/codec.h>
#include <quern/memory.h>

#include "codecs/interp/chunk.h"
#include "codecs/interp/device/job_tables.h"
#include "codecs/interp/head.h"
#include "kernels/interp/interp_encode_job.h"

namespace quern::codec::interp {

class DeviceEncoding {
 public:
  enum class Outcome : std::uint8_t {
    coded,
    raw,   ///< the chunk is no smaller than its elements, and stored as it is
    host,  ///< encode_chunk has to encode it
  };

  /// Chooses the format of values, codes the anchors and appends the first job. False when the chunk is encode_chunk's:
  /// it is constant, no codes serve it, or a device has no room for its tiles. Scratch is that of encode_chunk. The spec
  /// and the box stay. May throw std::bad_alloc.
  bool start(const ChunkSpec& spec, const ConstBox3& in, std::span<std::uint8_t> scratch, Vector<std::uint8_t>& job);

  std::uint32_t work_bytes() const { return job_.chunk.work_bytes; }
  /// Bytes of the working memory before the list of exceptions.
  std::uint32_t exception_list() const { return job_.exception_list; }

  /// After the first job: makes distributions and appends the second job. `exceptions` is their list. May throw
  /// std::bad_alloc.
  Outcome choose(const kernels::InterpEncodeResult& result, std::span<const std::uint32_t> exceptions,
                 Vector<std::uint8_t>& job);

  /// After the second one: writes the chunk from the words of its streams, none where there are more than most_words().
  /// `out` has room for max_chunk_bytes. May throw std::bad_alloc.
  Outcome write(const kernels::InterpWriteResult& result, std::span<const std::uint16_t> words,
                std::span<std::uint8_t> out, std::size_t& size) const;
  /// Words that there is room for where the elements were.
  std::uint64_t most_words() const { return raw_bytes_ / 2; }

  /// What jobs and their memory take for a full chunk, in bytes: the first job, a later one, about what they work in, and
  /// what the host keeps from the first job to the last.
  struct Room {
    std::uint64_t first_job = 0;
    std::uint64_t later_job = 0;
    std::uint64_t work = 0;
    std::uint64_t kept = 0;
  };
  static Room room(const ChunkSpec& spec);

 private:
  template <class Element>
  bool start_as(std::span<std::uint8_t> scratch, Vector<std::uint8_t>& job);
  template <class Element, class Word>
  bool append_first_job(std::span<std::uint8_t> scratch, Vector<std::uint8_t>& job);
  void lay_out_work();
  void append_write_job(Vector<std::uint8_t>& job);
  /// Whether encode_chunk would have had room for as many streams.
  bool streams_fit(const kernels::InterpWriteResult& result) const;

  const ChunkSpec* spec_ = nullptr;
  const ConstBox3* in_ = nullptr;
  Extents extents_{};
  std::uint64_t raw_bytes_ = 0;
  ChunkHead head_;
  std::optional<JobTables> tables_;
  kernels::InterpEncodeJob job_;
  kernels::InterpWriteJob write_job_;
  Vector<std::uint8_t> begin_;  ///< of the chunk, up to the sizes of sections
};

}  // namespace quern::codec::interp
