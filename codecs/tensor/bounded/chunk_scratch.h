// Memory of one chunk of a bounded mode, cut out of one buffer that callers keep from chunk to chunk. Nothing is
// initialised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "libcompress/core/buffer.h"

namespace quern::codec::tensor {

class ChunkScratch {
 public:
  static constexpr std::size_t kSlack = 64;  ///< behind each piece: vectors write and read beyond

  static constexpr std::size_t padded(std::size_t bytes) { return (bytes + kSlack + 63) / 64 * 64; }

  explicit ChunkScratch(AlignedBuffer& memory) : memory_(memory) {}
  /// Makes room for pieces of `bytes` together, at most `pieces` of them. What was taken before is lost.
  Status reserve(std::size_t bytes, std::size_t pieces) {
    used_ = 0;
    return memory_.resize(bytes + pieces * 2 * kSlack);
  }
  /// A piece of what was reserved.
  template <class T>
  std::span<T> take(std::size_t count) {
    auto* const piece = reinterpret_cast<T*>(memory_.data() + used_);
    used_ += padded(count * sizeof(T));
    return {piece, count};
  }

 private:
  AlignedBuffer& memory_;
  std::size_t used_ = 0;
};

}  // namespace quern::codec::tensor
