// Deep features: patches of an array, and the small networks of whole numbers that say in a few numbers what patches
// look like (the idea of DeepCQ). They depend on no bound and no codec.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <quern/array.h>
#include <quern/compress.h>

#include "kernels/network/network.h"

namespace quern::surrogate {

inline constexpr std::size_t kPatches = 32;         ///< of an array
inline constexpr std::size_t kDeepFeatures = 16;    ///< numbers that a network makes of a patch
inline constexpr unsigned kPatchUnitBits = 12;      ///< a deviation is stored as 2^12
inline constexpr unsigned kPatchBits = 15;          ///< numbers of a patch lie within plus and minus 4 deviations
inline constexpr std::uint32_t kPatchChannels = 2;  ///< the value, and how large the patch's deviation is

/// Patches of one array as networks read them: cubes of 8x8x8, or squares of 16x16.
struct Patches {
  bool cubes = false;
  std::vector<std::int16_t> values;  ///< patch by patch, each in C order with its channels fastest; empty: too thin
};

/// What a patch is as a tensor.
kernels::TensorShape patch_shape(bool cubes);

/// Takes patches from the mini-blocks that stage 1 reads (SamplePlan). Arrays of three axes of at least 8 elements give
/// cubes, others squares of their last two axes; none where these are shorter than 16, no two values differ, or
/// the range or 1 by the range overflows. The same on every machine. Reads at most 32 mini-blocks.
Patches take_patches(const ArrayView& array, const std::optional<ValueRange>& range,
                     std::span<const std::uint64_t> fill_bits);

/// One network for each form of patches; checked ones. Each makes tensors of kDeepFeatures channels.
struct PatchNetworks {
  kernels::Network squares, cubes;
};

/// Null, or why these are no networks for patches: other shapes, or more work than estimates may take.
const char* check_patch_networks(PatchNetworks& networks);

/// The mean of what the network makes, over places and patches; kDeepFeatures numbers, 0 where there are no patches.
std::vector<double> deep_features(const PatchNetworks& networks, const Patches& patches);

}  // namespace quern::surrogate
