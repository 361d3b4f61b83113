// Kernels for second moments in log space of one instruction set; included by one source file for each, compiled with
// that set's flags. Plain loops, which compilers vectorize.
#pragma once

#include <cstring>
#include <type_traits>

#include "kernels/tensor/cpu/logs.h"

namespace quern::kernels {

template <class Isa>
struct TensorLogInstance {
  static constexpr std::int32_t kUnits = 4;  ///< of a bin

  static std::size_t find(const LogBinTable& table, const std::uint8_t* values, std::size_t count,
                          std::int32_t* __restrict bins) {
    if (table.lowest > table.highest) {
      for (std::size_t i = 0; i < count; ++i) bins[i] = -1;
      return count;
    }
    constexpr std::size_t kBlock = 1024;
    const std::uint32_t lowest = table.lowest;
    const std::uint32_t span = table.highest - table.lowest;
    const LogBinTable::Entry* const entries = table.entries;
    const std::uint32_t first_key = table.first_key;
    std::size_t outside = 0;
    for (std::size_t begin = 0; begin < count; begin += kBlock) {
      const std::size_t n = count - begin < kBlock ? count - begin : kBlock;
      std::uint32_t patterns[kBlock];
      std::uint32_t missed = 0;
      for (std::size_t i = 0; i < n; ++i) {
        std::uint32_t bits;
        std::memcpy(&bits, values + 4 * (begin + i), 4);
        const bool inside = bits - lowest <= span;
        missed += inside ? 0 : 1;
        patterns[i] = inside ? bits : lowest;
      }
      std::int32_t* const __restrict to = bins + begin;
      for (std::size_t i = 0; i < n; ++i) {
        const LogBinTable::Entry entry = entries[(patterns[i] >> kLogKeyShift) - first_key];
        to[i] = static_cast<std::int32_t>(entry.bin + static_cast<std::uint32_t>(patterns[i] > entry.boundary));
      }
      outside += missed;
      if (missed == 0) continue;
      for (std::size_t i = 0; i < n; ++i) {
        std::uint32_t bits;
        std::memcpy(&bits, values + 4 * (begin + i), 4);
        to[i] = bits - lowest <= span ? to[i] : -1;
      }
    }
    return outside;
  }

