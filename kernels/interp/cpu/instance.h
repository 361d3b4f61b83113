// Interp kernels for one instruction set; included by source files that are compiled with that set's flags, which turn
// these loops into vectors.
#pragma once

#include <bit>

#include "kernels/common/round_to_integer.h"
#include "kernels/entropy/cpu/context_bins.h"
#include "kernels/interp/cpu/interp.h"

namespace quern::kernels {

template <class Isa, class Word>
struct InterpRowsInstance {
  template <class T>
  static void interleave(const T* __restrict even, const T* __restrict odd, std::size_t count, T* __restrict out) {
    for (std::size_t i = 0; i < count / 2; ++i) {
      out[2 * i] = even[i];
      out[2 * i + 1] = odd[i];
    }
    if (count % 2 != 0) out[count - 1] = even[count / 2];
  }

  using Unsigned = InterpUnsigned<Word>;
  static constexpr std::size_t kBlock = 64;

  /// One axis, of up to kBlock points.
  [[gnu::always_inline]] static void along(const InterpAxis<Word>& axis, std::size_t first, std::size_t count,
                                           Word* __restrict out) {
    const Word* __restrict const a = axis.from[0] + first;
    const Word* __restrict const b = axis.from[1] + first;
    const Word* __restrict const c = axis.from[2] + first;
    const Word* __restrict const d = axis.from[3] + first;
    if (axis.rows == nullptr) {
      const auto [w0, w1, w2, w3] = axis.weights;
      for (std::size_t i = 0; i < count; ++i)
        out[i] = interp_rounded(static_cast<Word>(interp_term(w0, a[i]) + interp_term(w1, b[i]) +
                                                  interp_term(w2, c[i]) + interp_term(w3, d[i])));
      return;
    }
    const std::int32_t* __restrict const w0 = axis.rows + first;
    const std::int32_t* __restrict const w1 = w0 + axis.pitch;
    const std::int32_t* __restrict const w2 = w1 + axis.pitch;
    const std::int32_t* __restrict const w3 = w2 + axis.pitch;
    for (std::size_t i = 0; i < count; ++i)
      out[i] = interp_rounded(static_cast<Word>(interp_term(w0[i], a[i]) + interp_term(w1[i], b[i]) +
                                                interp_term(w2[i], c[i]) + interp_term(w3[i], d[i])));
  }

  static void predict(const InterpAxis<Word>* axes, unsigned count_axes, std::size_t count, Word* predicted) {
    Word second[kBlock];
    Word third[kBlock];
    for (std::size_t first = 0; first < count; first += kBlock) {
      const std::size_t some = count - first < kBlock ? count - first : kBlock;
      Word* __restrict const out = predicted + first;
      along(axes[0], first, some, out);
      if (count_axes == 1) continue;
      along(axes[1], first, some, second);
      if (count_axes == 2) {
        for (std::size_t i = 0; i < some; ++i) out[i] = interp_mean(out[i], second[i]);
        continue;
      }
      along(axes[2], first, some, third);
      for (std::size_t i = 0; i < some; ++i) out[i] = interp_mean(out[i], second[i], third[i]);
    }
  }

  [[gnu::always_inline]] static void code_one(Word target, bool special, unsigned fraction_bits, Word& predicted,
                                              std::int32_t& code, std::uint16_t& magnitude) {
    code = interp_kept_code(target, predicted, special, fraction_bits);
    predicted = interp_value(predicted, code, fraction_bits);
    magnitude = interp_magnitude(code);
  }
  static void code(const Word* __restrict targets, const std::uint8_t* __restrict special, std::size_t count,
                   unsigned fraction_bits, Word* __restrict predicted, std::int32_t* __restrict codes,
                   std::uint16_t* __restrict magnitudes) {
    if (special == nullptr) {
      for (std::size_t i = 0; i < count; ++i)
        code_one(targets[i], false, fraction_bits, predicted[i], codes[i], magnitudes[i]);
      return;
    }
    for (std::size_t i = 0; i < count; ++i)
      code_one(targets[i], special[i] != 0, fraction_bits, predicted[i], codes[i], magnitudes[i]);
  }

