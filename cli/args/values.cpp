// Strict readers of numbers and small texts from the command line.
#include "cli/args/values.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "cli/args/exit_codes.h"

namespace quern::cli {
namespace {

/// A floating-point number of type T, rounded once from the decimal digits. Overflow gives infinity.
template <class T>
std::optional<T> read_number(std::string_view text) {
  if (!text.empty() && text.front() == '+') {
    text.remove_prefix(1);
    if (!text.empty() && text.front() == '-') return std::nullopt;
  }
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size() || text.empty()) return std::nullopt;
  if (error == std::errc::result_out_of_range) {
    if constexpr (std::is_floating_point_v<T>) {
      // from_chars does not say which way it left the range; a binary64 tells for the smaller types.
      const std::string copy(text);
      const double wide = std::strtod(copy.c_str(), nullptr);
      return static_cast<T>(wide);
    }
    return std::nullopt;
  }
  if (error != std::errc()) return std::nullopt;
  return value;
}

/// binary64 to a 16-bit float with `mantissa` stored bits and exponent bias `bias`: round half to even.
std::uint16_t round_to_16_bits(double value, int mantissa, int bias) {
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::fabs(value);
  const int largest_exponent = bias;
  const int smallest_exponent = 1 - bias;
  int exponent = smallest_exponent;
  if (magnitude != 0) {
    std::frexp(magnitude, &exponent);
    exponent = std::max(exponent - 1, smallest_exponent);
  }
  // Units of the last place, rounded in the default mode: half to even.
  const double units = std::nearbyint(std::ldexp(magnitude, mantissa - exponent));
  const double rounded = std::ldexp(units, exponent - mantissa);
  const std::uint16_t infinity = static_cast<std::uint16_t>((2 * bias + 1) << mantissa);
  if (rounded >= std::ldexp(1.0, largest_exponent + 1)) return sign | infinity;
  // A carry out of the mantissa moves the exponent up by itself.
  const int stored = exponent - smallest_exponent;
  return static_cast<std::uint16_t>(
      sign | (static_cast<std::uint32_t>(units) + (static_cast<std::uint32_t>(stored) << mantissa)));
}

std::uint64_t quiet_nan_bits(DType dtype) {
  switch (dtype) {
    case DType::f16: return 0x7e00;
    case DType::bf16: return 0x7fc0;
    case DType::f32: return 0x7fc00000;
    default: return UINT64_C(0x7ff8000000000000);
  }
}

std::uint64_t float_fill(std::string_view text, DType dtype) {
  if (text == "nan" || text == "NaN" || text == "NAN") return quiet_nan_bits(dtype);
  const auto number = read_number<double>(text);
  if (!number || !std::isfinite(*number))
    fail(Exit::usage, fmt::format("--fill {}: not a number; write one such as -9999, 1e20 or nan", text));
  std::uint64_t bits = 0;
  bool finite = true;
  if (dtype == DType::f64) {
    bits = std::bit_cast<std::uint64_t>(*number);
  } else if (dtype == DType::f32) {
    const float value = read_number<float>(text).value_or(std::numeric_limits<float>::infinity());
    finite = std::isfinite(value);
    bits = std::bit_cast<std::uint32_t>(value);
  } else {
    const int mantissa = dtype == DType::f16 ? 10 : 7;
    const std::uint32_t exponent_mask = dtype == DType::f16 ? 0x7c00 : 0x7f80;
    bits = round_to_16_bits(*number, mantissa, dtype == DType::f16 ? 15 : 127);
    finite = (bits & exponent_mask) != exponent_mask;
  }
  if (!finite) fail(Exit::usage, fmt::format("--fill {}: too large for {}", text, dtype_name(dtype)));
  return bits;
}

std::uint64_t integer_fill(std::string_view text, DType dtype) {
  const unsigned width = static_cast<unsigned>(8 * dtype_bytes(dtype));
  const std::uint64_t mask = width == 64 ? ~UINT64_C(0) : (UINT64_C(1) << width) - 1;
  // Integers are also written as 255.0 or 1e3, which is how some tools print a fill value.
  const auto as_signed = read_number<std::int64_t>(text);
  const auto as_unsigned = read_number<std::uint64_t>(text);
  const auto as_real = read_number<double>(text);
  bool known = true;
  bool negative = false;
  std::uint64_t magnitude = 0;
  if (as_unsigned) {
    magnitude = *as_unsigned;
  } else if (as_signed) {
    negative = *as_signed < 0;
    magnitude = negative ? -static_cast<std::uint64_t>(*as_signed) : static_cast<std::uint64_t>(*as_signed);
  } else if (as_real && std::fabs(*as_real) < 0x1p64 && std::nearbyint(*as_real) == *as_real) {
    negative = *as_real < 0;
    magnitude = static_cast<std::uint64_t>(std::fabs(*as_real));
  } else {
    known = false;
  }
  if (!known)
    fail(Exit::usage, fmt::format("--fill {}: no value of {} equals it; write an integer", text, dtype_name(dtype)));
  const std::uint64_t highest = is_signed_integer(dtype) ? mask >> 1 : mask;
  const std::uint64_t lowest = is_signed_integer(dtype) ? highest + 1 : 0;
  if (magnitude > (negative ? lowest : highest))
    fail(Exit::usage, fmt::format("--fill {}: outside the range of {}", text, dtype_name(dtype)));
  return (negative ? -magnitude : magnitude) & mask;
}

}  // namespace

