// Chunks that a choice by encoding has made already, so that they are not made again.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include <quern/codec.h>
#include <quern/memory.h>

#include "codecs/stencil/plan/sample_block.h"

namespace quern::codec::stencil {

/// The chunks of one array and what they were made of.
class EncodedChunks : public Allocated {
 public:
  EncodedChunks(TrialArray array, const ChunkGrid& grid, Vector<Vector<std::uint8_t>> chunks)
      : array_(std::move(array)), grid_(grid), chunks_(std::move(chunks)) {}

  /// Of memory.
  std::uint64_t bytes() const;
  /// The bytes of the chunk that was made of the same elements, bit for bit, with the same marks of special ones, or as
  /// well without; none where there is no such chunk. Compares elements: far below the time that encoding takes.
  std::span<const std::uint8_t> find(const ConstBox3& in) const;

 private:
  TrialArray array_;
  ChunkGrid grid_;
  Vector<Vector<std::uint8_t>> chunks_;
};

}  // namespace quern::codec::stencil
