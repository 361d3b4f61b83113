// Entry points of the interp kernels on a CPU: what is done to a row of points, one set for each instruction set. All
// sets give the same numbers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/common/cpu/isa.h"
#include "kernels/interp/predict.h"

namespace quern::kernels {

/// Rows of neighbours along one axis at -3, -1, +1 and +3 steps, and their weights: of the whole row, or where `rows` is
/// not null of each point. Neighbours of weight 0 are read, too.
template <class Word>
struct InterpAxis {
  std::array<const Word*, 4> from{};
  std::array<std::int32_t, 4> weights{};
  const std::int32_t* rows = nullptr;  ///< four rows of weights, `pitch` apart
  std::size_t pitch = 0;
};

/// Rows of magnitudes of the neighbours in a context: two for each of `axes` axes, 1 to 3.
struct InterpSpread {
  std::array<const std::uint16_t*, 6> from{};
  unsigned axes = 0;
};

/// Of values of one width. Arrays hold `count` points and do not overlap unless a function says so.
template <class Word>
struct InterpRows {
  /// Predictions by the mean of interpolations along 1 to 3 axes.
  void (*predict)(const InterpAxis<Word>* axes, unsigned count_axes, std::size_t count, Word* predicted);
  /// Codes of what predictions miss `targets` by, kept within kMaxMagnitude, the values they make (over `predicted`), and
  /// their magnitudes. Where `special` (null: nowhere) is not 0, the code is 0.
  void (*code)(const Word* targets, const std::uint8_t* special, std::size_t count, unsigned fraction_bits,
               Word* predicted, std::int32_t* codes, std::uint16_t* magnitudes);
  /// Values that codes make, over `predicted`, and magnitudes.
  void (*restore)(const std::int32_t* codes, std::size_t count, unsigned fraction_bits, Word* predicted,
                  std::uint16_t* magnitudes);
  /// The sum of about how many bits, in units of 2^-8, what predictions miss targets by would take.
  std::uint64_t (*cost)(const Word* targets, const Word* predicted, const std::uint8_t* special, std::size_t count,
                        unsigned fraction_bits);
  /// out[2 i] = even[i], out[2 i + 1] = odd[i], for `count` elements of out.
  void (*interleave)(const Word* even, const Word* odd, std::size_t count, Word* out);
  /// out[i] = in[step * i].
  void (*gather)(const Word* in, std::size_t step, std::size_t count, Word* out);
  /// The integer nearest to (in[i] - base) * inverse, of binary32 and binary64 given by their bits. Where that is not
  /// below `most` in magnitude, or the element is not finite, 0.
  void (*units32)(const std::uint32_t* in, std::size_t count, double base, double inverse, double most, Word* out);
  void (*units64)(const std::uint64_t* in, std::size_t count, double base, double inverse, double most, Word* out);
  /// The bits of in[i] * unit + base as binary32 and binary64.
  void (*singles)(const Word* in, std::size_t count, double unit, double base, std::uint32_t* out);
  void (*doubles)(const Word* in, std::size_t count, double unit, double base, std::uint64_t* out);
};

struct InterpKernels {
  InterpRows<std::int32_t> narrow;
  InterpRows<std::int64_t> wide;
  /// out[i] = kInterpSpreadUnit times the mean of the neighbours' magnitudes.
  void (*spread)(const InterpSpread& spread, std::size_t count, std::uint32_t* out);
  /// spread[i] becomes the sum of its context.
  void (*contexts)(InterpContext context, std::size_t count, std::uint32_t* spread);
  /// out[i] = context_bin(sums[i]).
  void (*bins)(const std::uint32_t* sums, std::size_t count, std::uint8_t* out);
  /// InterpRows::interleave, of magnitudes.
  void (*interleave)(const std::uint16_t* even, const std::uint16_t* odd, std::size_t count, std::uint16_t* out);
  /// True when all `back` differ from `in`, given by their bits, by less than `strict`, and none of both is -0.
  bool (*near32)(const std::uint32_t* in, const std::uint32_t* back, std::size_t count, double strict);
  bool (*near64)(const std::uint64_t* in, const std::uint64_t* back, std::size_t count, double strict);
  /// Least and greatest of the finite elements, given by their bits; `low` and `high` began as infinities.
  void (*range32)(const std::uint32_t* in, std::size_t count, double& low, double& high);

  template <class Word>
  const InterpRows<Word>& rows() const {
    if constexpr (sizeof(Word) == sizeof(std::int32_t)) {
      return narrow;
    } else {
      return wide;
    }
  }
};

/// The kernels of an available level.
const InterpKernels& interp_kernels(IsaLevel level);

}  // namespace quern::kernels
