// Elements as unsigned words: what bit patterns of each dtype mean, and a typed call for a run-time dtype.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <quern/dtype.h>

namespace quern::mask {

/// One element type as the mask stage sees it: words of its size, and where sign and exponent lie in them.
template <DType kType>
struct Words {
  static constexpr DType kDtype = kType;
  static constexpr std::size_t kBytes = dtype_bytes(kType);
  static constexpr bool kFloat = is_float(kType);
  static constexpr bool kSigned = is_signed_integer(kType);
  using Word = std::conditional_t<
      kBytes == 1, std::uint8_t,
      std::conditional_t<kBytes == 2, std::uint16_t, std::conditional_t<kBytes == 4, std::uint32_t, std::uint64_t>>>;
  using Signed = std::make_signed_t<Word>;

  static constexpr unsigned kMantissaBits = kType == DType::f16    ? 10
                                            : kType == DType::bf16 ? 7
                                            : kType == DType::f32  ? 23
                                                                   : 52;
  static constexpr Word kSign = static_cast<Word>(Word{1} << (8 * kBytes - 1));
  static constexpr Word kMagnitude = static_cast<Word>(kSign - 1);
  /// Bits of infinity; magnitudes from here on are not finite. Floating-point types only.
  static constexpr Word kInfinity =
      kFloat ? static_cast<Word>((kMagnitude >> kMantissaBits) << kMantissaBits) : Word{0};
};

/// Calls body(Words<dtype>{}) and returns what it returns.
template <class Body>
decltype(auto) with_words(DType dtype, Body&& body) {
  switch (dtype) {
    case DType::f16: return body(Words<DType::f16>{});
    case DType::bf16: return body(Words<DType::bf16>{});
    case DType::f32: return body(Words<DType::f32>{});
    case DType::f64: return body(Words<DType::f64>{});
    case DType::i8: return body(Words<DType::i8>{});
    case DType::i16: return body(Words<DType::i16>{});
    case DType::i32: return body(Words<DType::i32>{});
    case DType::i64: return body(Words<DType::i64>{});
    case DType::u8: return body(Words<DType::u8>{});
    case DType::u16: return body(Words<DType::u16>{});
    case DType::u32: return body(Words<DType::u32>{});
    case DType::u64: break;
  }
  return body(Words<DType::u64>{});
}

/// The value of an element, rounded to binary64 (exact except for large 64-bit integers).
template <class W>
double to_double(typename W::Word bits) {
  if constexpr (W::kDtype == DType::f64) {
    return std::bit_cast<double>(bits);
  } else if constexpr (W::kDtype == DType::f32) {
    return static_cast<double>(std::bit_cast<float>(bits));
  } else if constexpr (W::kDtype == DType::bf16) {
    return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16));
  } else if constexpr (W::kDtype == DType::f16) {
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

}  // namespace quern::mask
