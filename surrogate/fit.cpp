// Normal equations and their Cholesky factors.
#include "surrogate/fit.h"

#include <algorithm>

#include "surrogate/numbers.h"

namespace quern::surrogate {

void Moments::add(const Moments& other) {
  if (products.empty()) products.resize(other.products.size());
  for (std::size_t i = 0; i < other.products.size(); ++i) products[i] += other.products[i];
  weight += other.weight;
}

void add_moments(const SampleBlock& block, const Taps& taps, const std::vector<double>& activity, const Inner& known,
                 Moments& moments) {
  constexpr double kFloor = 0x1p-13;    // in units of the range
  constexpr std::uint64_t kEvery = 11;  // element of a row: neighbours say much the same
  const std::size_t n = taps.size();
  moments.products.resize((n + 1) * (n + 1));
  Inner inner = inner_box(taps, block.extents);
  for (std::size_t a = 0; a < 3; ++a) {
    inner.begin[a] = std::max(inner.begin[a], known.begin[a]);
    inner.end[a] = std::min(inner.end[a], known.end[a]);
  }
  if (inner.empty()) return;
  const Triple& e = block.extents;
  std::vector<std::int64_t> shifts;
  for (const Tap& tap : taps)
    shifts.push_back((static_cast<std::int64_t>(tap.offset[0]) * static_cast<std::int64_t>(e[1]) + tap.offset[1]) *
                         static_cast<std::int64_t>(e[2]) +
                     tap.offset[2]);
  std::vector<double> row(n + 1);
  for (std::uint64_t z = inner.begin[0]; z < inner.end[0]; ++z)
    for (std::uint64_t y = inner.begin[1]; y < inner.end[1]; ++y)
      for (std::uint64_t x = std::max<std::uint64_t>(inner.begin[2], known.begin[2] + 1); x < inner.end[2];
           x += kEvery) {
        const std::size_t at = (z * e[1] + y) * e[2] + x;
        if (block.valid[at] == 0) continue;
        const double around = std::max(activity[at - 1] < 0 ? -activity[at - 1] : activity[at - 1], kFloor);
        const double weight = 1 / (around * around);
        for (std::size_t i = 0; i < n; ++i)
          row[i] = block.values[static_cast<std::size_t>(static_cast<std::int64_t>(at) + shifts[i])];
        row[n] = block.values[at];
        for (std::size_t i = 0; i <= n; ++i) {
          const double scaled = row[i] * weight;
          for (std::size_t j = 0; j <= i; ++j) moments.products[i * (n + 1) + j] += scaled * row[j];
        }
        moments.weight += weight;
      }
}

Taps fitted(const Taps& taps, const Moments& moments, double bound) {
  const std::size_t n = taps.size();
  Taps out = taps;
  if (n == 0 || moments.products.empty() || !(moments.weight > 0)) return {};
  const auto product = [&](std::size_t i, std::size_t j) {
    return moments.products[std::max(i, j) * (n + 1) + std::min(i, j)];
  };
  double trace = 0;
  for (std::size_t i = 0; i < n; ++i) trace += product(i, i);
  const double noise = moments.weight * bound * bound / 3 + trace * 1e-12 + 1e-300;
  std::vector<double> factor(n * n);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = product(i, j) + (i == j ? noise : 0);
      for (std::size_t k = 0; k < j; ++k) sum -= factor[i * n + k] * factor[j * n + k];
      if (i != j) {
        factor[i * n + j] = sum / factor[j * n + j];
      } else {
        factor[i * n + i] = sum > noise * 1e-3 ? sqrt_of(sum) : sqrt_of(noise);
      }
    }
  std::vector<double> w(n);
  for (std::size_t i = 0; i < n; ++i) {
    double sum = product(n, i);
    for (std::size_t k = 0; k < i; ++k) sum -= factor[i * n + k] * w[k];
    w[i] = sum / factor[i * n + i];
  }
  for (std::size_t i = n; i-- > 0;) {
    double sum = w[i];
    for (std::size_t k = i + 1; k < n; ++k) sum -= factor[k * n + i] * w[k];
    w[i] = sum / factor[i * n + i];
  }
  for (std::size_t i = 0; i < n; ++i) {
    if (!(w[i] > -1e6 && w[i] < 1e6)) return {};  // nothing that predicts
    out[i].weight = w[i];
  }
  return out;
}

}  // namespace quern::surrogate
