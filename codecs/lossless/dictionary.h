// The distinct keys of a chunk, sorted: data with few digits (packed integers, counts, rounded values) is coded as
// ranks in this list, which keep the order and hence stay predictable.
#pragma once

#include <cstddef>
#include <cstdint>

#include "codecs/lossless/section.h"

namespace quern::codec::lossless {

/// Working memory for chunks of at most `most` keys. U is uint32_t or uint64_t.
template <class U>
class Dictionary {
 public:
  Dictionary(Arena& arena, std::size_t most);

  /// Finds the distinct keys; false when a sample or the count says that a dictionary would not pay.
  bool build(const U* keys, std::size_t count, unsigned bits);
  /// Ranks of the keys given to build.
  void ranks(const U* keys, std::size_t count, U* out) const;
  std::size_t size() const { return size_; }
  /// Each key less its predecessor less one; the first key as it is.
  void gaps(U* out) const;

 private:
  bool sample_repeats(const U* keys, std::size_t count);
  bool collect(const U* keys, std::size_t count, unsigned bits);
  void sort(unsigned bits);
  std::size_t slot_of(U key) const {
    return direct_ ? static_cast<std::size_t>(key)
                   : static_cast<std::size_t>(std::uint64_t{key} * 0x9e3779b97f4a7c15ULL >> shift_);
  }

  std::size_t most_;
  U* sorted_;
  U* spare_;
  U* slot_key_;               // open addressing
  std::uint32_t* slot_rank_;  // 0: free
  std::size_t size_ = 0;
  std::size_t slots_ = 0;
  bool direct_ = false;  // few possible keys: each is its own slot
  unsigned shift_ = 0;   // of the hash
};

extern template class Dictionary<std::uint32_t>;
extern template class Dictionary<std::uint64_t>;

}  // namespace quern::codec::lossless
