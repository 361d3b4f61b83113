// Codes 0 to 7 have a cell each, larger ones a cell for half an octave. Which cells a magnitude falls into when noise is
// added is a table over the noise and the ratio of magnitude to bound, made once.
#include "surrogate/closed_form.h"

#include <algorithm>

namespace quern::surrogate {
namespace {

constexpr int kCodes = 8;  // with a cell of their own
constexpr int kBelow = 8;  // half octaves below the bound that the table tells apart
constexpr int kAbove = 9;  // half octaves above it
constexpr int kOffsets = kBelow + kAbove + 1;
constexpr int kNoises = 10;  // 0, and steps of a quarter of the bound
constexpr int kCells = kCodes + kBins;

using Shares = std::array<double, kCodes + 1>;  // the last is for larger codes

struct Table {
  std::array<std::array<Shares, kOffsets>, kNoises> shares{};

  Table() {
    for (int noise = 0; noise < kNoises; ++noise)
      for (int offset = 0; offset < kOffsets; ++offset)
        shares[static_cast<std::size_t>(noise)][static_cast<std::size_t>(offset)] = shares_of(noise, offset);
  }

  /// A half octave is stood for by four magnitudes, equally spaced on a logarithmic scale.
  static Shares shares_of(int noise, int offset) {
    constexpr int kPoints = 4;
    const double deviation = std::max(0.25 * noise, 1e-3);
    Shares out{};
    for (int i = 0; i < kPoints; ++i) {
      const double octaves = (offset - kBelow + (i + 0.5) / kPoints) / 2;
      const double magnitude = offset == 0 ? 0 : exp2_of(octaves);
      double rest = 1;
      for (int code = 0; code < kCodes; ++code) {
        double share = between(magnitude, deviation, 2 * code - 1, 2 * code + 1);
        if (code != 0) share += between(magnitude, deviation, -2 * code - 1, -2 * code + 1);
        out[static_cast<std::size_t>(code)] += share / kPoints;
        rest -= share;
      }
      out[kCodes] += std::max(rest, 0.0) / kPoints;
    }
    return out;
  }
  static double between(double mean, double deviation, double low, double high) {
    return normal_below((high - mean) / deviation) - normal_below((low - mean) / deviation);
  }
};

const Table& table() {
  static const Table made;
  return made;
}

double minus_log(double share) { return share > 0 ? -share * log2_of(share) : 0; }

/// The cells of a set of codes and the bits they take.
struct Cells {
  std::array<double, kCells> counts{};
  double total = 0;

  void add(int offset, double count, std::size_t noise) {
    total += count;
    const int known = std::clamp(offset + kBelow, 0, kOffsets - 1);
    if (offset >= kAbove) {
      counts[static_cast<std::size_t>(kCodes + std::min(offset, kBins - 1))] += count;
      return;
    }
    const Shares& shares = table().shares[noise][static_cast<std::size_t>(known)];
    for (std::size_t code = 0; code < kCodes; ++code) counts[code] += count * shares[code];
    counts[kCodes + kAbove - 1] += count * shares[kCodes];
  }

  void add(const Cells& other) {
    for (std::size_t i = 0; i < kCells; ++i) counts[i] += other.counts[i];
    total += other.total;
  }

