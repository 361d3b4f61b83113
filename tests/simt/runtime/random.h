// Numbers that follow from a seed (Steele, Lea and Flood: SplitMix64, OOPSLA 2014).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

namespace simt {

class Random {
 public:
  explicit Random(std::uint64_t seed = 1) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15u;
    std::uint64_t z = state_;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
  std::uint64_t below(std::uint64_t n) { return next() % n; }
  bool chance(unsigned one_in) { return below(one_in) == 0; }

  void fill(void* at, std::size_t bytes) {
    auto* out = static_cast<unsigned char*>(at);
    for (; bytes >= 8; bytes -= 8, out += 8) {
      const std::uint64_t bits = next();
      std::memcpy(out, &bits, 8);
    }
    if (bytes == 0) return;
    const std::uint64_t bits = next();
    std::memcpy(out, &bits, bytes);
  }
  template <class Range>
  void shuffle(Range& range) {
    for (std::size_t n = range.size(); n > 1; --n) std::swap(range[n - 1], range[below(n)]);
  }

 private:
  std::uint64_t state_;
};

}  // namespace simt
