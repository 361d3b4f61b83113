// Models of super-resolution in codec `stencil`: a small network for each parity class of the finest level, which
// predicts a point from the values around it that are known. Their stored form is in docs/format-model.md, chapter 4.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <quern/memory.h>
#include <quern/models.h>
#include <quern/status.h>

#include "kernels/network/network.h"
#include "models/model_file.h"

namespace quern::models {

inline constexpr std::size_t kMostLevelAxes = 3;
inline constexpr std::size_t kMostLevelTaps = 64;
/// Of one point: trained networks have at most 5098 and 144. They bound what a decoder takes for a chunk.
inline constexpr std::size_t kMostPointProducts = std::size_t{1} << 13;
inline constexpr std::size_t kMostPointElems = std::size_t{1} << 9;

/// A checked model: what a network computes of one point is bounded, and no sum overflows.
struct LevelModel {
  std::uint8_t axes = 3;  ///< of the chunks it predicts: 2 or 3
  std::string record;     ///< JSON: what it was trained on, and how well it did
  /// Of class c (a bit for each axis with odd coordinates, the slowest axis the highest), from 1 to 2^axes - 1: layers
  /// that compute each place by itself, from one place of taps + 1 channels to one number.
  std::array<std::optional<kernels::Network>, 1u << kMostLevelAxes> classes;

  static std::size_t taps(const kernels::Network& network) { return network.in.channels - 1; }
};

/// The bytes of a file. May throw std::bad_alloc.
Vector<std::uint8_t> write_level_model(const LevelModel& model);
/// Reads them, whatever they are; fails as open_model_file does. May throw std::bad_alloc. O(bytes).
Result<LevelModel> read_level_model(std::span<const std::uint8_t> bytes);

/// What a decoder needs, and streams embed.
LevelModel without_record(const LevelModel& model);
/// The first 16 bytes of the SHA-256 of the file without its record.
ModelId model_id(const LevelModel& model);

}  // namespace quern::models