  static void restore(const std::int32_t* __restrict codes, std::size_t count, unsigned fraction_bits,
                      Word* __restrict predicted, std::uint16_t* __restrict magnitudes) {
    for (std::size_t i = 0; i < count; ++i) {
      predicted[i] = interp_value(predicted[i], codes[i], fraction_bits);
      magnitudes[i] = interp_magnitude(codes[i]);
    }
  }

  /// The logarithm of 1 plus the miss in half steps: what exponent and fraction of a binary32 number say of it.
  static std::uint64_t cost(const Word* __restrict targets, const Word* __restrict predicted,
                            const std::uint8_t* __restrict special, std::size_t count, unsigned fraction_bits) {
    const Unsigned half = Unsigned{1} << (fraction_bits > 0 ? fraction_bits - 1 : 0);
    constexpr Unsigned kMost = Unsigned{1} << (8 * sizeof(Word) - 3);
    const std::uint32_t least = std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<Word>(half)));
    std::uint64_t sum = 0;
    for (std::size_t first = 0; first < count; first += kBlock) {
      const std::size_t end = count - first < kBlock ? count : first + kBlock;
      std::uint32_t bits = 0;
      for (std::size_t i = first; i < end; ++i) {
        const Unsigned miss = static_cast<Unsigned>(targets[i]) - static_cast<Unsigned>(predicted[i]);
        const auto sign = static_cast<Unsigned>(static_cast<Word>(miss) >> (8 * sizeof(Word) - 1));
        const Unsigned size = (miss ^ sign) - sign;
        const auto capped = static_cast<Word>((size < kMost ? size : kMost) + half);
        const std::uint32_t ordinary = special != nullptr && special[i] != 0 ? 0u : ~0u;
        bits += ((std::bit_cast<std::uint32_t>(static_cast<float>(capped)) - least) >> 15) & ordinary;
      }
      sum += bits;
    }
    return sum;
  }

  static void gather(const Word* __restrict in, std::size_t step, std::size_t count, Word* __restrict out) {
    if (step == 2) {
      for (std::size_t i = 0; i < count; ++i) out[i] = in[2 * i];
    } else {
      for (std::size_t i = 0; i < count; ++i) out[i] = in[step * i];
    }
  }

  static void units32(const std::uint32_t* __restrict in, std::size_t count, double base, double inverse, double most,
                      Word* __restrict out) {
    for (std::size_t i = 0; i < count; ++i)
      out[i] = interp_units<Word>(static_cast<double>(std::bit_cast<float>(in[i])), base, inverse, most);
  }
  static void units64(const std::uint64_t* __restrict in, std::size_t count, double base, double inverse, double most,
                      Word* __restrict out) {
    for (std::size_t i = 0; i < count; ++i)
      out[i] = interp_units<Word>(std::bit_cast<double>(in[i]), base, inverse, most);
  }

  static void singles(const Word* __restrict in, std::size_t count, double unit, double base,
                      std::uint32_t* __restrict out) {
    for (std::size_t i = 0; i < count; ++i)
      out[i] = std::bit_cast<std::uint32_t>(static_cast<float>(interp_number(in[i], unit, base)));
  }
  static void doubles(const Word* __restrict in, std::size_t count, double unit, double base,
                      std::uint64_t* __restrict out) {
    for (std::size_t i = 0; i < count; ++i) out[i] = std::bit_cast<std::uint64_t>(interp_number(in[i], unit, base));
  }

  static constexpr InterpRows<Word> kRows{&predict, &code,    &restore, &cost,    &interleave<Word>,
                                          &gather,  &units32, &units64, &singles, &doubles};
};

