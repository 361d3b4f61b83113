// Fill values as kernels take them: by value, so that no caller has to bring them to the device first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace quern::kernels {

struct FillValues {
  /// What fits a launch's parameters beside the others.
  static constexpr std::size_t kMost = 255;

  std::uint64_t count = 0;
  std::uint64_t bits[kMost]{};

  constexpr std::span<const std::uint64_t> view() const { return {bits, static_cast<std::size_t>(count)}; }
};

/// False, and `fills` empty, when there are more than kernels take.
constexpr bool copy_fills(std::span<const std::uint64_t> bits, FillValues& fills) {
  fills.count = 0;
  if (bits.size() > FillValues::kMost) return false;
  for (const std::uint64_t value : bits) fills.bits[fills.count++] = value;
  return true;
}

}  // namespace quern::kernels
