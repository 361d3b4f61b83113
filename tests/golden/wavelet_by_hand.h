// Chunks of the stencil codec under its wavelet, written by hand.
#pragma once

#include <cstdint>
#include <optional>

#include "tests/golden/stencil_by_hand.h"

namespace quern::golden {

inline constexpr unsigned kWaveletMode = 4;

/// Weights of 15 features: of the first one, if it is not 0, and of no other.
struct StoredCorrections {
  unsigned step = 3;
  std::uint64_t first_weight = 0;
  std::uint64_t constant = 40;
};

/// What a chunk stores, in the order in which it does. Whole for three rows of eight columns as it is: seven bands of
/// nothing but zeros.
struct StoredWavelet : StoredDistributions {
  double base = 3;
  double unit = 0.5;
  unsigned masked = 0;
  unsigned packets = 0;
  Vector<unsigned> levels{2, 2};
  unsigned step = 8;
  unsigned first_offset = 0;  ///< as stored, 5 bits; so the next
  unsigned offset = 0;
  std::uint64_t first_weight = 0;
  unsigned constant_order = 5;
  Vector<std::uint64_t> constants{40, 40, 40};
  std::optional<StoredCorrections> corrections;
  std::size_t cut = 0;  ///< bytes that the model lacks; nothing follows then
  Vector<std::uint8_t> exceptions{0};
  Vector<std::uint8_t> lane_sizes{0};  ///< lane bits and sizes
  Vector<std::uint8_t> lanes{0, 0, 1, 0};
};

/// The chunk with its mode.
Vector<std::uint8_t> chunk_bytes(const StoredWavelet& chunk);

}  // namespace quern::golden
