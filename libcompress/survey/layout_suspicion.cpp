// Floats are told by their exponents: those of neighbours are close in data and random in bytes that are no
// exponents. Integers are told by the differences of neighbours.
#include "libcompress/survey/layout_suspicion.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>

#include "libcompress/pipeline/elements.h"

namespace quern {
namespace {

constexpr std::uint64_t kLeastPairs = 64;  // fewer say nothing

template <class Bits>
Bits swapped(Bits bits) {
  if constexpr (sizeof(Bits) == 2) return __builtin_bswap16(bits);
  if constexpr (sizeof(Bits) == 4) return __builtin_bswap32(bits);
  if constexpr (sizeof(Bits) == 8) return __builtin_bswap64(bits);
}

/// Exponent fields of one reading of the bytes. Zeros and repeated values say nothing and are passed over.
struct Exponents {
  std::uint64_t codes = 256;  ///< how many exponents there are
  std::uint64_t seen = 0;
  std::uint64_t subnormal = 0;
  std::uint64_t pairs = 0;
  std::uint64_t close = 0;  ///< pairs of neighbours at most a 64th of all exponents apart: 3 % of random ones
  int last = -1;

  void add(int exponent, bool zero, bool repeated) {
    if (zero) {
      last = -1;
      return;
    }
    if (repeated && last >= 0) return;
    ++seen;
    subnormal += exponent == 0 ? 1 : 0;
    if (last >= 0) {
      ++pairs;
      const auto step = static_cast<std::uint64_t>(exponent > last ? exponent - last : last - exponent);
      close += step * 64 <= codes ? 1 : 0;
    }
    last = exponent;
  }
  bool jump() const { return pairs >= kLeastPairs && close * 5 <= pairs; }
  bool are_orderly() const { return pairs >= kLeastPairs && close * 2 >= pairs && subnormal * 100 < seen; }
};

template <class Element>
struct FloatFields {
  using Bits = typename Element::Bits;
  static constexpr std::uint64_t kCodes = std::uint64_t{Element::kInfinity >> Element::kFractionBits} + 1;
  static int exponent(Bits bits) {
    return static_cast<int>(static_cast<Bits>(bits & ~Element::kSign) >> Element::kFractionBits);
  }
  static bool zero(Bits bits) { return static_cast<Bits>(bits & ~Element::kSign) == 0; }
};

using F32 = FloatElement<std::uint32_t, 8>;
using Fields32 = FloatFields<F32>;

template <class Element>
bool has_wrong_order(const SampleBlocks& sample) {
  using Fields = FloatFields<Element>;
  Exponents native{Fields::kCodes}, other{Fields::kCodes};
  sample.each([&](const std::uint8_t* data, std::uint64_t count) {
    native.last = other.last = -1;
    typename Element::Bits last = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto bits = load_bits<Element>(data, i);
      native.add(Fields::exponent(bits), Fields::zero(bits), bits == last);
      other.add(Fields::exponent(swapped(bits)), Fields::zero(bits), bits == last);
      last = bits;
    }
  });
  const bool all_tiny = native.pairs >= kLeastPairs && native.subnormal * 10 >= native.seen * 9;
  return other.are_orderly() && (native.jump() || all_tiny);
}

/// Differences of neighbours against the spread of all.
struct Roughness {
  std::uint64_t min = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t max = 0;
  std::uint64_t steps = 0;  ///< sum of |difference| >> shift
  std::uint64_t pairs = 0;
  std::uint64_t last = 0;

  /// `v` in the order of the values, with its lowest bits cut so that sums cannot overflow.
  void add(std::uint64_t v, bool first) {
    min = std::min(min, v);
    max = std::max(max, v);
    if (!first) {
      steps += v > last ? v - last : last - v;
      ++pairs;
    }
    last = v;
  }
  /// Mean step as a share of the spread is at least / less than 1 / `n`.
  bool at_least(std::uint64_t n) const { return pairs >= kLeastPairs && steps / pairs >= (max - min) / n && max > min; }
  bool less_than(std::uint64_t n) const { return pairs >= kLeastPairs && steps / pairs < (max - min) / n; }
};

template <class Element>
bool has_wrong_integer_order(const SampleBlocks& sample) {
  using Bits = typename Element::Bits;
  constexpr unsigned kWidth = 8 * sizeof(Bits);
  constexpr bool kSigned = std::is_signed_v<typename Element::Key>;
  // Sums of 2^24 differences of 40 bits fit into 64.
  constexpr unsigned kCut = kWidth > 40 ? kWidth - 40 : 0;
  const auto ordered = [](Bits bits) {
    constexpr auto kTop = static_cast<Bits>(Bits{1} << (kWidth - 1));
    return static_cast<std::uint64_t>(kSigned ? static_cast<Bits>(bits ^ kTop) : bits) >> kCut;
  };
  Roughness native, other;
  Bits low_bytes_differ = 0;
  Bits first = 0;
  bool any = false;
  sample.each([&](const std::uint8_t* data, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto bits = load_bits<Element>(data, i);
      if (!any) first = bits;
      any = true;
      low_bytes_differ = static_cast<Bits>(low_bytes_differ | (bits ^ first));
      native.add(ordered(bits), i == 0);
      other.add(ordered(swapped(bits)), i == 0);
    }
  });
  // Where one byte alone varies, both orders give the same numbers but for a factor.
  int varying = 0;
  for (unsigned shift = 0; shift < kWidth; shift += 8) varying += (low_bytes_differ >> shift & 0xff) != 0 ? 1 : 0;
  return varying > 1 && native.at_least(7) && other.less_than(50);
}

