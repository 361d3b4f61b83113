// Which of many pieces an estimate looks at: some from all over, at no fixed distance.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quern {

/// The index, below `total`, of sample `i` of `samples` (1 to total): each lies in another of that many equal parts, at
/// a place in it that the fractional part of a multiple of the golden ratio gives (Weyl's sequence). A fixed distance
/// would meet the same rows of every plane when it divides a plane. Integers only; distinct and ascending in `i`.
constexpr std::uint64_t scattered_sample(std::uint64_t total, std::uint64_t samples, std::uint64_t i) {
  // floor(total * k / samples), without a product that could overflow.
  const auto part_begin = [&](std::uint64_t k) { return total / samples * k + total % samples * k / samples; };
  const std::uint64_t begin = part_begin(i);
  const std::uint64_t length = part_begin(i + 1) - begin;
  const std::uint64_t fraction = i * UINT64_C(0x9E3779B97F4A7C15) >> 32;
  return begin + (length >> 32) * fraction + ((length & 0xFFFFFFFF) * fraction >> 32);
}

/// Where box `i` of some begins along an axis of `places` places: multiples of numbers that no two axes share, modulo
/// 1, so that few boxes lie all over an array. Box 0 is in the middle.
constexpr std::uint64_t scattered_box_place(std::uint64_t places, std::size_t axis, std::uint64_t i) {
  std::uint64_t factor = UINT64_C(0x9E3779B97F4A7C15);
  for (; axis > 0; --axis) factor *= UINT64_C(0xBF58476D1CE4E5B9);
  const std::uint64_t fraction = (i * factor + (UINT64_C(1) << 63)) >> 32;
  return (places >> 32) * fraction + ((places & 0xFFFFFFFF) * fraction >> 32);
}

}  // namespace quern
