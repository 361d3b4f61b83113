// Which quantizer (quantize.h) an element type and a kind of bound take.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/common/element_type.h"
#include "kernels/common/quantize.h"

namespace quern::kernels {

/// How elements become codes.
enum class QuantizerKind : std::uint8_t { absolute = 0, pointwise = 1, exact = 2 };

/// Calls f.template operator()<Q, Exact>() with the quantizer for an element type and kind, and the exact quantizer for
/// tiles where Q does not pay. Point-wise bounds exist for floating-point types alone (returns false otherwise).
template <class F>
constexpr bool with_quantizer(Element e, QuantizerKind kind, F&& f) {
  const auto pick = [&]<class Abs, class Pointwise, class Exact>() {
    if (kind == QuantizerKind::exact) {
      f.template operator()<Exact, Exact>();
    } else if (kind == QuantizerKind::absolute) {
      f.template operator()<Abs, Exact>();
    } else if constexpr (!std::is_void_v<Pointwise>) {
      f.template operator()<Pointwise, Exact>();
    } else {
      return false;
    }
    return true;
  };
  using std::uint16_t, std::uint32_t, std::uint64_t, std::uint8_t;
  switch (e) {
    case Element::f16:
      return pick.template
      operator()<AbsQuantizer32<Binary16>, PointwiseQuantizer<uint16_t, 10>, ExactQuantizer<uint16_t, true, true>>();
    case Element::bf16:
      return pick.template
      operator()<AbsQuantizer32<Bfloat16>, PointwiseQuantizer<uint16_t, 7>, ExactQuantizer<uint16_t, true, true>>();
    case Element::f32:
      return pick.template
      operator()<AbsQuantizer32<Binary32>, PointwiseQuantizer<uint32_t, 23>, ExactQuantizer<uint32_t, true, true>>();
    case Element::f64:
      return pick.template
      operator()<AbsQuantizer64, PointwiseQuantizer<uint64_t, 52>, ExactQuantizer<uint64_t, true, true>>();
    case Element::i8:
      return pick.template operator()<IntQuantizer<std::int8_t>, void, ExactQuantizer<uint8_t, false, true>>();
    case Element::i16:
      return pick.template operator()<IntQuantizer<std::int16_t>, void, ExactQuantizer<uint16_t, false, true>>();
    case Element::i32:
      return pick.template operator()<IntQuantizer<std::int32_t>, void, ExactQuantizer<uint32_t, false, true>>();
    case Element::i64:
      return pick.template operator()<IntQuantizer<std::int64_t>, void, ExactQuantizer<uint64_t, false, true>>();
    case Element::u8:
      return pick.template operator()<IntQuantizer<uint8_t>, void, ExactQuantizer<uint8_t, false, false>>();
    case Element::u16:
      return pick.template operator()<IntQuantizer<uint16_t>, void, ExactQuantizer<uint16_t, false, false>>();
    case Element::u32:
      return pick.template operator()<IntQuantizer<uint32_t>, void, ExactQuantizer<uint32_t, false, false>>();
    case Element::u64:
      return pick.template operator()<IntQuantizer<uint64_t>, void, ExactQuantizer<uint64_t, false, false>>();
  }
  return false;
}

/// ExactQuantizer takes no parameters; this makes any quantizer from them.
template <class Q>
[[gnu::always_inline]] constexpr Q make_quantizer(const QuantizerParams& p) {
  if constexpr (std::is_constructible_v<Q, const QuantizerParams&>) {
    return Q(p);
  } else {
    return Q{};
  }
}

}  // namespace quern::kernels
