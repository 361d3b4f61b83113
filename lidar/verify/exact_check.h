// Whether two clouds keep an error bound in both directions. Shares nothing with the codec: a kd-tree of its own, and
// distances in 128-bit integers that are never below the exact ones. O(n log n) for bounds that hold.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace quern::lidar::exact {

/// A coordinate in units of 2^-40 of its own unit, rounded towards minus infinity; the exact one is less than one above.
__extension__ typedef __int128 Exact;
__extension__ typedef unsigned __int128 ExactSquare;
struct ExactPoint {
  Exact at[3];
};

/// Points with three finite coordinates. `is_integer`: words are 32-bit integers, else binary32.
std::vector<ExactPoint> exact_points(std::span<const std::uint32_t> words, bool is_integer);

/// An error bound as a fraction: `units` / `per_metre`.
struct Bound {
  std::uint64_t units = 1;
  std::uint64_t per_metre = 1;
};

/// Points of `from` whose distance to every point of `to` may exceed the bound. 0: the bound certainly holds.
std::uint64_t violations(const std::vector<ExactPoint>& from, std::vector<ExactPoint> to, const Bound& bound);

/// Points whose distance to their namesake may exceed the bound. Words that are equal bit for bit always keep it.
std::uint64_t pair_violations(std::span<const std::uint32_t> a, std::span<const std::uint32_t> b, bool is_integer,
                              const Bound& bound);

}  // namespace quern::lidar::exact