template <class Isa>
struct InterpInstance {
  static void spread(const InterpSpread& spread, std::size_t count, std::uint32_t* __restrict out) {
    const std::uint16_t* __restrict const a = spread.from[0];
    const std::uint16_t* __restrict const b = spread.from[1];
    if (spread.axes == 1) {
      for (std::size_t i = 0; i < count; ++i) out[i] = interp_spread(std::uint32_t{a[i]} + b[i], 1);
      return;
    }
    const std::uint16_t* __restrict const c = spread.from[2];
    const std::uint16_t* __restrict const d = spread.from[3];
    if (spread.axes == 2) {
      for (std::size_t i = 0; i < count; ++i) out[i] = interp_spread(std::uint32_t{a[i]} + b[i] + c[i] + d[i], 2);
      return;
    }
    const std::uint16_t* __restrict const e = spread.from[4];
    const std::uint16_t* __restrict const f = spread.from[5];
    for (std::size_t i = 0; i < count; ++i)
      out[i] = interp_spread(std::uint32_t{a[i]} + b[i] + c[i] + d[i] + e[i] + f[i], 3);
  }
  static void contexts(InterpContext context, std::size_t count, std::uint32_t* spread) {
    for (std::size_t i = 0; i < count; ++i) spread[i] = interp_context(spread[i], context);
  }
  static void bins(const std::uint32_t* __restrict sums, std::size_t count, std::uint8_t* __restrict out) {
    for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<std::uint8_t>(ContextBins<Isa>::bin_of(sums[i]));
  }

  template <class Float, class Bits>
  static bool near(const Bits* __restrict in, const Bits* __restrict back, std::size_t count, double strict) {
    constexpr Bits kMinusZero = Bits{1} << (8 * sizeof(Bits) - 1);
    unsigned missed = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const double difference =
          static_cast<double>(std::bit_cast<Float>(in[i])) - static_cast<double>(std::bit_cast<Float>(back[i]));
      const double distance = difference < 0 ? -difference : difference;
      const unsigned kept = static_cast<unsigned>(distance < strict) & static_cast<unsigned>(in[i] != kMinusZero) &
                            static_cast<unsigned>(back[i] != kMinusZero);
      missed |= kept ^ 1u;
    }
    return missed == 0;
  }
  static bool near32(const std::uint32_t* in, const std::uint32_t* back, std::size_t count, double strict) {
    return near<float>(in, back, count, strict);
  }
  static bool near64(const std::uint64_t* in, const std::uint64_t* back, std::size_t count, double strict) {
    return near<double>(in, back, count, strict);
  }

  /// Whole numbers in the order of the elements: those are compared in vectors without a word on NaN.
  static void range32(const std::uint32_t* __restrict in, std::size_t count, double& low, double& high) {
    constexpr std::uint32_t kInfinity = 0x7f800000u;
    std::int32_t least = INT32_MAX;
    std::int32_t most = INT32_MIN;
    for (std::size_t i = 0; i < count; ++i) {
      const auto bits = static_cast<std::int32_t>(in[i]);
      const std::int32_t key = bits ^ ((bits >> 31) & INT32_MAX);
      const bool finite = (in[i] & 0x7fffffffu) < kInfinity;
      const std::int32_t lower = finite ? key : INT32_MAX;
      const std::int32_t upper = finite ? key : INT32_MIN;
      least = lower < least ? lower : least;
      most = upper > most ? upper : most;
    }
    if (least > most) return;
    const auto value = [](std::int32_t key) {
      return static_cast<double>(std::bit_cast<float>(key ^ ((key >> 31) & INT32_MAX)));
    };
    low = value(least) < low ? value(least) : low;
    high = value(most) > high ? value(most) : high;
  }

  static constexpr InterpKernels kKernels{InterpRowsInstance<Isa, std::int32_t>::kRows,
                                          InterpRowsInstance<Isa, std::int64_t>::kRows,
                                          &spread,
                                          &contexts,
                                          &bins,
                                          &InterpRowsInstance<Isa, std::int32_t>::template interleave<std::uint16_t>,
                                          &near32,
                                          &near64,
                                          &range32};
};

}  // namespace quern::kernels
