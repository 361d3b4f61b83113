// The elements that a look at an array takes: all of a small one, blocks from all over a large one.
#pragma once

#include <algorithm>
#include <cstdint>

#include <quern/array.h>

#include "libcompress/core/scattered_sample.h"

namespace quern {

class SampleBlocks {
 public:
  /// All of an array of at most `whole` elements; of a larger one a 64th, at least a quarter of `whole`, at most
  /// `most`.
  explicit SampleBlocks(const ArrayView& array, std::uint64_t whole = UINT64_C(1) << 20,
                        std::uint64_t most = UINT64_C(1) << 22)
      : data_(static_cast<const std::uint8_t*>(array.data)), bytes_(dtype_bytes(array.dtype)), elems_(array.elems()) {
    const std::uint64_t wanted = elems_ <= whole ? elems_ : std::clamp(elems_ / 64, whole / 4, most);
    total_ = std::max<std::uint64_t>(elems_ / kBlock, 1);
    taken_ = elems_ <= wanted ? total_ : wanted / kBlock;
  }

  /// Calls `use(data, count)` for each block in order. Small arrays are taken whole, the last block included.
  template <class Use>
  void each(const Use& use) const {
    if (taken_ == total_) {
      for (std::uint64_t at = 0; at < elems_; at += kBlock)
        use(data_ + at * bytes_, std::min<std::uint64_t>(kBlock, elems_ - at));
      return;
    }
    for (std::uint64_t i = 0; i < taken_; ++i)
      use(data_ + scattered_sample(total_, taken_, i) * kBlock * bytes_, kBlock);
  }

 private:
  static constexpr std::uint64_t kBlock = 1024;

  const std::uint8_t* data_;
  std::uint64_t bytes_;
  std::uint64_t elems_;
  std::uint64_t total_ = 0;
  std::uint64_t taken_ = 0;
};

}  // namespace quern
