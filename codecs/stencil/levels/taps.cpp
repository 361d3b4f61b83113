// Lists of taps and the weights of cubics.
#include "codecs/stencil/levels/taps.h"

namespace quern::codec::stencil {
namespace {

constexpr std::size_t kLongPoints = 4;  // along an axis, for taps three steps away
constexpr int kMostSteps = 3;           // of a tap, over all axes
constexpr int kMostPlaneSteps = 2;      // of a tap into the plane before; 1 if a plane has three axes and is not given

/// Calls visit(offset, steps) for all offsets of -1, 0, 1 along live axes in lexicographic order.
template <class Visit>
void for_near_offsets(const LevelAxes& axes, unsigned level, const Visit& visit) {
  std::size_t total = 1;
  for (std::size_t a = 0; a < axes.rank; ++a) total *= 3;
  for (std::size_t i = 0; i < total; ++i) {
    Offset offset{};
    int steps = 0;
    bool possible = true;
    std::size_t rest = i;
    for (std::size_t a = axes.rank; a-- > 0; rest /= 3) {
      offset[a] = static_cast<std::int8_t>(static_cast<int>(rest % 3) - 1);
      if (offset[a] == 0) continue;
      ++steps;
      possible = possible && axes.live(a, level);
    }
    if (possible) visit(offset, steps);
  }
}

std::size_t parities(const LevelAxes& axes, const Offset& offset) {
  std::size_t odd = 0;
  for (std::size_t a = 0; a < axes.rank; ++a) odd = odd << 1 | (static_cast<unsigned>(offset[a]) & 1);
  return odd;
}

bool first_is_positive(const Offset& offset) {
  for (const std::int8_t d : offset)
    if (d != 0) return d > 0;
  return false;
}

Offset along(std::size_t axis, int steps) {
  Offset offset{};
  offset[axis] = static_cast<std::int8_t>(steps);
  return offset;
}

/// The groups that are weighted sums of points.
GroupList linear_groups(const LevelAxes& axes, unsigned level, std::size_t parity_class, bool later) {
  GroupList list;
  const auto odd = [&](std::size_t a) { return axes.parity(parity_class, a) != 0; };
  for (std::size_t a = 0; a < axes.rank; ++a)
    if (odd(a)) list.add(along(a, 1), true);
  for (std::size_t a = 0; a < axes.rank; ++a)
    if (odd(a) && axes.points(a, level) >= kLongPoints) list.add(along(a, 3), true);
  if (parity_class != 0) {
    for_near_offsets(axes, level, [&](const Offset& offset, int steps) {
      if (steps < 2 || steps > kMostSteps || !first_is_positive(offset)) return;
      if (class_before(parity_class ^ parities(axes, offset), parity_class)) list.add(offset, true);
    });
  }
  if (std::popcount(parity_class) == 1) {
    for (std::size_t a = 0; a < axes.rank; ++a) {
      for (std::size_t b = 0; b < axes.rank; ++b) {
        if (!odd(a) || odd(b) || !axes.live(b, level)) continue;
        for (const int far : {-2, 2}) {
          Offset offset = along(a, 1);
          offset[b] = static_cast<std::int8_t>(far);
          list.add(offset, true);
        }
      }
    }
  }
  if (!later) return list;
  list.add(along(0, -1), false);
  const int most = axes.rank > 3 && axes.given == 0 ? 1 : kMostPlaneSteps;
  for_near_offsets(axes, level, [&](const Offset& offset, int steps) {
    if (steps == 0 || steps > most) return;
    Offset before = offset;
    before[0] = -1;
    list.add(before, false);
  });
  if (axes.given == 0) list.add(along(0, -2), false);
  return list;
}

}  // namespace

GroupList groups_of_kind(GroupList groups, std::uint8_t kind) {
  if (kind != static_cast<std::uint8_t>(PredictorKind::network)) return groups;
  if (groups.count == kMaxGroups) --groups.count;
  for (std::size_t g = groups.count++; g > groups.linear; --g) groups.groups[g] = groups.groups[g - 1];
  groups.groups[groups.linear++] = kNetworkGroup;
  return groups;
}

GroupList groups_of(const LevelAxes& axes, unsigned level, std::size_t parity_class, bool later) {
  GroupList list = linear_groups(axes, level, parity_class, later);
  if (!axes.edges || parity_class == 0) return list;
  list.add({}, TapSource::calmest_mean);
  for (std::size_t a = 0; a < axes.rank; ++a)
    if (axes.parity(parity_class, a) != 0 && axes.points(a, level) >= kLongPoints)
      list.add(along(a, 1), TapSource::curvature);
  return list;
}

bool kind_possible(const LevelAxes& axes, std::uint8_t kind, std::size_t parity_class, bool later) {
  if (kind >= kPredictorKinds) return false;
  if (kind == static_cast<std::uint8_t>(PredictorKind::previous)) return later;
  if (has_weights(kind)) return parity_class != 0 || later;
  if (kind == static_cast<std::uint8_t>(PredictorKind::mean_cubic)) return true;
  const std::size_t axis = kind - 1u;
  return axis < axes.rank && axes.parity(parity_class, axis) != 0;
}

GroupWeights fixed_weights(const LevelAxes& axes, std::uint8_t kind, std::size_t parity_class, const GroupList& list,
                           unsigned weight_bits) {
  GroupWeights weights{};
  const std::int32_t one = std::int32_t{1} << weight_bits;
  if (kind == static_cast<std::uint8_t>(PredictorKind::previous) || parity_class == 0) {
    for (std::size_t g = 0; g < list.linear; ++g)
      if (list.groups[g].offset == along(0, -1)) weights[g] = one;
    return weights;
  }
  const bool single = kind != static_cast<std::uint8_t>(PredictorKind::mean_cubic);
  const std::int32_t share = single ? 1 : std::popcount(parity_class);
  std::int32_t left = one / 2;  // of the sum of all pairs
  std::size_t first = list.count;
  for (std::size_t a = 0; a < axes.rank; ++a) {
    if (axes.parity(parity_class, a) == 0 || (single && a != kind - 1u)) continue;
    std::size_t near = 0;
    std::size_t far = list.linear;
    for (std::size_t g = 0; g < list.linear; ++g) {
      if (list.groups[g].offset == along(a, 1)) near = g;
      if (list.groups[g].offset == along(a, 3)) far = g;
    }
    if (first == list.count) first = near;
    weights[near] = one / 2 / share;
    if (far < list.linear) {
      weights[far] = -(one / 16 / share);
      weights[near] -= weights[far];
      left -= weights[far];
    }
    left -= weights[near];
  }
  weights[first] += left;  // what division left over
  return weights;
}

}  // namespace quern::codec::stencil
