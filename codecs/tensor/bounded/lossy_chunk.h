// What the bounded modes share: values at any address, the chunks a plan looks at, rounding to integers, and the frame
// of a chunk: as it is, or special elements and then what the mode makes of the others.
#pragma once

#include <bit>
#include <cstring>
#include <span>

#include "codecs/tensor/bounded/special_runs.h"
#include "codecs/tensor/mode_coder.h"
#include "codecs/tensor/residuals/residual_plane.h"
#include "kernels/common/round_to_integer.h"
#include "kernels/tensor/cpu/bounds.h"

namespace quern::codec::tensor {

[[gnu::always_inline]] inline std::uint32_t bits_at(std::span<const std::uint8_t> values, std::size_t i) {
  std::uint32_t bits;
  std::memcpy(&bits, values.data() + 4 * i, 4);
  return bits;
}
[[gnu::always_inline]] inline float value_at(std::span<const std::uint8_t> values, std::size_t i) {
  return std::bit_cast<float>(bits_at(values, i));
}
[[gnu::always_inline]] inline void put_bits(std::span<std::uint8_t> values, std::size_t i, std::uint32_t bits) {
  std::memcpy(values.data() + 4 * i, &bits, 4);
}

constexpr bool is_finite_bits(std::uint32_t bits) { return (bits & 0x7fffffffu) < 0x7f800000u; }
/// Positive, finite and not zero.
constexpr bool is_positive_bits(std::uint32_t bits) { return bits - 1 < 0x7f7fffffu; }

inline constexpr float kMaxQuotient = 0x1p21f;  ///< of magnitudes that nearest_integer rounds

using kernels::nearest_integer;

/// Nearest integer of factor / 64 * numbers, numbers below 2^24 in magnitude.
[[gnu::always_inline]] constexpr std::int32_t share(std::int32_t factor, std::int32_t number) {
  return static_cast<std::int32_t>((std::int64_t{factor} * number + 32) >> 6);
}

/// Calls use(i) for the places of bytes that are not 0; few are expected.
template <class Use>
void for_marked(std::span<const std::uint8_t> marks, const Use& use) {
  std::size_t i = 0;
  for (; i + 8 <= marks.size(); i += 8) {
    std::uint64_t eight;
    std::memcpy(&eight, marks.data() + i, 8);
    if (eight == 0) continue;
    for (std::size_t k = i; k < i + 8; ++k)
      if (marks[k] != 0) use(k);
  }
  for (; i < marks.size(); ++i)
    if (marks[i] != 0) use(i);
}

inline const kernels::TensorBoundKernels& bound_kernels() { return kernels::tensor_bound_kernels(kernels::best_isa()); }

/// Puts special elements in place.
inline void put_special(const SpecialRuns& special, std::span<std::uint8_t> values) {
  const auto places = special.places();
  for (std::size_t s = 0; s < places.size(); ++s) put_bits(values, places[s], special.bits()[s]);
}

/// Fails for what the bounded modes do not take: anything but binary32, or more elements than chunks can hold.
Status check_bounded(const TensorDescription& description, bool bound_fits);

/// Chunks that a plan samples: all of a few, else some from all over.
Vector<std::uint64_t> chunks_to_fit(const TensorDescription& description);

PlanePiece piece_of(const TensorDescription& description, std::uint64_t chunk);
/// A chunk's bytes of values that belong to each element; empty stays empty.
std::span<const std::uint8_t> bytes_of(const TensorDescription& description, std::uint64_t chunk,
                                       std::span<const std::uint8_t> whole);

/// Copies `head` and `tail` behind the mark of a coded chunk, or the chunk's values behind that of a raw one if that is
/// shorter. Then these are what decoding gives, too.
Result<std::size_t> finish_chunk(const ChunkInputs& chunk, std::span<const std::uint8_t> head,
                                 std::span<const std::uint8_t> tail, std::span<std::uint8_t> out);
/// True and `out` filled when the chunk is stored as it is; otherwise `bytes` loses its mark.
Result<bool> begin_chunk(std::span<const std::uint8_t>& bytes, std::span<std::uint8_t> out);

}  // namespace quern::codec::tensor
