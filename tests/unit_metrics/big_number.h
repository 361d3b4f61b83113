// Reference for exact comparisons: binary64 numbers as big integers in units of 2^-1074. Slow and simple on purpose.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace quern::test {

/// A natural number, least significant 32 bits first, without leading zeros.
class BigNumber {
 public:
  BigNumber() = default;
  /// |value| / 2^-1074, an integer for every finite value.
  explicit BigNumber(double value) {
    int exponent = 0;
    const double factor = std::frexp(std::fabs(value), &exponent);
    auto mantissa = static_cast<std::uint64_t>(std::ldexp(factor, 53));
    int shift = exponent - 53 + 1074;
    while (shift < 0) {
      mantissa >>= 1;  // denormals: the bits that leave are 0
      ++shift;
    }
    digits_ = {static_cast<std::uint32_t>(mantissa), static_cast<std::uint32_t>(mantissa >> 32)};
    trim();
    *this = shifted(static_cast<unsigned>(shift));
  }

  BigNumber shifted(unsigned bits) const {
    BigNumber out;
    out.digits_.assign(digits_.size() + bits / 32 + 1, 0);
    for (std::size_t i = 0; i < digits_.size(); ++i) {
      const std::uint64_t wide = std::uint64_t{digits_[i]} << (bits % 32);
      out.digits_[i + bits / 32] |= static_cast<std::uint32_t>(wide);
      out.digits_[i + bits / 32 + 1] |= static_cast<std::uint32_t>(wide >> 32);
    }
    out.trim();
    return out;
  }

  BigNumber plus(const BigNumber& other) const {
    BigNumber out;
    std::uint64_t carry = 0;
    for (std::size_t i = 0; i < std::max(digits_.size(), other.digits_.size()) + 1; ++i) {
      carry += std::uint64_t{digit(i)} + other.digit(i);
      out.digits_.push_back(static_cast<std::uint32_t>(carry));
      carry >>= 32;
    }
    out.trim();
    return out;
  }

  /// Of the larger and the smaller.
  BigNumber distance(const BigNumber& other) const {
    const bool less = *this < other;
    const BigNumber& big = less ? other : *this;
    const BigNumber& small = less ? *this : other;
    BigNumber out;
    std::int64_t borrow = 0;
    for (std::size_t i = 0; i < big.digits_.size(); ++i) {
      std::int64_t digit = std::int64_t{big.digit(i)} - small.digit(i) + borrow;
      borrow = digit < 0 ? -1 : 0;
      if (digit < 0) digit += INT64_C(1) << 32;
      out.digits_.push_back(static_cast<std::uint32_t>(digit));
    }
    out.trim();
    return out;
  }

  BigNumber times(const BigNumber& other) const {
    BigNumber out;
    out.digits_.assign(digits_.size() + other.digits_.size() + 1, 0);
    for (std::size_t i = 0; i < digits_.size(); ++i) {
      std::uint64_t carry = 0;
      for (std::size_t j = 0; j < other.digits_.size() || carry != 0; ++j) {
        carry += std::uint64_t{out.digits_[i + j]} + std::uint64_t{digits_[i]} * other.digit(j);
        out.digits_[i + j] = static_cast<std::uint32_t>(carry);
        carry >>= 32;
      }
    }
    out.trim();
    return out;
  }

  friend bool operator<(const BigNumber& a, const BigNumber& b) {
    if (a.digits_.size() != b.digits_.size()) return a.digits_.size() < b.digits_.size();
    return std::lexicographical_compare(a.digits_.rbegin(), a.digits_.rend(), b.digits_.rbegin(), b.digits_.rend());
  }

 private:
  std::uint32_t digit(std::size_t i) const { return i < digits_.size() ? digits_[i] : 0; }
  void trim() {
    while (!digits_.empty() && digits_.back() == 0) digits_.pop_back();
  }
  std::vector<std::uint32_t> digits_;
};

/// |x - y| in units of 2^-1074.
inline BigNumber big_distance(double x, double y) {
  const BigNumber a(x);
  const BigNumber b(y);
  return std::signbit(x) == std::signbit(y) ? a.distance(b) : a.plus(b);
}

inline bool big_within_absolute(double x, double y, double bound) { return !(BigNumber(bound) < big_distance(x, y)); }

inline bool big_within_relative(double x, double y, double ratio) {
  return !(BigNumber(ratio).times(BigNumber(x)) < big_distance(x, y).shifted(1074));
}

}  // namespace quern::test