std::optional<DType> parse_type(std::string_view text) {
  static constexpr std::pair<std::string_view, DType> kNames[] = {
      {"float16", DType::f16}, {"half", DType::f16},   {"bfloat16", DType::bf16}, {"float32", DType::f32},
      {"float", DType::f32},   {"single", DType::f32}, {"float64", DType::f64},   {"double", DType::f64},
      {"int8", DType::i8},     {"int16", DType::i16},  {"short", DType::i16},     {"int32", DType::i32},
      {"int", DType::i32},     {"int64", DType::i64},  {"uint8", DType::u8},      {"uint16", DType::u16},
      {"ushort", DType::u16},  {"uint32", DType::u32}, {"uint", DType::u32},      {"uint64", DType::u64}};
  for (const auto& [name, dtype] : kNames)
    if (name == text) return dtype;
  return parse_dtype(text);
}

double parse_real(std::string_view text, std::string_view what) {
  const auto value = read_number<double>(text);
  if (!value) fail(Exit::usage, fmt::format("{} {}: not a number", what, text));
  if (!std::isfinite(*value)) fail(Exit::usage, fmt::format("{} {}: must be a finite number", what, text));
  return *value;
}

std::uint64_t parse_count(std::string_view text, std::string_view what, std::uint64_t limit) {
  const auto value = read_number<std::uint64_t>(text);
  if (!value || *value > limit)
    fail(Exit::usage, fmt::format("{} {}: write an integer from 0 to {}", what, text, limit));
  return *value;
}

std::uint64_t parse_size(std::string_view text, std::string_view what) {
  const std::string_view whole = text;
  if (text.ends_with("iB")) {
    text.remove_suffix(2);
  } else if (text.ends_with('B')) {
    text.remove_suffix(1);
  }
  unsigned shift = 0;
  if (!text.empty()) {
    switch (text.back()) {
      case 'K':
      case 'k': shift = 10; break;
      case 'M': shift = 20; break;
      case 'G': shift = 30; break;
      case 'T': shift = 40; break;
      default: break;
    }
  }
  if (shift != 0) text.remove_suffix(1);
  const auto value = read_number<std::uint64_t>(text);
  if (!value || *value == 0 || *value > (UINT64_MAX >> shift))
    fail(Exit::usage, fmt::format("{} {}: write a size in bytes such as 1000000, 512M or 4G", what, whole));
  return *value << shift;
}

namespace {

/// Digits of a decimal number, and the power of ten of the first one.
struct Decimal {
  std::string digits;
  int power = 0;
};

std::optional<Decimal> read_decimal(std::string_view text) {
  Decimal out;
  int exponent = 0;
  if (const std::size_t e = text.find_first_of("eE"); e != std::string_view::npos) {
    const auto value = read_number<int>(text.substr(e + 1));
    if (!value || *value < -30 || *value > 30) return std::nullopt;
    exponent = *value;
    text = text.substr(0, e);
  }
  const std::size_t point = std::min(text.find('.'), text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i == point) continue;
    if (text[i] < '0' || text[i] > '9') return std::nullopt;
    out.digits += text[i];
  }
  out.power = static_cast<int>(point) - 1 + exponent;
  if (out.digits.empty() || out.digits.size() > 40) return std::nullopt;
  return out;
}

}  // namespace

