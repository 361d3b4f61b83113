// Conversion of every element type to binary64 for pictures.
#include "cli/report/pair_reader.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace quern::report {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

template <class T>
T load(const void* data, std::uint64_t index) {
  T value;
  std::memcpy(&value, static_cast<const char*>(data) + index * sizeof(T), sizeof(T));
  return value;
}

template <class T>
T from_bits(std::uint64_t bits) {
  if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  } else if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<double>(bits);
  } else {
    return static_cast<T>(bits);
  }
}

double f16_to_double(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int mantissa = bits & 1023;
  double magnitude = std::ldexp(exponent == 0 ? mantissa : 1024 + mantissa, exponent == 0 ? -24 : exponent - 25);
  if (exponent == 31) magnitude = mantissa != 0 ? kNan : std::numeric_limits<double>::infinity();
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

double bf16_to_double(std::uint16_t bits) {
  return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16));
}

template <class T>
double plain(T value) {
  return static_cast<double>(value);
}

template <class T>
double rounded_difference(T a, T b) {
  if constexpr (std::is_integral_v<T> && sizeof(T) == 8) {
    const auto wide = static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b);
    return a < b ? -static_cast<double>(0 - wide) : static_cast<double>(wide);
  } else {
    return static_cast<double>(a) - static_cast<double>(b);
  }
}

struct Job {
  const void* original;
  const void* reconstructed;
  std::span<const std::uint64_t> fill_bits;
  std::uint64_t begin;
  std::uint64_t stride;
};

template <class T, class Convert>
void convert_run(const Job& job, Convert convert, PairRun& run) {
  std::vector<T> fills;
  for (const std::uint64_t bits : job.fill_bits) fills.push_back(from_bits<T>(bits));
  for (std::size_t i = 0; i < run.original.size(); ++i) {
    const T x = load<T>(job.original, job.begin + i * job.stride);
    const T y = load<T>(job.reconstructed, job.begin + i * job.stride);
    double value = convert(x);
    if (!std::isfinite(value)) value = kNan;
    for (const T fill : fills)
      if (fill == x || (sizeof(T) == 2 && convert(fill) == value)) value = kNan;
    run.original[i] = value;
    run.reconstructed[i] = convert(y);
    if (std::isnan(value)) {
      run.error[i] = kNan;
    } else if constexpr (std::is_same_v<T, std::uint16_t>) {
      run.error[i] = value - run.reconstructed[i];
    } else {
      run.error[i] = rounded_difference(x, y);
    }
  }
}

}  // namespace

void PairReader::read(std::uint64_t begin, std::uint64_t n, std::uint64_t stride, PairRun& run) const {
  run.original.resize(n);
  run.reconstructed.resize(n);
  run.error.resize(n);
  const Job job{original_.data, reconstructed_.data, fill_bits_, begin, stride};
  switch (original_.dtype) {
    case DType::f16: return convert_run<std::uint16_t>(job, f16_to_double, run);
    case DType::bf16: return convert_run<std::uint16_t>(job, bf16_to_double, run);
    case DType::f32: return convert_run<float>(job, plain<float>, run);
    case DType::f64: return convert_run<double>(job, plain<double>, run);
    case DType::i8: return convert_run<std::int8_t>(job, plain<std::int8_t>, run);
    case DType::i16: return convert_run<std::int16_t>(job, plain<std::int16_t>, run);
    case DType::i32: return convert_run<std::int32_t>(job, plain<std::int32_t>, run);
    case DType::i64: return convert_run<std::int64_t>(job, plain<std::int64_t>, run);
    case DType::u8: return convert_run<std::uint8_t>(job, plain<std::uint8_t>, run);
    case DType::u16: return convert_run<std::uint16_t>(job, plain<std::uint16_t>, run);
    case DType::u32: return convert_run<std::uint32_t>(job, plain<std::uint32_t>, run);
    case DType::u64: return convert_run<std::uint64_t>(job, plain<std::uint64_t>, run);
  }
}

}  // namespace quern::report
