// The quick check of decoded tensors of one instruction set; included by one source file for each, compiled with that
// set's flags. Plain loops, which compilers vectorize; choices are made with masks.
#pragma once

#include <bit>
#include <cstring>

#include "kernels/tensor/cpu/bound_check.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace quern::kernels {

template <class Isa>
struct BoundCheckInstance {
  static constexpr std::uint32_t kOne = 0x3f800000u;

  [[gnu::always_inline]] static std::uint32_t bits_at(const std::uint8_t* values, std::size_t i) {
    std::uint32_t bits;
    std::memcpy(&bits, values + 4 * i, 4);
    return bits;
  }
  [[gnu::always_inline]] static std::uint32_t mask_of(bool yes) { return 0u - static_cast<std::uint32_t>(yes); }
  [[gnu::always_inline]] static std::uint32_t positive(std::uint32_t bits) { return mask_of(bits - 1 < 0x7f7fffffu); }
  [[gnu::always_inline]] static std::uint32_t finite(std::uint32_t bits) {
    return mask_of((bits & 0x7fffffffu) < 0x7f800000u);
  }
  [[gnu::always_inline]] static double number(std::uint32_t bits) {
    return static_cast<double>(std::bit_cast<float>(bits));
  }
  /// a where the mask is set, else b.
  [[gnu::always_inline]] static std::uint32_t choose(std::uint32_t mask, std::uint32_t a, std::uint32_t b) {
    return (a & mask) | (b & ~mask);
  }

  /// The largest of numbers that are not NaN, and of `so_far`.
  [[gnu::always_inline]] static double largest(const double* numbers, std::size_t count, double so_far) {
    std::size_t i = 0;
#if defined(__AVX2__)
    __m256d most = _mm256_set1_pd(so_far);
    for (; i + 4 <= count; i += 4) most = _mm256_max_pd(most, _mm256_loadu_pd(numbers + i));
    double parts[4];
    _mm256_storeu_pd(parts, most);
    for (const double part : parts) so_far = part > so_far ? part : so_far;
#endif
    for (; i < count; ++i) so_far = numbers[i] > so_far ? numbers[i] : so_far;
    return so_far;
  }

  /// Errors; 0 where bits are equal or something is not finite.
  [[gnu::always_inline]] static void find_errors(const std::uint8_t* values, const std::uint8_t* decoded,
                                                 std::size_t count, double* __restrict errors) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t was = bits_at(values, i);
      const std::uint32_t is = bits_at(decoded, i);
      const std::uint32_t counts = finite(was) & finite(is) & ~mask_of(was == is);
      const double off = number(is & counts) - number(was & counts);
      errors[i] = __builtin_fabs(off);
    }
  }

  static bool steps(double bound, const std::uint8_t* values, const std::uint8_t* decoded, std::size_t count,
                    CheckWorst& worst) {
    double errors[kCheckBlock];
    find_errors(values, decoded, count, errors);
    std::uint32_t missed = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t was = bits_at(values, i);
      const std::uint32_t is = bits_at(decoded, i);
      const std::uint32_t good = finite(was) & finite(is) & mask_of((was & 0x7fffffffu) != 0);
      missed |= ~(good | mask_of(was == is));
    }
    const double most = largest(errors, count, 0);
    // Where bits are equal the error is 0, whatever the bound.
    if (missed != 0 || !(most < bound || most == 0)) return false;
    worst.absolute = most > worst.absolute ? most : worst.absolute;
    worst.relative = worst.absolute;
    return true;
  }

  static bool updates(double square, const std::uint8_t* values, const std::uint8_t* decoded,
                      const std::uint8_t* second, std::size_t count, CheckWorst& worst) {
    double errors[kCheckBlock];
    double squares[kCheckBlock];
    std::uint32_t near[kCheckBlock];
    find_errors(values, decoded, count, errors);
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t v = bits_at(second, i);
      const double unit = number(choose(positive(v), v, kOne));
      const double off = errors[i] * errors[i];
      near[i] = mask_of(off <= square * unit);
      squares[i] = off / unit;
    }
    std::uint32_t missed = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t was = bits_at(values, i);
      const std::uint32_t is = bits_at(decoded, i);
      const std::uint32_t good =
          finite(was) & finite(is) & mask_of((was & 0x7fffffffu) != 0) & positive(bits_at(second, i)) & near[i];
      missed |= ~(good | mask_of(was == is));
    }
    if (missed != 0) return false;
    worst.absolute = largest(errors, count, worst.absolute);
    worst.relative = largest(squares, count, worst.relative);
    return true;
  }

  static bool logs(double ratio, const std::uint8_t* values, const std::uint8_t* decoded, std::size_t count,
                   CheckWorst& worst) {
    double errors[kCheckBlock];
    double ratios[kCheckBlock];
    std::uint32_t missed = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t was = bits_at(values, i);
      const std::uint32_t is = bits_at(decoded, i);
      missed |= ~((positive(was) & positive(is)) | mask_of(was == is));
    }
    if (missed != 0) return false;
    for (std::size_t i = 0; i < count; ++i) {
      // Equal bits, which may be NaN, count as 1 by 1 less 1 by 1.
      const std::uint32_t was = bits_at(values, i);
      const std::uint32_t is = bits_at(decoded, i);
      const std::uint32_t differ = ~mask_of(was == is);
      const std::uint32_t low = choose(differ, was < is ? was : is, kOne);
      const std::uint32_t high = choose(differ, was < is ? is : was, kOne);
      errors[i] = number(high) - number(low);
      ratios[i] = number(high) / number(low);
    }
    const double most = largest(ratios, count, 0);
    if (!(most <= ratio)) return false;
    worst.absolute = largest(errors, count, worst.absolute);
    // A ratio of 1 is of equal bits alone.
    if (most > 1 && most > worst.relative) worst.relative = most;
    return true;
  }

  static constexpr BoundCheckKernels kKernels{&steps, &updates, &logs};
};

}  // namespace quern::kernels
