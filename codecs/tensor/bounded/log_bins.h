// Bins of positive binary32 numbers that are equally wide in the logarithm: the value that stands for each and the
// range of bit patterns that lie within the bound of it. Made by integer arithmetic from two stored numbers; no
// logarithm and no power is ever evaluated, and that the bound holds is decided by products of integers.
#pragma once

#include <cstdint>
#include <span>

#include <quern/memory.h>
#include <quern/status.h>

#include "kernels/tensor/cpu/logs.h"

namespace quern::codec::tensor {

inline constexpr unsigned kReachBits = 40;       ///< fraction bits of reaches and of places in log2
inline constexpr double kMinLogBound = 0x1p-10;  ///< in ln sqrt v
inline constexpr double kMaxLogBound = 4;
inline constexpr std::uint64_t kMinReach = 3000000000;      ///< about kMinLogBound
inline constexpr std::uint64_t kMaxReach = 12700000000000;  ///< about kMaxLogBound
inline constexpr std::uint32_t kMaxBins = 1u << 17;

/// How far values may lie from the middle of their bin, in units of 2^-40 of log2 v: r in ln sqrt v is 2r / ln 2 in
/// log2 v. Rounded down; for kMinLogBound <= r <= kMaxLogBound.
std::uint64_t reach_of(double r);

/// 2^(fraction / 2^40) in units of 2^-62, within 2^8 units; fraction < 2^40.
std::uint64_t exp2_fixed(std::uint64_t fraction);

class LogBins {
 public:
  /// The bins that numbers from `lowest` to `highest` need (bit patterns of positive finite numbers).
  static LogBins covering(std::uint64_t reach, std::uint32_t lowest, std::uint32_t highest);
  /// The bins first .. first + count - 1. Fails with `corrupt` when the numbers are out of range.
  static Result<LogBins> make(std::uint64_t reach, std::int64_t first, std::uint64_t count);

  std::int64_t first() const { return first_; }
  std::uint32_t count() const { return static_cast<std::uint32_t>(values_.size()); }
  /// Bit pattern of the number that stands for a bin; index counted from first().
  std::uint32_t value(std::uint32_t index) const { return values_[index]; }
  std::span<const std::uint32_t> values() const { return values_; }

  static constexpr std::uint32_t kNone = UINT32_MAX;
  /// The bin of a bit pattern; kNone for what is not positive and finite or lies within reach of no bin.
  std::uint32_t find(std::uint32_t bits) const {
    if (bits - 1 >= 0x7f7fffffu || values_.empty()) return kNone;
    const std::uint32_t bin = nearest(bits);
    return bin != kNone && bits >= lowest_[bin] ? bin : kNone;
  }
  /// The lowest bin that reaches up to a bit pattern or above it, the last one if none does; kNone for what is not
  /// positive and finite.
  std::uint32_t nearest_or_last(std::uint32_t bits) const {
    if (bits - 1 >= 0x7f7fffffu || values_.empty()) return kNone;
    const std::uint32_t bin = nearest(bits);
    return bin == kNone ? count() - 1 : bin;
  }
  /// Bins of values at any address, -1 for none. Returns how many have none.
  std::size_t find_all(std::span<const std::uint8_t> values, std::span<std::int32_t> bins) const;
  /// To be called before bins that were not made by covering() are asked for values.
  void make_index();

 private:
  std::uint32_t nearest(std::uint32_t bits) const {
    if (bits > highest_.back()) return kNone;
    const std::uint32_t key = bits >> kernels::kLogKeyShift;
    if (key < first_key_) return 0;
    std::uint32_t bin = entries_[key - first_key_].bin;
    while (bits > highest_[bin]) ++bin;
    return bin;
  }
  void add(std::uint64_t reach, std::uint64_t shrink, std::int64_t bin);

  std::int64_t first_ = 0;
  Vector<std::uint32_t> values_;
  Vector<std::uint32_t> lowest_;   ///< lowest bit pattern within reach
  Vector<std::uint32_t> highest_;  ///< highest one
  Vector<kernels::LogBinTable::Entry> entries_;
  std::uint32_t first_key_ = 0;
  /// From this pattern on, those of an entry lie in two bins at most, and between bins there is nothing.
  std::uint32_t dense_from_ = 0;
};

}  // namespace quern::codec::tensor
