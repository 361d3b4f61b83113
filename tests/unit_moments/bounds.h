// Whether decoded values keep their bounds, by code that shares nothing with any encoder: long double and the
// definitions.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "codecs/tensor/tensor.h"

namespace quern::testing {

inline float float_at(const std::vector<std::uint8_t>& bytes, std::size_t i) {
  float f;
  std::memcpy(&f, bytes.data() + 4 * i, 4);
  return f;
}
inline bool same_bits(const std::vector<std::uint8_t>& a, const std::vector<std::uint8_t>& b, std::size_t i) {
  return std::memcmp(a.data() + 4 * i, b.data() + 4 * i, 4) == 0;
}

inline bool mode_is_available(codec::tensor::Mode mode) {
  return codec::tensor::tensor_needs({}, mode, {}).status().code() != StatusCode::unsupported;
}

/// |ln sqrt v' - ln sqrt v| <= bound for positive finite v, all else bit for bit; bound 0: everything bit for bit.
inline void expect_log_bound(const std::vector<std::uint8_t>& values, const std::vector<std::uint8_t>& decoded,
                             double bound) {
  ASSERT_EQ(values.size(), decoded.size());
  for (std::size_t i = 0; i < values.size() / 4; ++i) {
    if (same_bits(values, decoded, i)) continue;
    const float v = float_at(values, i);
    const float d = float_at(decoded, i);
    ASSERT_TRUE(std::isfinite(v) && v > 0 && std::isfinite(d) && d > 0) << i << ": " << v << " became " << d;
    const long double off = (std::log(static_cast<long double>(d)) - std::log(static_cast<long double>(v))) / 2;
    ASSERT_LE(std::abs(off), static_cast<long double>(bound)) << i << ": " << v << " became " << d;
  }
}

/// |m' - m| <= eps * sqrt(v') where v' is positive and finite; elsewhere, and for zero and what is not finite, bit for
/// bit.
inline void expect_update_bound(const std::vector<std::uint8_t>& values, const std::vector<std::uint8_t>& decoded,
                                const std::vector<std::uint8_t>& second, double eps) {
  ASSERT_EQ(values.size(), decoded.size());
  for (std::size_t i = 0; i < values.size() / 4; ++i) {
    if (same_bits(values, decoded, i)) continue;
    const float m = float_at(values, i);
    const float d = float_at(decoded, i);
    const float v = float_at(second, i);
    ASSERT_TRUE(std::isfinite(m) && m != 0 && std::isfinite(d) && std::isfinite(v) && v > 0)
        << i << ": " << m << " became " << d << " beside " << v;
    ASSERT_LE(std::abs(static_cast<long double>(d) - static_cast<long double>(m)),
              static_cast<long double>(eps) * std::sqrt(static_cast<long double>(v)))
        << i << ": " << m << " became " << d << " beside " << v;
  }
}

/// |w' - w| <= bound; zeros and what is not finite bit for bit.
inline void expect_absolute_bound(const std::vector<std::uint8_t>& values, const std::vector<std::uint8_t>& decoded,
                                  long double bound) {
  ASSERT_EQ(values.size(), decoded.size());
  for (std::size_t i = 0; i < values.size() / 4; ++i) {
    if (same_bits(values, decoded, i)) continue;
    const float w = float_at(values, i);
    const float d = float_at(decoded, i);
    ASSERT_TRUE(std::isfinite(w) && w != 0 && std::isfinite(d)) << i << ": " << w << " became " << d;
    ASSERT_LE(std::abs(static_cast<long double>(d) - static_cast<long double>(w)), bound)
        << i << ": " << w << " became " << d;
  }
}

/// The same with the bound in standard deviations of the finite values; a hair is granted to the rounding of that.
inline void expect_deviation_bound(const std::vector<std::uint8_t>& values, const std::vector<std::uint8_t>& decoded,
                                   double deviations) {
  long double sum = 0;
  long double squares = 0;
  std::size_t count = 0;
  const std::size_t elems = values.size() / 4;
  for (std::size_t i = 0; i < elems; ++i)
    if (std::isfinite(float_at(values, i))) {
      sum += static_cast<long double>(float_at(values, i));
      ++count;
    }
  const long double mean = count == 0 ? 0 : sum / static_cast<long double>(count);
  for (std::size_t i = 0; i < elems; ++i)
    if (std::isfinite(float_at(values, i))) {
      const long double x = static_cast<long double>(float_at(values, i)) - mean;
      squares += x * x;
    }
  const long double deviation = count == 0 ? 0 : std::sqrt(squares / static_cast<long double>(count));
  expect_absolute_bound(values, decoded, static_cast<long double>(deviations) * deviation * (1 + 1e-12L));
}

}  // namespace quern::testing
