// Rules found on real fields, and limits of the number format.
#include "codecs/stencil/wavelet/choices.h"

#include <algorithm>
#include <cmath>

#include "codecs/stencil/elements.h"
#include "kernels/stencil/wavelet_quantize.h"

namespace quern::codec::stencil {
namespace {

constexpr int kUnitBits = 8;  // units are the error allowed / 2^8, or coarser where values are large against it
constexpr int kLeastUnitBits = 4;
constexpr int kMostValueBits = 34;
constexpr std::size_t kShort = 4;        // extents from here downwards are not split further
constexpr std::size_t kPacketShort = 8;  // the same along packet axes, where little is alike across many planes

unsigned full_levels(std::size_t extent, std::size_t least = 2) {
  unsigned levels = 0;
  for (; extent > least; extent = (extent + 1) / 2) ++levels;
  return levels;
}

}  // namespace

std::optional<WaveletUnits> wavelet_units(const EncodeSpec& spec, const ChunkRange& range, const WaveletAxes& axes) {
  const double error = largest_error(range, spec.dtype, spec.bound);
  if (!(error > 0x1p-900) || !(error < 0x1p900)) return std::nullopt;
  WaveletUnits units;
  units.base = coding::short_double(range.low / 2 + range.high / 2);
  const double reach = std::max(range.high - units.base, units.base - range.low) / error;
  if (!(reach < 0x1p30)) return std::nullopt;
  int bits = 1;
  while (std::ldexp(1.0, bits) < reach) ++bits;
  // Low coefficients grow by a quarter at each level.
  unsigned levels = 0;
  for (std::size_t a = 0; a < axes.rank; ++a) levels += full_levels(axes.extents[a]);
  bits += static_cast<int>((levels + 2) / 3) + 1;
  units.bits = std::min(kUnitBits, kMostValueBits - bits);
  if (units.bits < kLeastUnitBits) return std::nullopt;
  units.unit = coding::short_double(std::ldexp(error, -units.bits));
  return units;
}

unsigned wavelet_step_units(const WaveletUnits& units, double step) {
  return static_cast<unsigned>(std::ldexp(step, units.bits) + 0.5);
}

Vector<WaveletAxes> wavelet_transforms(const WaveletAxes& plain) {
  Vector<WaveletAxes> trials;
  const auto add = [&](std::size_t packets, std::size_t packet_least) {
    WaveletAxes& trial = trials.emplace_back(plain);
    trial.packets = packets;
    for (std::size_t a = 0; a < trial.rank; ++a)
      trial.levels[a] = a >= packets        ? full_levels(trial.extents[a], kShort)
                        : packet_least == 0 ? 0
                                            : full_levels(trial.extents[a], packet_least);
  };
  for (std::size_t packets = 0; packets < std::min(plain.rank, kMaxPackets + 1); ++packets) {
    add(packets, packets == 0 ? 0 : 2);
    if (packets == 0) continue;
    add(packets, kPacketShort);
    if (packets == 1) add(packets, 0);
  }
  return trials;
}

std::size_t sampled_rows(const WaveletBand& band, std::size_t elems, const WaveletEffort& effort) {
  constexpr std::size_t kLeastSamples = 512;
  const std::size_t quota = std::max(kLeastSamples, effort.samples * band.rows() * band.columns() / elems);
  return std::min(band.rows(), quota / band.columns() + 1);
}

std::array<int, 2> wavelet_offsets(const WaveletExcess& excess) {
  constexpr double kPerOffset = 1 << (kernels::kExcessBits - 6);
  std::array<int, 2> offsets{};
  for (std::size_t i = 0; i < 2; ++i) {
    if (excess.counts[i] == 0) continue;
    const double mean = static_cast<double>(excess.sums[i]) / static_cast<double>(excess.counts[i]);
    offsets[i] = static_cast<int>(std::clamp(nearest(mean / kPerOffset), -16.0, 15.0));
  }
  return offsets;
}

}  // namespace quern::codec::stencil
