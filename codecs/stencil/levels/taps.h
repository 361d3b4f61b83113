// Where a prediction in levels looks: offsets of known points around a point of a class, in units of the level's
// distance, tied in pairs that lie opposite each other; and the weights that are not fitted.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "codecs/stencil/levels/axes.h"
#include "kernels/stencil/taps.h"

namespace quern::codec::stencil {

/// Offset along each axis: along a hierarchical one in units of the level's distance, along the sequential one in
/// planes.
using Offset = std::array<std::int8_t, kMaxAxes>;

/// Where the value of a group comes from.
enum class TapSource : std::uint8_t {
  points,        ///< the points at its offsets
  calmest_mean,  ///< the mean of that pair of the linear groups whose points differ least: see edges/edge_rows.h
  curvature,     ///< limited curvature along the axis of the offset
};

/// One weight: of an offset, and of its opposite if it is a pair; or of a number made from many points.
struct TapGroup {
  Offset offset{};
  bool pair = false;
  TapSource source = TapSource::points;

  /// Whether weights of it count for the sum that keeps levels.
  bool keeps_level() const { return source != TapSource::curvature; }

  friend bool operator==(const TapGroup&, const TapGroup&) = default;
};

inline constexpr std::size_t kMaxGroups = kernels::kMaxTaps;
using GroupWeights = std::array<std::int32_t, kMaxGroups>;

struct GroupList {
  std::array<TapGroup, kMaxGroups> groups{};
  std::size_t count = 0;
  std::size_t linear = 0;  ///< those that come first and are points

  void add(const Offset& offset, bool pair) {
    groups[count++] = {offset, pair};
    linear = count;
  }
  /// One that is not linear, if there is room.
  void add(const Offset& offset, TapSource source) {
    if (count < kMaxGroups) groups[count++] = {offset, false, source};
  }
  friend bool operator==(const GroupList& a, const GroupList& b) {
    if (a.count != b.count) return false;
    for (std::size_t i = 0; i < a.count; ++i)
      if (!(a.groups[i] == b.groups[i])) return false;
    return true;
  }
};

/// What a network makes of the point: the last one that is linear.
inline constexpr TapGroup kNetworkGroup{{}, false};

/// The groups of a class at a level; `later`: of planes after the first of a sequential axis.
GroupList groups_of(const LevelAxes& axes, unsigned level, std::size_t parity_class, bool later);

/// What predicts a class.
enum class PredictorKind : std::uint8_t {
  mean_cubic = 0,  ///< mean of the cubics along all odd axes; the plane before if there is none
  axis_cubic = 1,  ///< 1 + axis: cubic along one odd axis
  previous = 5,    ///< the plane before
  fitted = 6,      ///< stored weights
  network = 7,     ///< the same, with one for what a network makes of the point
};
inline constexpr std::uint8_t kPredictorKinds = 8;
/// Whether a kind has stored weights.
constexpr bool has_weights(std::uint8_t kind) { return kind >= static_cast<std::uint8_t>(PredictorKind::fitted); }

/// The groups of a predictor of that kind.
GroupList groups_of_kind(GroupList groups, std::uint8_t kind);

/// True when a class can have that kind; of networks only those that the chunk's model has can be, too.
bool kind_possible(const LevelAxes& axes, std::uint8_t kind, std::size_t parity_class, bool later);
/// The weights of a kind that stores none: they sum to 2^weight_bits, or to 0 for a class without groups.
GroupWeights fixed_weights(const LevelAxes& axes, std::uint8_t kind, std::size_t parity_class, const GroupList& list,
                           unsigned weight_bits);

}  // namespace quern::codec::stencil
