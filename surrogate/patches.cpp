// A patch is scaled by its own deviation: networks see texture, and the deviation as a number beside it.
#include "surrogate/patches.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/common/cpu/isa.h"
#include "kernels/network/cpu/evaluate.h"
#include "libcompress/core/scattered_sample.h"
#include "surrogate/numbers.h"
#include "surrogate/sample_blocks.h"

namespace quern::surrogate {
namespace {

constexpr double kUnit = 1 << kPatchUnitBits;

/// NaN becomes 0.
std::int16_t stored(double value) {
  constexpr double kMost = (1 << (kPatchBits - 1)) - 1;
  if (std::isnan(value)) return 0;
  const double scaled = std::clamp(value * kUnit, -kMost, kMost);
  return static_cast<std::int16_t>(static_cast<int>(scaled + 32768.5) - 32768);
}

/// One patch of a block, whose first element is at `begin`.
void add_patch(const SampleBlock& block, const Triple& begin, const Triple& side, std::vector<std::int16_t>& out) {
  std::vector<double> values;
  for (std::uint64_t z = 0; z < side[0]; ++z)
    for (std::uint64_t y = 0; y < side[1]; ++y)
      for (std::uint64_t x = 0; x < side[2]; ++x) {
        const std::uint64_t row = (begin[0] + z) * block.extents[1] + begin[1] + y;
        values.push_back(block.values[row * block.extents[2] + begin[2] + x]);
      }
  const double elems = static_cast<double>(values.size());
  double mean = 0;
  for (const double v : values) mean += v;
  mean /= elems;
  double squares = 0;
  for (const double v : values) squares += (v - mean) * (v - mean);
  const double deviation = sqrt_of(squares / elems);
  // Deviations between 2^-28 and 2^4 ranges, as numbers between -4 and 4.
  const std::int16_t level = stored((log2_of(std::max(deviation, 0x1p-40)) + 12) / 4);
  const double factor = deviation > 0x1p-40 ? 1 / deviation : 0;
  for (const double v : values) {
    out.push_back(stored((v - mean) * factor));
    out.push_back(level);
  }
}

}  // namespace

kernels::TensorShape patch_shape(bool cubes) {
  return cubes ? kernels::TensorShape{{8, 8, 8}, kPatchChannels} : kernels::TensorShape{{1, 16, 16}, kPatchChannels};
}

Patches take_patches(const ArrayView& array, const std::optional<ValueRange>& range,
                     std::span<const std::uint64_t> fill_bits) {
  Patches out;
  const SamplePlan plan(array.shape);
  if (plan.blocks == 0 || !range || !(range->max > range->min)) return out;
  out.cubes = plan.rank == 3 && *std::min_element(plan.block.begin(), plan.block.end()) >= 8;
  Triple side{};
  for (std::size_t a = 0; a < 3; ++a) side[a] = patch_shape(out.cubes).extents[a];
  for (std::size_t a = 0; a < 3; ++a)
    if (plan.block[a] < side[a]) return out;
  const Scale scale = scale_of(*range);
  // Ranges of subnormal numbers, and ranges that callers gave with an infinite end.
  if (!std::isfinite(1 / scale.range) || !std::isfinite(scale.middle) || !std::isfinite(scale.range)) return out;
  SampleBlock block;
  std::uint64_t loaded = plan.blocks;
  for (std::uint64_t i = 0; i < kPatches; ++i) {
    const std::uint64_t wanted = scattered_sample(plan.blocks, kPatches, i);
    if (wanted != loaded) load_block(array, plan, wanted, fill_bits, scale, block);
    loaded = wanted;
    Triple begin{};
    for (std::size_t a = 0; a < 3; ++a) begin[a] = scattered_box_place(plan.block[a] - side[a] + 1, a, i);
    add_patch(block, begin, side, out.values);
  }
  return out;
}

const char* check_patch_networks(PatchNetworks& networks) {
  constexpr std::uint64_t kMostProducts = UINT64_C(1) << 22;
  constexpr std::uint64_t kMostElems = UINT64_C(1) << 16;
  for (const bool cubes : {false, true}) {
    kernels::Network& network = cubes ? networks.cubes : networks.squares;
    if (const char* const wrong = kernels::check_network(network); wrong != nullptr) return wrong;
    if (network.in != patch_shape(cubes) || network.out().channels != kDeepFeatures)
      return "a network for patches has another shape";
    if (kernels::network_products(network) > kMostProducts || kernels::network_elems(network) > kMostElems)
      return "a network for patches is too large";
  }
  return nullptr;
}

std::vector<double> deep_features(const PatchNetworks& networks, const Patches& patches) {
  std::vector<double> out(kDeepFeatures);
  if (patches.values.empty()) return out;
  const kernels::PreparedNetwork network(patches.cubes ? networks.cubes : networks.squares);
  const kernels::NetworkKernels& kernels = kernels::network_kernels(kernels::best_isa());
  kernels::NetworkRoom room;
  std::vector<std::int16_t> made(network.outputs());
  std::array<std::int64_t, kDeepFeatures> sums{};
  std::int64_t places = 0;
  const std::span<const std::int16_t> all(patches.values);
  for (std::size_t at = 0; at < all.size(); at += network.inputs()) {
    network.run(kernels, all.subspan(at, network.inputs()), room, made);
    for (std::size_t i = 0; i < made.size(); ++i) sums[i % kDeepFeatures] += made[i];
    places += static_cast<std::int64_t>(made.size() / kDeepFeatures);
  }
  for (std::size_t i = 0; i < kDeepFeatures; ++i)
    out[i] = static_cast<double>(sums[i]) / (kUnit * static_cast<double>(places));
  return out;
}

}  // namespace quern::surrogate
