// The first chunk's worth of an array as the stencil codec's host encodes it. It stands for all chunks of the array.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <quern/codec.h>

#include "bench/gpu/session.h"
#include "codecs/stencil/chunk.h"

namespace quern::bench {

class HostChunk {
 public:
  HostChunk() = default;
  HostChunk(const HostChunk&) = delete;
  HostChunk& operator=(const HostChunk&) = delete;

  /// False when it is not a single chunk in that layout.
  bool encode(const BenchArray& array, const char* layout);

  const std::vector<std::uint8_t>& data() const { return data_; }
  const Vector<std::uint8_t>& expected() const { return expected_; }  ///< the chunk's bytes
  std::size_t room_bytes() const { return encoder_->max_chunk_bytes(); }
  const ConstBox3& box() const { return box_; }
  const OpenRequest& open_request() const { return open_; }  ///< of what decodes it
  codec::stencil::ChunkSpec spec() const;
  /// Aligned, as much as the encoder wants.
  std::span<std::uint8_t> scratch();

 private:
  static constexpr std::size_t kAlign = 64;

  std::vector<std::uint8_t> data_;
  std::unique_ptr<ChunkEncoder> encoder_;
  OpenRequest open_;
  ConstBox3 box_;
  std::vector<std::uint8_t> scratch_;
  Vector<std::uint8_t> expected_;
};

/// Rounded up to where parts of device memory begin.
std::uint64_t aligned_part(std::uint64_t bytes);

}  // namespace quern::bench
