// Whether narrow values are so small that weighted sums of them fit 32 bits: kernels then have twice as many columns in
// a vector. It changes no result, and is found out as values are made, so that it holds for any bytes a decoder gets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "codecs/stencil/levels/value_format.h"
#include "kernels/stencil/cpu/rows.h"

namespace quern::codec::stencil {

/// Values in binary64 never are.
template <class Value>
class SmallValues {
 public:
  static constexpr bool kPossible = std::is_same_v<Value, std::int32_t>;

  /// To be called before there are values.
  void start(const LevelsValueFormat& format) {
    if constexpr (kPossible) {
      // Magnitudes of a class's weights sum to at most 4 (kLevelWeightSumBits): sums fit unless theirs do to just that.
      const std::int64_t limit = std::int64_t{1} << (kSumBits - format.weight_bits);
      limit_ = format.low >= -limit && format.high < limit ? static_cast<std::uint32_t>(limit) : 0;
      seen_ = 0;
      seen_halos_ = 0;
    }
  }
  /// Halos are of a level: those of coarse ones reach far.
  void open_level() { seen_halos_ = 0; }
  void see_halo(Value value) {
    if constexpr (kPossible) seen_halos_ |= static_cast<std::uint32_t>(value) + limit_;
  }
  void see_halo(const Value* values, std::size_t count) { see(values, count, seen_halos_); }
  /// Of every row, whether all is small or not: halos of the level may be all that is not.
  void see(const Value* values, std::size_t count) { see(values, count, seen_); }
  /// One was not small.
  void give_up() { limit_ = 0; }

  explicit operator bool() const { return (seen_ | seen_halos_) < 2 * limit_; }
  /// While they are small they are in [-limit, limit).
  std::uint32_t limit() const { return limit_; }
  /// Whether sums over them fit that are weighted by weights of so many fraction bits, whose magnitudes sum to
  /// `weights`.
  bool sums_fit(double weights, unsigned weight_bits) const {
    return weights * limit_ + static_cast<double>(1u << (weight_bits - 1)) <= std::numeric_limits<std::int32_t>::max();
  }

 private:
  static constexpr unsigned kSumBits = 29;

  void see(const Value* values, std::size_t count, std::uint32_t& bits) {
    if constexpr (kPossible) {
      if (limit_ == 0) return;
      std::uint32_t seen = 0;
      for (std::size_t i = 0; i < count; ++i) seen |= static_cast<std::uint32_t>(values[i]) + limit_;
      bits |= seen;
    }
  }

  std::uint32_t limit_ = 0;
  std::uint32_t seen_ = 0;        ///< bits of all values plus the limit
  std::uint32_t seen_halos_ = 0;  ///< the same of the level's halos
};

}  // namespace quern::codec::stencil