std::uint64_t parse_length(std::string_view text, std::string_view what) {
  constexpr std::uint64_t kMost = UINT64_C(104'857'600'000);
  const std::string_view whole = text;
  int power = 9;
  if (text.ends_with("cm") || text.ends_with("mm")) {
    power = text.ends_with("cm") ? 7 : 6;
    text.remove_suffix(2);
  } else if (text.ends_with('m')) {
    text.remove_suffix(1);
  }
  const auto decimal = read_decimal(text);
  std::uint64_t nm = 0;
  bool fits = decimal.has_value();
  for (std::size_t i = 0; fits && i < decimal->digits.size(); ++i) {
    const int place = decimal->power + power - static_cast<int>(i);
    std::uint64_t part = static_cast<std::uint64_t>(decimal->digits[i] - '0');
    if (place < 0 || part == 0) continue;
    fits = place <= 12;
    for (int n = 0; fits && n < place; ++n) part *= 10;
    nm += part;
  }
  if (!fits || nm == 0 || nm > kMost)
    fail(Exit::usage,
         fmt::format("{} {}: write a length above 0 and at most 104m, such as 15cm, 20mm or 0.1m", what, whole));
  return nm;
}

std::string size_text(std::uint64_t bytes) {
  static constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

ValueRange parse_range(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos)
    fail(Exit::usage, fmt::format("--range {}: write MIN:MAX, as in --range 0:273.15", text));
  const ValueRange range{parse_real(text.substr(0, colon), "--range"), parse_real(text.substr(colon + 1), "--range")};
  if (range.min > range.max) fail(Exit::usage, fmt::format("--range {}: MIN is larger than MAX", text));
  return range;
}

std::pair<String, String> parse_setting(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0)
    fail(Exit::usage, fmt::format("--set {}: write key=value", text));
  return {String(text.substr(0, equals)), String(text.substr(equals + 1))};
}

ErrorBound parse_bound(BoundKind kind, std::string_view text, std::string_view what) {
  const auto value = read_number<double>(text);
  if (!value || std::isnan(*value)) fail(Exit::usage, fmt::format("{} {}: not a number", what, text));
  if (std::isinf(*value)) fail(Exit::usage, fmt::format("{} {}: must be a finite number", what, text));
  if (std::signbit(*value)) fail(Exit::usage, fmt::format("{} {}: must not be negative", what, text));
  return {kind, *value};
}

std::optional<BoundKind> bound_kind_of(std::string_view name) {
  for (const BoundKind kind :
       {BoundKind::lossless, BoundKind::abs, BoundKind::rel, BoundKind::pwrel, BoundKind::psnr, BoundKind::ratio})
    if (name == bound_kind_name(kind)) return kind;
  return std::nullopt;
}

VariableBound parse_variable_bound(std::string_view text, std::string_view what) {
  const auto refuse = [&](const char* why) {
    fail(Exit::usage,
         fmt::format("{} {}: {}; write NAME=KIND:VALUE, as in tas=abs:0.01, with a kind of abs, rel, pwrel, "
                     "psnr, ratio or lossless",
                     what, text, why));
  };
  const std::size_t equals = text.rfind('=');
  if (equals == std::string_view::npos || equals == 0) refuse("no name");
  const std::string_view bound = text.substr(equals + 1);
  const std::size_t colon = bound.find(':');
  const auto kind = bound_kind_of(bound.substr(0, colon));
  if (!kind) refuse("no kind of bound");
  if ((*kind == BoundKind::lossless) != (colon == std::string_view::npos))
    refuse(*kind == BoundKind::lossless ? "lossless has no value" : "no value");
  VariableBound out{std::string(text.substr(0, equals)), {*kind, 0.0}};
  if (*kind != BoundKind::lossless) out.bound = parse_bound(*kind, bound.substr(colon + 1), what);
  return out;
}

std::uint64_t parse_fill(std::string_view text, DType dtype) {
  return is_float(dtype) ? float_fill(text, dtype) : integer_fill(text, dtype);
}

std::vector<std::string> split_list(std::string_view text, std::string_view what) {
  std::vector<std::string> out;
  std::size_t at = 0;
  while (true) {
    const std::size_t comma = text.find(',', at);
    const std::string_view part = text.substr(at, comma == std::string_view::npos ? comma : comma - at);
    if (part.empty()) fail(Exit::usage, fmt::format("{} {}: write a list such as a,b,c", what, text));
    out.emplace_back(part);
    if (comma == std::string_view::npos) return out;
    at = comma + 1;
  }
}

}  // namespace quern::cli
