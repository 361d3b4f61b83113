// The first planes of an array as a codec's host plans and encodes them. They stand for all of the array.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <quern/codec.h>

#include "bench/gpu/session.h"
#include "codecs/stencil/chunk.h"
#include "libcompress/core/buffer.h"

namespace quern::bench {

/// Planes, as an array of their own.
class HostSlab {
 public:
  HostSlab() = default;
  HostSlab(const HostSlab&) = delete;
  HostSlab& operator=(const HostSlab&) = delete;

  /// Copies about so many elements of the array from the device. False when they cannot be planned in that layout.
  bool plan(const ArrayCodec& codec, const BenchArray& array, const char* layout, std::uint64_t elems);

  const std::vector<std::uint8_t>& data() const { return data_; }
  ChunkEncoder& encoder() const { return *encoder_; }
  ChunkDecoder& decoder() const { return *decoder_; }
  /// As much as encoder and decoder want.
  std::span<std::uint8_t> scratch() { return scratch_.span(); }

 private:
  std::vector<std::uint8_t> data_;
  std::unique_ptr<ChunkEncoder> encoder_;
  std::unique_ptr<ChunkDecoder> decoder_;
  AlignedBuffer scratch_;
};

/// Planes that are one chunk of the stencil codec.
class HostChunk {
 public:
  /// False when they are not, or not in that layout.
  bool encode(const BenchArray& array, const char* layout);

  const std::vector<std::uint8_t>& data() const { return slab_.data(); }
  const Vector<std::uint8_t>& expected() const { return expected_; }  ///< the chunk's bytes
  std::size_t room_bytes() const { return slab_.encoder().max_chunk_bytes(); }
  const ConstBox3& box() const { return box_; }
  ChunkDecoder& decoder() const { return slab_.decoder(); }
  codec::stencil::EncodeSpec spec() const;
  std::span<std::uint8_t> scratch() { return slab_.scratch(); }

 private:
  HostSlab slab_;
  ConstBox3 box_;
  Vector<std::uint8_t> expected_;
};

}  // namespace quern::bench
