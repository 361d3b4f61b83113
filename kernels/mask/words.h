// Elements as the mask stage sees them: unsigned words of their size, and what bit patterns of each type mean.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/common/element_type.h"

namespace quern::kernels {

/// Words of one element type, and where sign and exponent lie in them.
template <Element kType>
struct ElementWords {
  static constexpr Element kElement = kType;
  static constexpr std::size_t kBytes = element_bytes(kType);
  static constexpr bool kFloat = is_float(kType);
  static constexpr bool kSigned = is_signed_integer(kType);
  using Word = std::conditional_t<
      kBytes == 1, std::uint8_t,
      std::conditional_t<kBytes == 2, std::uint16_t, std::conditional_t<kBytes == 4, std::uint32_t, std::uint64_t>>>;
  using Signed = std::make_signed_t<Word>;

  static constexpr unsigned kMantissaBits = kType == Element::f16    ? 10
                                            : kType == Element::bf16 ? 7
                                            : kType == Element::f32  ? 23
                                                                     : 52;
  static constexpr Word kSign = static_cast<Word>(Word{1} << (8 * kBytes - 1));
  static constexpr Word kMagnitude = static_cast<Word>(kSign - 1);
  /// Bits of infinity; magnitudes from here on are not finite. Floating-point types only.
  static constexpr Word kInfinity =
      kFloat ? static_cast<Word>((kMagnitude >> kMantissaBits) << kMantissaBits) : Word{0};
};

/// Calls body(ElementWords<element>{}) and returns what it returns.
template <class Body>
constexpr decltype(auto) with_element_words(Element element, Body&& body) {
  switch (element) {
    case Element::f16: return body(ElementWords<Element::f16>{});
    case Element::bf16: return body(ElementWords<Element::bf16>{});
    case Element::f32: return body(ElementWords<Element::f32>{});
    case Element::f64: return body(ElementWords<Element::f64>{});
    case Element::i8: return body(ElementWords<Element::i8>{});
    case Element::i16: return body(ElementWords<Element::i16>{});
    case Element::i32: return body(ElementWords<Element::i32>{});
    case Element::i64: return body(ElementWords<Element::i64>{});
    case Element::u8: return body(ElementWords<Element::u8>{});
    case Element::u16: return body(ElementWords<Element::u16>{});
    case Element::u32: return body(ElementWords<Element::u32>{});
    case Element::u64: break;
  }
  return body(ElementWords<Element::u64>{});
}

/// The value of an element, rounded to binary64 (exact except for large 64-bit integers).
template <class W>
[[gnu::always_inline]] constexpr double word_value(typename W::Word bits) {
  if constexpr (W::kElement == Element::f64) {
    return std::bit_cast<double>(bits);
  } else if constexpr (W::kElement == Element::f32) {
    return static_cast<double>(std::bit_cast<float>(bits));
  } else if constexpr (W::kElement == Element::bf16) {
    return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16));
  } else if constexpr (W::kElement == Element::f16) {
    // The exponent field of a half, moved into a float, is 112 too small; the multiplication repairs it exactly, for
    // denormals as well.
    const float magnitude = std::bit_cast<float>(static_cast<std::uint32_t>(bits & W::kMagnitude) << 13) * 0x1p112F;
    return static_cast<double>((bits & W::kSign) != 0 ? -magnitude : magnitude);
  } else if constexpr (W::kSigned) {
    return static_cast<double>(static_cast<typename W::Signed>(bits));
  } else {
    return static_cast<double>(bits);
  }
}

/// Bits of a declared fill value as words to compare with: none when they are masked anyway, both zeros for a zero.
template <class W>
struct FillWords {
  typename W::Word words[2]{};
  unsigned count = 0;

  constexpr explicit FillWords(std::uint64_t bits) {
    const auto word = static_cast<typename W::Word>(bits);
    if (W::kFloat && (word & W::kMagnitude) >= W::kInfinity) return;
    words[count++] = word;
    if (W::kFloat && (word & W::kMagnitude) == 0) words[count++] = static_cast<typename W::Word>(word ^ W::kSign);
  }
};

}  // namespace quern::kernels