  /// Bits of all values together.
  double bits() const {
    if (!(total > 0)) return 0;
    double each = 0;
    for (int cell = 0; cell < kCells; ++cell) {
      const double share = counts[static_cast<std::size_t>(cell)] / total;
      if (!(share > 0)) continue;
      each += minus_log(share);
      if (cell != 0) each += share;  // the sign
      // Codes of a half octave that begins at 2^(offset / 2) bounds: 0.414 of that by the quantizer's step, 2 bounds.
      if (cell >= kCodes) each += share * std::max((cell - kCodes) * 0.5 + log2_of(0.4142 / 2), 0.0);
    }
    return each * total;
  }
};

std::size_t noise_index(double deviation) {
  return static_cast<std::size_t>(std::clamp(static_cast<int>(4 * deviation + 0.5), 0, kNoises - 1));
}

/// Mean squared error in units of the bound squared, when nothing but the residual itself is quantized.
double squared_error_of(const JointCounts& joint, int bound_bin, double& total, double& small_error) {
  double sum = 0;
  double small = 0;
  double small_sum = 0;
  total = 0;
  const Counts& by_bin = joint.up_to.back();
  const double unit = bin_edge(bound_bin);
  for (int bin = 0; bin < kBins; ++bin) {
    const double count = by_bin[static_cast<std::size_t>(bin)];
    if (count == 0) continue;
    total += count;
    // The mean square over a half octave is 1.5 times the lower edge's.
    const double edge = bin == 0 ? 0 : bin_edge(bin) / unit;
    sum += count * (bin < bound_bin ? std::min(1.5 * edge * edge, 1.0) : 1.0 / 3);
    if (bin < bound_bin) {
      small += count;
      small_sum += count * std::min(1.5 * edge * edge, 1.0);
    }
  }
  small_error = small > 0 ? small_sum / small : 1.0 / 3;
  return total > 0 ? sum / total : 0;
}

}  // namespace

Quantized quantize(const JointCounts& joint, int half_octaves) {
  Quantized out;
  if (joint.up_to.empty()) return out;
  const int bound_bin = kUnitBin + half_octaves;
  double total = 0;
  const double alone = squared_error_of(joint, bound_bin, total, out.zero_error);
  if (total == 0) return out;
  const std::size_t noise = noise_index(sqrt_of(joint.noise_gain * alone));
  Cells all;
  double conditional = 0;
  const int quiet_octaves = std::clamp((bound_bin - 2) / 2, 0, JointCounts::kOctaves - 1);
  const auto add = [&](Cells& cells, int bin, std::uint32_t count) {
    if (count != 0) cells.add(bin == 0 ? -kBelow : bin - bound_bin, count, noise);
  };
  for (int octave = quiet_octaves + 1; octave < JointCounts::kOctaves; ++octave) {
    const JointCounts::BinRange& bins = joint.bins[static_cast<std::size_t>(octave)];
    if (bins.begin >= bins.end) continue;
    Cells own;
    for (int bin = bins.begin; bin < bins.end; ++bin) add(own, bin, joint.at(octave, bin));
    conditional += own.bits();
    all.add(own);
  }
  Cells quiet;
  const Counts& of_quiet = joint.up_to[static_cast<std::size_t>(quiet_octaves)];
  for (int bin = 0; bin < kBins; ++bin) add(quiet, bin, of_quiet[static_cast<std::size_t>(bin)]);
  all.add(quiet);
  out.conditional = (conditional + quiet.bits()) / total;
  out.entropy = all.bits() / total;
  out.zero_share = all.counts[0] / total;
  const double unit = bin_edge(bound_bin);
  out.zero_error *= unit * unit;
  out.squared_error = std::min(alone + out.zero_share * joint.noise_gain * alone * 0.5, 1.0 / 3) * unit * unit;
  return out;
}

double group_bits(const Counts& groups, double noise_gain, int half_octaves) {
  const int bound_bin = kUnitBin + half_octaves;
  double total = 0;
  double bits = 0;
  for (int bin = 0; bin < kBins; ++bin) {
    const double count = groups[static_cast<std::size_t>(bin)];
    if (count == 0) continue;
    total += count;
    // The code of the largest magnitude, with what rounding the neighbours adds to the largest of 32.
    const double magnitude = bin == 0 ? 0 : bin_edge(bin) * 1.19 / bin_edge(bound_bin) / 2;
    const double rounding = magnitude < 0.05 ? magnitude : magnitude + 0.3 * sqrt_of(noise_gain);
    bits += count * std::max(log2_of(rounding + 0.5) + 2, 0.0);
  }
  return total > 0 ? bits / total : 0;
}

double similarity(const Counts& deviations, double squared_error) {
  constexpr double kC2 = 0.03 * 0.03;
  double total = 0;
  double sum = 0;
  for (int bin = 0; bin < kBins; ++bin) {
    const double count = deviations[static_cast<std::size_t>(bin)];
    if (count == 0) continue;
    const double edge = bin == 0 ? 0 : bin_edge(bin);
    const double variance = 1.41 * edge * edge;
    total += count;
    sum += count * (2 * variance + kC2) / (2 * variance + squared_error + kC2);
  }
  return total > 0 ? sum / total : 1;
}

double byte_entropy(const Features& features) {
  double bits = 0;
  for (std::size_t b = 0; b < dtype_bytes(features.dtype) && !features.bytes.empty(); ++b) {
    double total = 0;
    for (std::size_t v = 0; v < 256; ++v) total += features.bytes[b * 256 + v];
    for (std::size_t v = 0; v < 256 && total > 0; ++v) bits += minus_log(features.bytes[b * 256 + v] / total);
  }
  return bits;
}

}  // namespace quern::surrogate
