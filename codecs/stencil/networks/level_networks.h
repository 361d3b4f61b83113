// The networks of a model of super-resolution, prepared; and what they make of the points of a class.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <quern/memory.h>
#include <quern/status.h>

#include "codecs/stencil/levels/grid.h"
#include "codecs/stencil/networks/input_taps.h"
#include "kernels/network/cpu/evaluate.h"
#include "models/level_model.h"

namespace quern::codec::stencil {

/// Points that are evaluated together.
inline constexpr std::size_t kNetworkBatch = 128;

/// Immutable: threads share it.
class LevelNetworks : public Allocated {
 public:
  /// Fails with `corrupt` where a network wants more points than there are. May throw std::bad_alloc.
  static Result<std::unique_ptr<const LevelNetworks>> make(const models::LevelModel& model,
                                                           const kernels::NetworkKernels& kernels);

  std::size_t axes() const { return axes_; }
  /// Whether there is a network for a class of chunks with these axes, at a level.
  bool predicts(const LevelAxes& axes, unsigned level, std::size_t parity_class) const {
    return level == 0 && !axes.sequential && axes.rank == axes_ && !classes_[parity_class].taps.empty();
  }
  const Vector<Offset>& taps(std::size_t parity_class) const { return classes_[parity_class].taps; }

  /// Fills what the network makes of all points of a class of the open level (network_row of the grid), from classes
  /// that are complete. False where a value does not fit the grid's; then none has a meaning. May throw
  /// std::bad_alloc.
  template <class Value>
  bool predict_class(LevelGridOf<Value>& grid, std::size_t parity_class, unsigned fraction_bits) const;

  /// Inputs of a network and what its output counts from.
  struct Point {
    std::int64_t base = 0;
    unsigned scale = 0;
  };
  /// Inputs of `count` points side by side, count <= kNetworkBatch: `rows` has for each tap the value of the first
  /// point, those of the others follow. Each point has taps + 1 inputs.
  template <class Value>
  static void inputs(std::span<const Value* const> rows, std::size_t nearest, std::size_t count, unsigned fraction_bits,
                     std::int16_t* to, Point* points);

 private:
  struct Class {
    Vector<Offset> taps;  ///< none: the class has no network
    kernels::PreparedNetwork network;
  };

  std::size_t axes_ = 0;
  const kernels::NetworkKernels* kernels_ = nullptr;
  std::array<Class, 1u << models::kMostLevelAxes> classes_;
};

}  // namespace quern::codec::stencil
