// Shape: up to eight extents, slowest axis first. Box: a half-open region of a shape.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <quern/status.h>

namespace quern {

inline constexpr std::size_t kMaxRank = 8;

/// a*b, or nothing when it does not fit in 64 bits.
constexpr std::optional<std::uint64_t> checked_multiply(std::uint64_t a, std::uint64_t b) {
  // By division, as devices lack the compilers' builtin.
  if (a != 0 && b > UINT64_MAX / a) return std::nullopt;
  return a * b;
}

/// Extents, slowest axis first. Rank 0 is a scalar: one element. Extents may be 0.
class Shape {
 public:
  constexpr Shape() = default;
  /// Fails when the rank is above kMaxRank or the number of elements does not fit in 63 bits.
  static Result<Shape> make(std::span<const std::uint64_t> extents);
  /// The same without a message, for code that also runs on devices.
  static constexpr std::optional<Shape> try_make(std::span<const std::uint64_t> extents) {
    if (extents.size() > kMaxRank || first_axis_too_long(extents) < extents.size()) return std::nullopt;
    Shape shape;
    shape.rank_ = extents.size();
    for (std::size_t a = 0; a < extents.size(); ++a) shape.extents_[a] = extents[a];
    return shape;
  }
  /// Reads "50x100x100". Fails with a message that says what is wrong.
  static Result<Shape> parse(std::string_view text);

  constexpr std::size_t rank() const { return rank_; }
  constexpr std::uint64_t operator[](std::size_t axis) const { return extents_[axis]; }
  constexpr std::span<const std::uint64_t> extents() const { return {extents_.data(), rank_}; }
  /// Product of the extents.
  constexpr std::uint64_t elems() const {
    std::uint64_t n = 1;
    for (std::size_t a = 0; a < rank_; ++a) n *= extents_[a];
    return n;
  }
  /// "50x100x100"; "scalar" for rank 0.
  std::string text() const;
  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  /// The axis at which the product of the extents, those of 0 left out, passes 2^59; the rank where none does.
  static constexpr std::size_t first_axis_too_long(std::span<const std::uint64_t> extents) {
    std::uint64_t product = 1;
    for (std::size_t a = 0; a < extents.size(); ++a) {
      const auto next = checked_multiply(product, extents[a] == 0 ? 1 : extents[a]);
      if (!next || *next > (UINT64_C(1) << 59)) return a;
      product = *next;
    }
    return extents.size();
  }

  std::array<std::uint64_t, kMaxRank> extents_{};
  std::size_t rank_ = 0;
};

/// Half-open box [begin, end) in each axis of a shape, slowest axis first.
struct Box {
  std::array<std::uint64_t, kMaxRank> begin{};
  std::array<std::uint64_t, kMaxRank> end{};
  std::size_t rank = 0;

  static Box whole(const Shape& shape);
  /// Reads "0:10,5:9,:" against a shape; an axis may be "a:b", "a:", ":b", ":" or one index "a".
  static Result<Box> parse(std::string_view text, const Shape& shape);
  /// The box's extents as a shape.
  Result<Shape> shape() const;
  /// Fails when the box leaves the shape or has another rank.
  Status check(const Shape& shape) const;
};

}  // namespace quern
