// A chunk in raster order whose closed loop and lanes are run by a device (kernels/stencil/raster_encode_job.h), by
// the rules of encode_chunk and to the same bytes.
#pragma once

#include <cstdint>
#include <span>

#include <quern/codec.h>
#include <quern/memory.h>

#include "codecs/stencil/chunk.h"
#include "codecs/stencil/lattice/chunk.h"
#include "codecs/stencil/raster/model.h"
#include "codecs/stencil/raster/stages.h"
#include "kernels/stencil/raster_encode_job.h"

namespace quern::codec::stencil {

class RasterEncoding {
 public:
  /// Fits the model and appends the first job, for the elements (and classes) of box(), side by side on the device.
  /// False when the chunk is encode_chunk's. The box stays. May throw std::bad_alloc.
  bool start(const EncodeSpec& spec, const ConstBox3& in, std::span<std::uint8_t> scratch, Vector<std::uint8_t>& job);

  /// What the device gets: the chunk, or of a chunk on a lattice the integers in its place; and their type.
  const ConstBox3& box() const { return in_; }
  DType dtype() const { return dtype_; }
  /// What is not worth coding is raw, but of a chunk on a lattice encode_chunk may make something else.
  bool may_be_raw() const { return places_.numbers.empty(); }

  std::uint32_t work_bytes() const { return work_bytes_; }
  /// Bytes of the working memory before the list of exceptions.
  std::uint32_t exception_list() const { return job_.exception_list; }

  /// After the first job, unless its result leaves the chunk to the host: appends the second one. False when the
  /// chunk is not worth coding. May throw std::bad_alloc.
  bool choose(const kernels::RasterEncodeResult& result, std::span<const std::uint32_t> exceptions,
              Vector<std::uint8_t>& job);

  /// After the second one: writes the chunk from the words of its lanes, one lane after another, and returns how many
  /// bytes it has; 0 when it is not worth coding. `out` has room for max_chunk_bytes. May throw std::bad_alloc.
  std::size_t write(std::span<const std::uint32_t> lane_words, const std::uint16_t* words,
                    std::span<std::uint8_t> out) const;
  /// Words that lanes may have for the chunk to be worth coding.
  std::uint64_t most_words() const { return raw_bytes_ / 2; }

 private:
  DType dtype_ = DType::f32;
  LatticePlaces places_;
  ConstBox3 in_;
  std::uint64_t raw_bytes_ = 0;    ///< of the box
  std::uint64_t array_bytes_ = 0;  ///< of the chunk's elements
  std::uint32_t work_bytes_ = 0;
  RasterModel model_;
  kernels::RasterEncodeJob job_;
  RasterExceptions exceptions_;
};

}  // namespace quern::codec::stencil