  static void place(const std::uint32_t* values, const std::int32_t* bins, std::size_t count,
                    std::uint8_t* __restrict decoded) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t bits = bins[i] < 0 ? 0 : values[bins[i]];
      std::memcpy(decoded + 4 * i, &bits, 4);
    }
  }

  static std::int64_t sum(const std::int32_t* bins, const std::int32_t* known, const std::int32_t* column_means,
                          std::size_t count, std::size_t& regular) {
    constexpr std::size_t kBlock = 64;  // numbers below 2^24 that 32 bits hold the sum of
    std::int64_t all = 0;
    std::size_t found = 0;
    for (std::size_t begin = 0; begin < count; begin += kBlock) {
      const std::size_t end = count - begin < kBlock ? count : begin + kBlock;
      std::int32_t part = 0;
      std::int32_t some = 0;
      for (std::size_t i = begin; i < end; ++i) {
        const std::int32_t there = ~(bins[i] >> 31);
        part += (kUnits * bins[i] - known[i] - column_means[i]) & there;
        some -= there;
      }
      all += part;
      found += static_cast<std::size_t>(some);
    }
    regular = found;
    return all;
  }

  static void add_columns(const std::int32_t* bins, const std::int32_t* known, std::int32_t row_mean, std::size_t count,
                          std::int32_t* __restrict sums, std::uint32_t* __restrict counts) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::int32_t there = ~(bins[i] >> 31);
      sums[i] += (kUnits * bins[i] - known[i] - row_mean) & there;
      counts[i] -= static_cast<std::uint32_t>(there);
    }
  }

  static std::int32_t narrow(const std::int32_t* bins, const std::int32_t* known, std::int32_t row_mean,
                             const std::int32_t* column_means, std::size_t count, std::int32_t limit,
                             std::int16_t* __restrict narrow) {
    std::int32_t largest = 0;
    for (std::size_t i = 0; i < count; ++i) {
      std::int32_t x = kUnits * bins[i] - known[i] - row_mean - column_means[i];
      x = x < -limit ? -limit : x;
      x = x > limit ? limit : x;
      x &= ~(bins[i] >> 31);
      const std::int32_t magnitude = x < 0 ? -x : x;
      largest = magnitude > largest ? magnitude : largest;
      narrow[i] = static_cast<std::int16_t>(x);
    }
    return largest;
  }

  static std::int64_t product(const std::int16_t* a, const std::int16_t* b, std::size_t count) {
    // A form that compilers make products of pairs of.
    std::int32_t parts[8] = {};
    std::size_t i = 0;
    for (; i + 16 <= count; i += 16)
      for (std::size_t k = 0; k < 8; ++k)
        parts[k] += std::int32_t{a[i + 2 * k]} * b[i + 2 * k] + std::int32_t{a[i + 2 * k + 1]} * b[i + 2 * k + 1];
    std::int64_t total = 0;
    for (; i < count; ++i) total += std::int32_t{a[i]} * b[i];
    for (const std::int32_t part : parts) total += part;
    return total;
  }

  /// What is expected of an element, in quarters of a bin, without and with the rows above.
  template <class Sum>
  [[gnu::always_inline]] static std::int32_t expected(const LogRow& row, std::size_t i, std::int32_t plain) {
    const std::int32_t* const above = row.above + i;
    Sum sum = 32;
    for (std::size_t a = 0; a < kLogRowsAbove; ++a)
      sum += Sum{row.shares[a]} * Sum{*(above - static_cast<std::ptrdiff_t>(a * row.width))};
    return plain + static_cast<std::int32_t>(sum >> 6);
  }

  template <class Sum>
  static void residuals_with(const LogRow& given, std::size_t count, std::int32_t* __restrict bins,
                             std::int32_t* __restrict deviations) {
    const LogRow row = given;
    for (std::size_t i = 0; i < count; ++i) {
      const std::int32_t bin = bins[i];
      const std::int32_t plain = row.row_mean + row.column_means[i] + row.known[i];
      const std::int32_t there = ~(bin >> 31);
      const std::int32_t predicted = (expected<Sum>(row, i, plain) + kUnits / 2) >> 2;
      bins[i] = (bin - predicted) & there;
      deviations[i] = (bin * kUnits - plain) & there;
    }
  }
  static void residuals(const LogRow& row, std::size_t count, std::int32_t* bins, std::int32_t* deviations) {
    if (row.wide) return residuals_with<std::int64_t>(row, count, bins, deviations);
    residuals_with<std::int32_t>(row, count, bins, deviations);
  }

  template <class Sum>
  static bool bins_with(const LogRow& given, std::size_t count, std::uint32_t bins_there,
                        std::int32_t* __restrict residuals, std::int32_t* __restrict deviations) {
    const LogRow row = given;
    std::uint32_t outside = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::int32_t plain = row.row_mean + row.column_means[i] + row.known[i];
      const std::int32_t predicted = (expected<Sum>(row, i, plain) + kUnits / 2) >> 2;
      const std::uint32_t bin = static_cast<std::uint32_t>(predicted) + static_cast<std::uint32_t>(residuals[i]);
      const std::uint32_t inside = bin < bins_there ? ~0u : 0u;
      outside |= ~inside;
      const auto kept = static_cast<std::int32_t>(bin & inside);
      residuals[i] = kept;
      deviations[i] = kept * kUnits - plain;
    }
    return outside == 0;
  }
  static bool bins(const LogRow& row, std::size_t count, std::uint32_t bins_there, std::int32_t* residuals,
                   std::int32_t* deviations) {
    if (row.wide) return bins_with<std::int64_t>(row, count, bins_there, residuals, deviations);
    return bins_with<std::int32_t>(row, count, bins_there, residuals, deviations);
  }

  static constexpr TensorLogKernels kKernels{&find, &place, &sum, &add_columns, &narrow, &product, &residuals, &bins};
};

}  // namespace quern::kernels
