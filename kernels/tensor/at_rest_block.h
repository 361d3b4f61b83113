// What is decided for a block of moments at rest, for the walks of all machines (cpu/at_rest/, warp/at_rest_step.h).
#pragma once

#include "kernels/tensor/adam.h"
#include "kernels/tensor/at_rest.h"

namespace quern::kernels {

/// What codes a state is kept in.
struct AtRestForm {
  unsigned bits = 8;   ///< of a code: 8 or 4
  bool finest = true;  ///< each block takes the finest steps that it fits into; else always the coarsest
};

/// Bytes of a block's slot: the codes of both moments, second moments first. Codes of 4 bits: value i in the low half
/// of byte i, value i + 128 in its high half.
constexpr std::size_t at_rest_slot_bytes(const AtRestForm& form) { return kAtRestBlock * form.bits / 4; }
/// Bytes that a block of another kind takes beside the slots.
inline constexpr std::size_t kAtRestWideBytes = 2 * kAtRestBlock;
inline constexpr std::size_t kAtRestRawBytes = 8 * kAtRestBlock;
constexpr std::size_t at_rest_beside_bytes(AtRestKind kind) {
  return kind == AtRestKind::raw ? kAtRestRawBytes : kind == AtRestKind::wide ? kAtRestWideBytes : 0;
}

struct AtRestStep {
  AtRestForm form;
  std::uint64_t key = 0;  ///< at_rest_mix64 of seed and step
  AdamRule rule;
};

/// Not 0 where codes cannot hold a value: a first moment of -0, or one beside a second moment of 0.
[[gnu::always_inline]] constexpr std::uint32_t at_rest_odd(std::uint32_t first, std::uint32_t second) {
  return (0u - static_cast<std::uint32_t>(first == 0x80000000u)) |
         ((0u - static_cast<std::uint32_t>(second == 0)) & first);
}

/// The second moments of a block: the least that is not 0, and the largest.
struct AtRestRange {
  std::uint32_t least = 0;
  std::uint32_t most = 0;
};
/// Of the least pattern less 1 (so that zeros are the largest) and the largest pattern. False where codes cannot hold
/// the range.
[[gnu::always_inline]] constexpr bool at_rest_range(std::uint32_t least_less_one, std::uint32_t most,
                                                    AtRestRange& range) {
  range.least = most == 0 ? kAtRestLeast : least_less_one + 1;
  range.most = most == 0 ? range.least : most;
  return range.least >= kAtRestLeast && range.most < kAtRestTooLarge;
}

/// Sets what a header says of second moments; false when codes of that width do not hold the range.
template <unsigned Bits>
[[gnu::always_inline]] constexpr bool at_rest_choose_second(bool finest, const AtRestRange& range, AtRestHeader& h) {
  using Width = AtRestWidth<Bits>;
  constexpr std::uint32_t kCodes = (1u << Bits) - 1;
  std::uint32_t shift = finest ? Width::kFinestShift : Width::kCoarsestShift;
  // Code 1 to that of the neighbour above the largest value.
  while ((range.most >> shift) + 2 - (range.least >> shift) > kCodes) {
    if (shift == Width::kCoarsestShift) return false;
    ++shift;
  }
  h.first = range.least >> shift;
  h.shift = shift;
  return h.first != 0;  // else the lower neighbour is 0
}

/// Sets what a header says of first moments, of the pattern of the largest quotient of first moment and unit; false
/// when codes of that width do not hold them.
template <unsigned Bits>
[[gnu::always_inline]] constexpr bool at_rest_choose_first(bool finest, std::uint32_t most_quotient, AtRestHeader& h) {
  using Width = AtRestWidth<Bits>;
  constexpr std::uint32_t kLimit = (1u << (Bits - 1)) - 1;
  if (most_quotient >= 0x7f800000u) return false;
  const std::uint32_t needed = at_rest_scale_field(std::bit_cast<float>(most_quotient), kLimit);
  if (needed > Width::kMostScale) return false;
  h.scale = finest ? needed : Width::kMostScale;
  return true;
}

/// The pattern that a code of a second moment stands for.
[[gnu::always_inline]] constexpr std::uint32_t at_rest_second(const AtRestHeader& h, std::uint32_t code) {
  const std::uint32_t there = 0u - static_cast<std::uint32_t>(code != 0);
  return ((code + (h.first - 1)) << h.shift) & there;
}

}  // namespace quern::kernels
