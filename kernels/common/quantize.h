// Verified scalar quantizers: one element in, one integer code out, and back. Each encode says whether the decoder's
// own arithmetic brings the element back within the bound; those that do not are exceptions and are stored as they are.
//
// A quantizer Q has
//   Bits                      unsigned type of an element's bit pattern
//   Word                      unsigned type codes are computed in (two's complement, wrap-around)
//   encode(bits, code)        true: accepted. False may be too strict; then accepts_exactly decides
//   accepts_exactly(bits)     the exact decision, slow, consulted when encode said no
//   decode(code, sign)        bit pattern; any code is allowed
//   kHasSign, sign(bits)      true when the sign travels in a plane of its own (point-wise relative bounds)
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "kernels/common/bits.h"
#include "kernels/common/exact_difference.h"
#include "kernels/common/round_to_integer.h"

namespace quern::kernels {

/// Everything an encoder or decoder needs to know of a bound, computed once on the host. `step` and `half` are stored
/// in the stream; the reciprocals and `promised` serve the encoder alone.
struct QuantizerParams {
  double bound = 0;                  ///< abs: the largest error allowed (real arithmetic)
  double step = 0;                   ///< abs, floats: distance of codes; exact in the working type
  double reciprocal = 0;             ///< abs, floats: 1/step rounded to the working type
  double strict = 0;                 ///< abs, floats: largest number of the working type not above `bound`
  std::uint64_t int_step = 1;        ///< integers and keys: 2*half + 1
  std::uint64_t int_half = 0;        ///< integers: floor(bound); keys: floor(R * 2^fraction bits)
  std::uint64_t int_reciprocal = 0;  ///< floor((2^bits - 1) / int_step) for the word's bits
  /// abs, binary32: encode accepts every element but -0 whose code is in [-promised, promised], by a proof about this
  /// step; 0: nothing is proved.
  std::uint64_t promised = 0;
};

/// Round-to-nearest quotient of an unsigned magnitude, exact: an estimate by the reciprocal is at most one too small.
template <class W>
[[gnu::always_inline]] constexpr W rounded_quotient(W magnitude, W step, W half, W reciprocal) {
  W q = multiply_high(magnitude, reciprocal);
  W rest = static_cast<W>(magnitude - q * step);
  const W once = rest >= step ? W{1} : W{0};
  q += once;
  rest -= once * step;
  return static_cast<W>(q + (rest > half ? W{1} : W{0}));
}

/// code * step, not above `limit`.
template <class W>
[[gnu::always_inline]] constexpr W clamped_product(W code, W step, W limit) {
  const W product = static_cast<W>(code * step);
  return (multiply_high(code, step) != 0 || product > limit) ? limit : product;
}

/// Absolute bound on binary32, and on binary16 and bfloat16 through binary32 (Format converts).
/// Rounding to nearest even by adding kRoundingShift32; codes are valid while the sum keeps its exponent.
template <class Format>
struct AbsQuantizer32 {
  using Bits = typename Format::Bits;
  using Word = std::uint32_t;
  static constexpr bool kHasSign = false;

  [[gnu::always_inline]] explicit constexpr AbsQuantizer32(const QuantizerParams& p)
      : reciprocal(static_cast<float>(p.reciprocal)),
        step(static_cast<float>(p.step)),
        strict(static_cast<float>(p.strict)),
        bound(p.bound) {}

  [[gnu::always_inline]] constexpr bool encode(Bits bits, Word& code) const {
    const float x = Format::to_float(bits);
    const float shifted = x * reciprocal + kRoundingShift32;
    const Word pattern = std::bit_cast<Word>(shifted);
    code = pattern - kRoundingBits32;
    const float r = Format::round((shifted - kRoundingShift32) * step);
    const float difference = x - r;
    const float distance = difference < 0 ? -difference : difference;
    return (pattern >> 23 == 0x96u) & (distance < strict) & (bits != Format::kMinusZero);
  }
  /// As encode, in fewer operations where a comparison takes magnitudes: a code as the pattern of a
  /// float, which is kZeroPattern for code 0 and one more for each code. Refuses the lowest code too.
  static constexpr Word kZeroPattern = kRoundingBits32;
  [[gnu::always_inline]] constexpr bool encode_pattern(Bits bits, Word& pattern) const {
    const auto magnitude = [](float f) { return std::bit_cast<float>(std::bit_cast<Word>(f) & 0x7fffffffu); };
    const float x = Format::to_float(bits);
    const float shifted = x * reciprocal + kRoundingShift32;
    const float rounded = shifted - kRoundingShift32;
    pattern = std::bit_cast<Word>(shifted);
    const float difference = x - Format::round(rounded * step);
    return (magnitude(rounded) < 0x1p22f) & (magnitude(difference) < strict) & (bits != Format::kMinusZero);
  }
  [[gnu::always_inline]] constexpr bool accepts_exactly(Bits bits) const {
    const float x = Format::to_float(bits);
    const float shifted = x * reciprocal + kRoundingShift32;
    const float r = Format::round((shifted - kRoundingShift32) * step);
    return (std::bit_cast<Word>(shifted) >> 23 == 0x96u) && bits != Format::kMinusZero && within_bound(x, r, bound);
  }
  [[gnu::always_inline]] constexpr Bits decode(Word code, bool) const {
    return Format::from_float(static_cast<float>(static_cast<std::int32_t>(code)) * step);
  }

