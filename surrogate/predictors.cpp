// Tables of taps; a row is predicted tap by tap, which compilers vectorize.
#include "surrogate/predictors.h"

#include <algorithm>

namespace quern::surrogate {
namespace {

using Offset = std::array<int, 3>;

/// The predictor whose residual is the product of (1 - shift)^order over the axes.
Taps lorenzo(const std::array<int, 3>& order) {
  const auto factor = [](int n, int k) {  // (-1)^k binomial(n, k)
    double c = 1;
    for (int i = 0; i < k; ++i) c = -c * (n - i) / (i + 1);
    return c;
  };
  Taps taps;
  for (int z = 0; z <= order[0]; ++z)
    for (int y = 0; y <= order[1]; ++y)
      for (int x = 0; x <= order[2]; ++x)
        if (x + y + z != 0)
          taps.push_back({{-z, -y, -x}, -factor(order[0], z) * factor(order[1], y) * factor(order[2], x)});
  return taps;
}

void add_pair(Taps& taps, std::size_t axis, int distance, double weight) {
  for (const int sign : {-1, 1}) {
    Tap tap;
    tap.offset[axis] = sign * distance;
    tap.weight = weight;
    taps.push_back(tap);
  }
}

/// Midpoint interpolation averaged over the axes that have room for it: cubic, else linear.
Taps interpolation(unsigned rank, const Triple& block, int stride, bool row_only) {
  constexpr std::uint64_t kRoom = 4;
  Taps taps;
  unsigned axes = 0;
  for (std::size_t a = row_only ? 2 : 3 - rank; a < 3; ++a) {
    const auto s = static_cast<std::uint64_t>(stride);
    if (block[a] >= 6 * s + kRoom) {
      add_pair(taps, a, stride, 9.0 / 16);
      add_pair(taps, a, 3 * stride, -1.0 / 16);
    } else if (block[a] >= 2 * s + 1) {
      add_pair(taps, a, stride, 0.5);
    } else {
      continue;
    }
    ++axes;
  }
  for (Tap& tap : taps) tap.weight /= axes;
  return taps;
}

bool fits(const Offset& offset, const Triple& block) {
  for (std::size_t a = 0; a < 3; ++a)
    if (static_cast<std::uint64_t>(offset[a] < 0 ? -offset[a] : offset[a]) * 3 > block[a]) return false;
  return true;
}

/// Weighted rows, in their order.
template <std::size_t N>
void subtract(double* row, std::size_t width, const std::array<const double*, N>& from,
              const std::array<double, N>& weights) {
  for (std::size_t x = 0; x < width; ++x) {
    double rest = row[x];
    for (std::size_t i = 0; i < N; ++i) rest -= weights[i] * from[i][x];
    row[x] = rest;
  }
}

}  // namespace

std::array<Taps, kPredictors> fixed_taps(unsigned rank, const Triple& block) {
  std::array<Taps, kPredictors> taps;
  taps[kRow] = lorenzo({0, 0, 1});
  if (rank == 1) {
    taps[kSlow] = lorenzo({0, 0, 2});
    taps[kLorenzo] = taps[kRow];
    taps[kLorenzoPlane] = lorenzo({0, 0, 3});
  } else if (rank == 2) {
    taps[kSlow] = lorenzo({0, 1, 0});
    taps[kLorenzo] = lorenzo({0, 1, 1});
    taps[kLorenzoPlane] = lorenzo({0, 0, 2});
  } else {
    taps[kSlow] = lorenzo({1, 0, 0});
    taps[kLorenzo] = lorenzo({1, 1, 1});
    taps[kLorenzoPlane] = lorenzo({0, 1, 1});
  }
  taps[kCubic1] = interpolation(rank, block, 1, false);
  taps[kCubic2] = interpolation(rank, block, 2, false);
  taps[kCubic4] = interpolation(rank, block, 4, false);
  taps[kCubicRow] = interpolation(rank, block, 1, true);
  return taps;
}

Taps causal_neighbours(unsigned rank, const Triple& block) {
  std::vector<Offset> offsets;
  const int plane = rank == 3 ? 1 : 0;
  const int row = rank >= 2 ? 1 : 0;
  for (int z = -plane; z <= 0; ++z)
    for (int y = -row; y <= row; ++y)
      for (int x = -1; x <= 1; ++x)
        if (z < 0 || y < 0 || (y == 0 && x < 0)) offsets.push_back({z, y, x});
  for (int x = 2; x <= (rank == 1 ? 6 : 3); ++x) offsets.push_back({0, 0, -x});
  if (rank >= 2) offsets.push_back({0, -2, 0});
  if (rank == 3) offsets.push_back({-2, 0, 0});
  Taps taps;
  for (const Offset& offset : offsets)
    if (fits(offset, block)) taps.push_back({offset, 0});
  return taps;
}

Taps neighbours_between(unsigned rank, const Triple& block) {
  Taps taps;
  for (std::size_t a = 3 - rank; a < 3; ++a)
    for (const int distance : {1, 3})
      if (block[a] >= 6 * static_cast<std::uint64_t>(distance)) add_pair(taps, a, distance, 0);
  return taps;
}

double noise_gain(const Taps& taps) {
  double sum = 0;
  for (const Tap& tap : taps) sum += tap.weight * tap.weight;
  return sum;
}

Inner inner_box(const Taps& taps, const Triple& block) {
  Inner inner{{0, 0, 0}, block};
  for (const Tap& tap : taps)
    for (std::size_t a = 0; a < 3; ++a) {
      const auto reach = static_cast<std::uint64_t>(tap.offset[a] < 0 ? -tap.offset[a] : tap.offset[a]);
      if (tap.offset[a] < 0) {
        inner.begin[a] = std::max(inner.begin[a], reach);
      } else {
        inner.end[a] = std::min(inner.end[a], block[a] > reach ? block[a] - reach : 0);
      }
    }
  return inner;
}

void residuals(const SampleBlock& block, const Taps& taps, const Inner& inner, std::vector<double>& out) {
  out.resize(block.values.size());
  if (inner.empty()) return;
  const Triple& n = block.extents;
  const std::size_t width = inner.end[2] - inner.begin[2];
  for (std::uint64_t z = inner.begin[0]; z < inner.end[0]; ++z)
    for (std::uint64_t y = inner.begin[1]; y < inner.end[1]; ++y) {
      const std::size_t at = (z * n[1] + y) * n[2] + inner.begin[2];
      double* row = out.data() + at;
      std::copy_n(block.values.data() + at, width, row);
      const auto from = [&](const Tap& tap) {
        const auto shift =
            (static_cast<std::int64_t>(tap.offset[0]) * static_cast<std::int64_t>(n[1]) + tap.offset[1]) *
                static_cast<std::int64_t>(n[2]) +
            tap.offset[2];
        return block.values.data() + (static_cast<std::int64_t>(at) + shift);
      };
      std::size_t t = 0;
      for (; t + 4 <= taps.size(); t += 4)
        subtract<4>(row, width, {from(taps[t]), from(taps[t + 1]), from(taps[t + 2]), from(taps[t + 3])},
                    {taps[t].weight, taps[t + 1].weight, taps[t + 2].weight, taps[t + 3].weight});
      for (; t < taps.size(); ++t) subtract<1>(row, width, {from(taps[t])}, {taps[t].weight});
    }
}

}  // namespace quern::surrogate
