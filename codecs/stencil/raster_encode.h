// A chunk in raster order whose closed loop and lanes are run by a device (kernels/core/raster_encode_program.h), by
// the rules of encode_chunk and to the same bytes.
#pragma once

#include <cstdint>
#include <span>

#include <quern/codec.h>
#include <quern/memory.h>

#include "codecs/stencil/chunk.h"
#include "codecs/stencil/model.h"
#include "codecs/stencil/raster_stages.h"
#include "kernels/core/raster_encode_program.h"

namespace quern::codec::stencil {

class RasterEncoding {
 public:
  /// Fits the model and appends the first program, for elements (and classes) that lie side by side on the device.
  /// False when the chunk is encode_chunk's. The box stays. May throw std::bad_alloc.
  bool start(const ChunkSpec& spec, const ConstBox3& in, std::span<std::uint8_t> scratch,
             Vector<std::uint8_t>& program);

  std::uint32_t work_bytes() const { return work_bytes_; }
  /// Bytes of the working memory before the list of exceptions.
  std::uint32_t exception_list() const { return program_.exception_list; }

  /// After the first program, unless its answer leaves the chunk to the host: appends the second one. False when the
  /// chunk is to be stored raw. May throw std::bad_alloc.
  bool choose(const kernels::RasterEncodeAnswer& answer, std::span<const std::uint32_t> exceptions,
              Vector<std::uint8_t>& program);

  /// After the second one: writes the chunk from the words of its lanes, one lane after another, and returns how many
  /// bytes it has; 0 when it is to be stored raw. `out` has room for max_chunk_bytes. May throw std::bad_alloc.
  std::size_t write(std::span<const std::uint32_t> lane_words, const std::uint16_t* words,
                    std::span<std::uint8_t> out) const;
  /// Words that lanes may have for the chunk not to be stored raw.
  std::uint64_t most_words() const { return raw_bytes_ / 2; }

 private:
  DType dtype_ = DType::f32;
  ConstBox3 in_;
  std::uint64_t raw_bytes_ = 0;
  std::uint32_t work_bytes_ = 0;
  ChunkModel model_;
  kernels::RasterEncodeProgram program_;
  RasterExceptions exceptions_;
};

}  // namespace quern::codec::stencil