  float reciprocal;
  float step;
  float strict;
  double bound;
};

struct Binary32 {
  using Bits = std::uint32_t;
  static constexpr Bits kMinusZero = 0x80000000u;
  [[gnu::always_inline]] static constexpr float to_float(Bits b) { return std::bit_cast<float>(b); }
  [[gnu::always_inline]] static constexpr Bits from_float(float f) { return std::bit_cast<Bits>(f); }
  [[gnu::always_inline]] static constexpr float round(float f) { return f; }
};
struct Binary16 {
  using Bits = std::uint16_t;
  static constexpr Bits kMinusZero = 0x8000u;
  [[gnu::always_inline]] static constexpr float to_float(Bits b) { return half_to_float(b); }
  [[gnu::always_inline]] static constexpr Bits from_float(float f) { return static_cast<Bits>(float_to_half(f)); }
  [[gnu::always_inline]] static constexpr float round(float f) { return half_to_float(float_to_half(f)); }
};
struct Bfloat16 {
  using Bits = std::uint16_t;
  static constexpr Bits kMinusZero = 0x8000u;
  [[gnu::always_inline]] static constexpr float to_float(Bits b) { return bfloat_to_float(b); }
  [[gnu::always_inline]] static constexpr Bits from_float(float f) { return static_cast<Bits>(float_to_bfloat(f)); }
  [[gnu::always_inline]] static constexpr float round(float f) { return bfloat_to_float(float_to_bfloat(f)); }
};

/// Absolute bound on binary64; the same with kRoundingShift64.
struct AbsQuantizer64 {
  using Bits = std::uint64_t;
  using Word = std::uint64_t;
  static constexpr bool kHasSign = false;

  [[gnu::always_inline]] explicit constexpr AbsQuantizer64(const QuantizerParams& p)
      : reciprocal(p.reciprocal), step(p.step), strict(p.strict) {}

  [[gnu::always_inline]] constexpr bool encode(Bits bits, Word& code) const {
    const double x = std::bit_cast<double>(bits);
    const double shifted = x * reciprocal + kRoundingShift64;
    const Word pattern = std::bit_cast<Word>(shifted);
    code = pattern - kRoundingBits64;
    const double difference = x - (shifted - kRoundingShift64) * step;
    const double distance = difference < 0 ? -difference : difference;
    return (pattern >> 52 == 0x433u) & (distance < strict) & (bits != UINT64_C(0x8000000000000000));
  }
  [[gnu::always_inline]] constexpr bool accepts_exactly(Bits bits) const {
    const double x = std::bit_cast<double>(bits);
    const double shifted = x * reciprocal + kRoundingShift64;
    return (std::bit_cast<Word>(shifted) >> 52 == 0x433u) && bits != UINT64_C(0x8000000000000000) &&
           within_bound(x, (shifted - kRoundingShift64) * step, strict);
  }
  /// Codes from the encoder are below 2^51, where the conversion is exact.
  [[gnu::always_inline]] constexpr Bits decode(Word code, bool) const {
    return std::bit_cast<Bits>(static_cast<double>(static_cast<std::int64_t>(code)) * step);
  }

  double reciprocal;
  double step;
  double strict;
};

/// Integers under an absolute bound: nearest multiple of 2*floor(E)+1, clamped to the type. Never fails.
template <class T>
struct IntQuantizer {
  using Bits = std::make_unsigned_t<T>;
  using Word = std::conditional_t<(sizeof(T) > 4), std::uint64_t, std::uint32_t>;
  using SignedWord = std::make_signed_t<Word>;
  static constexpr bool kHasSign = false;

  [[gnu::always_inline]] explicit constexpr IntQuantizer(const QuantizerParams& p)
      : step(static_cast<Word>(p.int_step)),
        half(static_cast<Word>(p.int_half)),
        reciprocal(static_cast<Word>(p.int_reciprocal)) {}

