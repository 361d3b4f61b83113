// Distinct keys by open addressing, a radix sort of them, and ranks by a second look-up.
#include "codecs/lossless/dictionary.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

namespace quern::codec::lossless {
namespace {

constexpr std::size_t kSample = 1024;
constexpr unsigned kDirectBits = 16;

/// At most half the slots are ever taken, unless every key has its own.
std::size_t slots_for(std::size_t keys) { return std::bit_ceil(std::max<std::size_t>(2 * keys, 1u << kDirectBits)); }

}  // namespace

template <class U>
Dictionary<U>::Dictionary(Arena& arena, std::size_t most)
    : most_(most),
      sorted_(arena.take<U>(most)),
      spare_(arena.take<U>(most)),
      slot_key_(arena.take<U>(slots_for(most))),
      slot_rank_(arena.take<std::uint32_t>(slots_for(most))) {}

template <class U>
bool Dictionary<U>::sample_repeats(const U* keys, std::size_t count) {
  // Scattered keys: among s of them drawn from D values about s*s/(2*D) repeat.
  const std::size_t sample = std::min(count, kSample);
  std::memset(slot_rank_, 0, slots_ * sizeof(*slot_rank_));
  std::size_t repeats = 0;
  for (std::size_t i = 0; i < sample; ++i) {
    const U key = keys[i * count / sample];
    std::size_t slot = slot_of(key);
    while (slot_rank_[slot] != 0 && slot_key_[slot] != key) slot = (slot + 1) & (slots_ - 1);
    repeats += slot_rank_[slot];
    slot_key_[slot] = key;
    slot_rank_[slot] = 1;
  }
  return repeats * 64 >= sample;
}

template <class U>
bool Dictionary<U>::collect(const U* keys, std::size_t count, unsigned bits) {
  std::memset(slot_rank_, 0, slots_ * sizeof(*slot_rank_));
  // Ranks gain where most possible keys are missing, and little where almost every element has its own.
  const std::uint64_t sparse = bits > 34 ? count : (std::uint64_t{1} << bits) / 8;
  const std::size_t limit = static_cast<std::size_t>(std::min<std::uint64_t>(count - count / 4, sparse));
  size_ = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const U key = keys[i];
    std::size_t slot = slot_of(key);
    while (slot_rank_[slot] != 0 && slot_key_[slot] != key) slot = (slot + 1) & (slots_ - 1);
    if (slot_rank_[slot] != 0) continue;
    if (size_ == limit) return false;
    slot_key_[slot] = key;
    slot_rank_[slot] = 1;
    sorted_[size_++] = key;
  }
  return true;
}

template <class U>
void Dictionary<U>::sort(unsigned bits) {
  for (unsigned shift = 0; shift < bits; shift += 8) {
    std::array<std::uint32_t, 256> start{};
    for (std::size_t i = 0; i < size_; ++i) ++start[sorted_[i] >> shift & 255];
    if (start[sorted_[0] >> shift & 255] == size_) continue;
    std::uint32_t sum = 0;
    for (std::uint32_t& entry : start) sum += std::exchange(entry, sum);
    for (std::size_t i = 0; i < size_; ++i) spare_[start[sorted_[i] >> shift & 255]++] = sorted_[i];
    std::swap(sorted_, spare_);
  }
}

template <class U>
bool Dictionary<U>::build(const U* keys, std::size_t count, unsigned bits) {
  if (count < 64) return false;
  direct_ = bits <= kDirectBits;
  slots_ = direct_ ? std::size_t{1} << bits : slots_for(count);
  shift_ = 64 - static_cast<unsigned>(std::bit_width(slots_ - 1));
  if (!sample_repeats(keys, count) || !collect(keys, count, bits)) return false;
  sort(bits);
  for (std::size_t i = 0; i < size_; ++i) {
    std::size_t slot = slot_of(sorted_[i]);
    while (slot_key_[slot] != sorted_[i]) slot = (slot + 1) & (slots_ - 1);
    slot_rank_[slot] = static_cast<std::uint32_t>(i);
  }
  return true;
}

template <class U>
void Dictionary<U>::ranks(const U* keys, std::size_t count, U* out) const {
  for (std::size_t i = 0; i < count; ++i) {
    std::size_t slot = slot_of(keys[i]);
    while (slot_key_[slot] != keys[i]) slot = (slot + 1) & (slots_ - 1);
    out[i] = slot_rank_[slot];
  }
}

template <class U>
void Dictionary<U>::gaps(U* out) const {
  out[0] = sorted_[0];
  for (std::size_t i = 1; i < size_; ++i) out[i] = sorted_[i] - sorted_[i - 1] - 1;
}

template class Dictionary<std::uint32_t>;
template class Dictionary<std::uint64_t>;

}  // namespace quern::codec::lossless