/// f32 read as f64: both halves are floats of about the same size.
bool looks_like_halves(const SampleBlocks& sample) {
  std::uint64_t seen = 0, alike = 0;
  sample.each([&](const std::uint8_t* data, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      std::uint32_t low = 0, high = 0;
      std::memcpy(&low, data + 8 * i, 4);
      std::memcpy(&high, data + 8 * i + 4, 4);
      if (Fields32::zero(low) && Fields32::zero(high)) continue;
      ++seen;
      const int a = Fields32::exponent(low), b = Fields32::exponent(high);
      // Neither tiny nor huge, as neither zeros at the end of a double nor its random digits are.
      alike += a > 32 && a < 223 && a - b <= 3 && b - a <= 3 ? 1 : 0;
    }
  });
  return seen >= kLeastPairs && alike * 10 >= seen * 6;
}

/// f64 read as f32: exponents of every second element are orderly, those of the others are random.
bool looks_like_doubles(const SampleBlocks& sample) {
  Exponents low, high;
  sample.each([&](const std::uint8_t* data, std::uint64_t count) {
    low.last = high.last = -1;
    std::uint32_t last_low = 0, last_high = 0;
    for (std::uint64_t i = 0; i + 1 < count; i += 2) {
      const auto a = load_bits<F32>(data, i);
      const auto b = load_bits<F32>(data, i + 1);
      const bool repeated = a == last_low && b == last_high;
      low.add(Fields32::exponent(a), Fields32::zero(a), repeated);
      high.add(Fields32::exponent(b), Fields32::zero(b), repeated);
      last_low = a;
      last_high = b;
    }
  });
  return low.jump() && high.are_orderly();
}

/// Integers read as floats: small ones are subnormal, small negative ones are NaN with all leading bits set.
template <class Element>
bool looks_like_integers(const SampleBlocks& sample) {
  using Bits = typename Element::Bits;
  constexpr auto kLeading = static_cast<Bits>(Element::kSign | Element::kInfinity | (Element::kInfinity >> 1));
  std::uint64_t seen = 0, small = 0, different = 0;
  Bits last = 0;
  sample.each([&](const std::uint8_t* data, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto bits = load_bits<Element>(data, i);
      if (bits == 0) continue;
      ++seen;
      different += bits != last ? 1 : 0;
      last = bits;
      // Not as small as the smallest number there is: those are results of arithmetic.
      small += (bits < (Bits{1} << Element::kFractionBits) || (bits & kLeading) == kLeading) ? 1 : 0;
    }
  });
  return different >= kLeastPairs && small * 100 >= seen * 95;
}

/// Floats of both signs read as integers: all exponents are near that of 1.
bool looks_like_floats(const SampleBlocks& sample) {
  std::uint64_t seen = 0, likely = 0, negative = 0;
  sample.each([&](const std::uint8_t* data, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto bits = load_bits<F32>(data, i);
      if (Fields32::zero(bits)) continue;
      ++seen;
      const int exponent = Fields32::exponent(bits);
      if (exponent < 87 || exponent > 167) continue;
      ++likely;
      negative += bits >> 31;
    }
  });
  return seen >= kLeastPairs && likely * 100 >= seen * 98 && negative * 20 >= seen && (seen - negative) * 20 >= seen;
}

Suspicion of_type(DType likely) {
  Suspicion s;
  s.kind = Suspicion::Kind::element_type;
  s.likely = likely;
  return s;
}

bool order_is_wrong(DType dtype, const SampleBlocks& sample) {
  return with_element(dtype, [&](auto element) {
    using Element = decltype(element);
    if constexpr (sizeof(typename Element::Bits) == 1) {
      return false;
    } else if constexpr (std::is_same_v<Element, IntegerElement<typename Element::Key>>) {
      return has_wrong_integer_order<Element>(sample);
    } else {
      return has_wrong_order<Element>(sample);
    }
  });
}

}  // namespace

void suspect_layout(DType dtype, const SampleBlocks& sample, Vector<Suspicion>& out) {
  if (order_is_wrong(dtype, sample)) {
    Suspicion s;
    s.kind = Suspicion::Kind::byte_order;
    out.push_back(s);
  } else if (dtype == DType::f64 && looks_like_halves(sample)) {
    out.push_back(of_type(DType::f32));
  } else if (dtype == DType::f32 && looks_like_doubles(sample)) {
    out.push_back(of_type(DType::f64));
  } else if (dtype == DType::f32 && looks_like_integers<F32>(sample)) {
    out.push_back(of_type(DType::i32));
  } else if (dtype == DType::f64 && looks_like_integers<FloatElement<std::uint64_t, 11>>(sample)) {
    out.push_back(of_type(DType::i64));
  } else if ((dtype == DType::i32 || dtype == DType::u32) && looks_like_floats(sample)) {
    out.push_back(of_type(DType::f32));
  }
}

}  // namespace quern