  [[gnu::always_inline]] constexpr bool encode(Bits bits, Word& code) const {
    if constexpr (std::is_signed_v<T>) {
      const Word value = static_cast<Word>(static_cast<SignedWord>(static_cast<T>(bits)));
      const Word negative = static_cast<Word>(zero() - (value >> (8 * sizeof(Word) - 1)));
      const Word q = rounded_quotient<Word>((value ^ negative) - negative, step, half, reciprocal);
      code = (q ^ negative) - negative;
    } else {
      code = rounded_quotient<Word>(static_cast<Word>(bits), step, half, reciprocal);
    }
    return true;
  }
  [[gnu::always_inline]] constexpr bool accepts_exactly(Bits) const { return true; }
  [[gnu::always_inline]] constexpr Bits decode(Word code, bool) const {
    constexpr Word kTop = static_cast<Word>(static_cast<Bits>(~Bits{0}));
    if constexpr (std::is_signed_v<T>) {
      const Word negative = static_cast<Word>(zero() - (code >> (8 * sizeof(Word) - 1)));
      const Word limit = static_cast<Word>((kTop >> 1) + (negative & 1));
      const Word magnitude = clamped_product<Word>((code ^ negative) - negative, step, limit);
      return static_cast<Bits>((magnitude ^ negative) - negative);
    } else {
      return static_cast<Bits>(clamped_product<Word>(code, step, kTop));
    }
  }

  Word step;
  Word half;
  Word reciprocal;

 private:
  [[gnu::always_inline]] static constexpr Word zero() { return 0; }
};

/// Point-wise relative bound R on floating-point types, in integers only. The key is the bit pattern without its sign,
/// `half` is floor(R * 2^F) for F fraction bits: moving a normal number by at most `half` keys changes it by at most
/// R * |x| (within a binade a key is worth 2^(e-F) <= |x| * 2^-F; beyond the upper edge a key is worth twice as much,
/// which the larger |x| there pays for as long as R <= 1). Subnormal numbers must come back exactly, 0 does by itself.
template <class B, unsigned FractionBits>
struct PointwiseQuantizer {
  using Bits = B;
  using Word = std::conditional_t<(sizeof(B) > 4), std::uint64_t, std::uint32_t>;
  static constexpr bool kHasSign = true;
  static constexpr Word kSignBit = Word{1} << (8 * sizeof(B) - 1);
  static constexpr Word kInfinity = (kSignBit - 1) >> FractionBits << FractionBits;
  static constexpr Word kSmallestNormal = Word{1} << FractionBits;

  [[gnu::always_inline]] explicit constexpr PointwiseQuantizer(const QuantizerParams& p)
      : step(static_cast<Word>(p.int_step)),
        half(static_cast<Word>(p.int_half)),
        reciprocal(static_cast<Word>(p.int_reciprocal)) {}

  [[gnu::always_inline]] static constexpr bool sign(Bits bits) { return (bits & kSignBit) != 0; }
  [[gnu::always_inline]] constexpr bool encode(Bits bits, Word& code) const {
    const Word key = static_cast<Word>(bits) & static_cast<Word>(kSignBit - 1);
    code = rounded_quotient<Word>(key, step, half, reciprocal);
    const Word back = clamped_product<Word>(code, step, kInfinity - 1);
    const Word distance = key > back ? key - back : back - key;
    const bool normal = (key >= kSmallestNormal) & (key < kInfinity) & (distance <= half);
    return normal | (distance == 0);
  }
  [[gnu::always_inline]] constexpr bool accepts_exactly(Bits bits) const {
    Word code = 0;
    return encode(bits, code);
  }
  [[gnu::always_inline]] constexpr Bits decode(Word code, bool negative) const {
    return static_cast<Bits>(clamped_product<Word>(code, step, kInfinity - 1) | (negative ? kSignBit : Word{0}));
  }

  Word step;
  Word half;
  Word reciprocal;
};

/// No loss: the code is the element itself, floats as ordered keys so that neighbours stay neighbours.
template <class B, bool IsFloat, bool IsSigned>
struct ExactQuantizer {
  using Bits = B;
  using Word = std::conditional_t<(sizeof(B) > 4), std::uint64_t, std::uint32_t>;
  static constexpr bool kHasSign = false;

  [[gnu::always_inline]] constexpr bool encode(Bits bits, Word& code) const {
    const B key = IsFloat ? ordered_key<B>(bits) : bits;
    using S = std::make_signed_t<B>;
    if constexpr (IsFloat || IsSigned) {
      code = static_cast<Word>(static_cast<std::make_signed_t<Word>>(static_cast<S>(key)));
    } else {
      code = static_cast<Word>(key);
    }
    return true;
  }
  [[gnu::always_inline]] constexpr bool accepts_exactly(Bits) const { return true; }
  [[gnu::always_inline]] constexpr Bits decode(Word code, bool) const {
    const B key = static_cast<B>(code);
    return IsFloat ? ordered_key<B>(key) : key;
  }
};

}  // namespace quern::kernels
