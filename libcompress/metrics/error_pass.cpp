// One pass over both arrays in short runs: convert, leave out what does not count, then loops that vectorize.
#include "libcompress/metrics/error_pass.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "kernels/metrics/validity.h"
#include "libcompress/metrics/element.h"

namespace quern::metrics {
namespace {

using verifier::difference;
using verifier::Validity;

constexpr std::uint64_t kRunElems = 1024;
/// Partial results side by side; fixed, so that the grouping of sums is the same on every machine.
constexpr std::size_t kPartialSums = 8;
using Lanes = std::array<double, kPartialSums>;

/// Valid elements of one run, moved together.
struct Run {
  std::uint64_t n = 0;
  std::array<double, kRunElems> value;
  std::array<double, kRunElems> error;
  std::array<std::uint64_t, kRunElems> index;
  bool gapless = false;  ///< element i of the run is element begin + i of the array; `index` is not filled
};

template <class E>
bool load_plain(const std::byte* x, const std::byte* y, std::uint64_t n, Run& run) {
  using Bits = typename E::Bits;
  for (std::uint64_t i = 0; i < n; ++i) {
    run.value[i] = E::value(load<Bits>(x, i));
    run.error[i] = difference<E>(load<Bits>(x, i), load<Bits>(y, i));
  }
  run.n = n;
  run.gapless = true;
  if constexpr (E::kFloat) {
    std::uint64_t unusual = 0;
    for (std::uint64_t i = 0; i < n; ++i)
      unusual |= std::fabs(run.error[i]) <= std::numeric_limits<double>::max() ? 0u : 1u;
    return unusual == 0 && !has_negative_zero<E>(x, y, n);
  }
  return true;
}

template <class E>
void load_with_care(const std::byte* x, const std::byte* y, std::uint64_t begin, std::uint64_t n,
                    const Validity<E>& validity, Run& run, ErrorStats& stats) {
  using Bits = typename E::Bits;
  run.n = 0;
  run.gapless = false;
  for (std::uint64_t i = 0; i < n; ++i) {
    const Bits original = load<Bits>(x, i);
    const Bits reconstructed = load<Bits>(y, i);
    stats.specials_lost += validity.is_lost_special(original, reconstructed);
    if (!validity.is_valid(original)) continue;
    const double error = difference<E>(original, reconstructed);
    run.value[run.n] = E::value(original);
    run.error[run.n] = std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
    run.index[run.n] = begin + i;
    ++run.n;
    if constexpr (E::kFloat)
      stats.max_ulp = std::max(stats.max_ulp, verifier::ulp_distance<E>(original, reconstructed));
  }
}

template <class E>
void count_ulps(const std::byte* x, const std::byte* y, std::uint64_t n, ErrorStats& stats) {
  using Bits = typename E::Bits;
  std::uint64_t largest = 0;
  for (std::uint64_t i = 0; i < n; ++i) {
    // Finite values only come here: as keys that grow with the value, their distance fits the type.
    const Bits a = load<Bits>(x, i);
    const Bits b = load<Bits>(y, i);
    const Bits key_a = static_cast<Bits>((a & E::kSign) != 0 ? E::kSign - (a ^ E::kSign) : E::kSign + a);
    const Bits key_b = static_cast<Bits>((b & E::kSign) != 0 ? E::kSign - (b ^ E::kSign) : E::kSign + b);
    const Bits distance = static_cast<Bits>(key_a < key_b ? key_b - key_a : key_a - key_b);
    largest = std::max<std::uint64_t>(largest, distance);
  }
  stats.max_ulp = std::max(stats.max_ulp, largest);
}

/// Fills the run up to whole lanes with elements that change nothing.
std::uint64_t pad(Run& run) {
  const std::uint64_t padded = (run.n + kPartialSums - 1) / kPartialSums * kPartialSums;
  for (std::uint64_t i = run.n; i < padded; ++i) {
    run.value[i] = run.value[0];
    run.error[i] = 0.0;
  }
  return padded;
}

double sum_lanes(const Lanes& lanes) {
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

void add_range(const Run& run, std::uint64_t padded, ErrorStats& stats) {
  Lanes low;
  Lanes high;
  low.fill(stats.min);
  high.fill(stats.max);
  for (std::uint64_t i = 0; i < padded; i += kPartialSums)
    for (std::size_t lane = 0; lane < kPartialSums; ++lane) {
      const double value = run.value[i + lane];
      low[lane] = value < low[lane] ? value : low[lane];
      high[lane] = value > high[lane] ? value : high[lane];
    }
  stats.min = *std::min_element(low.begin(), low.end());
  stats.max = *std::max_element(high.begin(), high.end());
}

void add_sums(const Run& run, std::uint64_t padded, double scale, ErrorStats& stats) {
  Lanes error{};
  Lanes squared{};
  for (std::uint64_t i = 0; i < padded; i += kPartialSums)
    for (std::size_t lane = 0; lane < kPartialSums; ++lane) {
      const double scaled = run.error[i + lane] * scale;
      error[lane] += scaled;
      squared[lane] += scaled * scaled;
    }
  stats.error.add(sum_lanes(error));
  stats.squared_error.add(sum_lanes(squared));
}

void add_largest(const Run& run, std::uint64_t begin, std::uint64_t padded, ErrorStats& stats) {
  Lanes error{};
  Lanes relative{};
  for (std::uint64_t i = 0; i < padded; i += kPartialSums)
    for (std::size_t lane = 0; lane < kPartialSums; ++lane) {
      const double magnitude = std::fabs(run.error[i + lane]);
      const double value = std::fabs(run.value[i + lane]);
      const double ratio = magnitude / value;  // NaN for 0 / 0 and infinity for e / 0 fall out below
      const double counted = value > 0 ? ratio : 0.0;
      error[lane] = magnitude > error[lane] ? magnitude : error[lane];
      relative[lane] = counted > relative[lane] ? counted : relative[lane];
    }
  stats.max_pointwise_rel = std::max(stats.max_pointwise_rel, *std::max_element(relative.begin(), relative.end()));
  const double largest = *std::max_element(error.begin(), error.end());
  if (!(largest > stats.max_error)) return;
  stats.max_error = largest;
  std::uint64_t at = 0;
  while (std::fabs(run.error[at]) != largest) ++at;
  stats.max_error_index = run.gapless ? begin + at : run.index[at];
}

template <class E>
void add_run(const std::byte* x, const std::byte* y, std::uint64_t begin, std::uint64_t n, const Validity<E>& validity,
             double scale, Run& run, ErrorStats& stats) {
  using Bits = typename E::Bits;
  x += begin * sizeof(Bits);
  y += begin * sizeof(Bits);
  if (!validity.has_fills() && load_plain<E>(x, y, n, run)) {
    if constexpr (E::kFloat) count_ulps<E>(x, y, n, stats);
  } else {
    load_with_care<E>(x, y, begin, n, validity, run, stats);
  }
  if (run.n == 0) return;
  stats.valid += run.n;
  const std::uint64_t padded = pad(run);
  add_range(run, padded, stats);
  add_sums(run, padded, scale, stats);
  add_largest(run, begin, padded, stats);
}

}  // namespace

void ErrorStats::merge(const ErrorStats& other) {
  ErrorExtremes::merge(other);
  error.add(other.error);
  squared_error.add(other.squared_error);
}

Result<ErrorStats> error_stats(const ArrayView& original, const ArrayView& reconstructed,
                               std::span<const std::uint64_t> fill_bits, double scale, TaskRunner& runner,
                               Progress& progress) {
  const auto* x = static_cast<const std::byte*>(original.data);
  const auto* y = static_cast<const std::byte*>(reconstructed.data);
  const std::uint64_t elems = original.elems();
  ErrorStats total;
  const Status status = visit_dtype(original.dtype, [&](auto type) {
    using E = typename decltype(type)::Element;
    const Validity<E> validity(fill_bits);
    const auto body = [&](std::uint64_t block, ErrorStats& stats) {
      Run run;
      const std::uint64_t end = std::min(elems, (block + 1) * kBlockElems);
      for (std::uint64_t at = block * kBlockElems; at < end; at += kRunElems)
        add_run<E>(x, y, at, std::min(kRunElems, end - at), validity, scale, run, stats);
    };
    return for_blocks<ErrorStats>(block_count(elems), kBlockElems, runner, progress, body,
                                  [&](const ErrorStats& stats) { total.merge(stats); });
  });
  if (!status.ok()) return status;
  return total;
}

}  // namespace quern::metrics
