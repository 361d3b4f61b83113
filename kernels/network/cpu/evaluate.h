// Evaluates a network on a CPU.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/network/cpu/products.h"
#include "kernels/network/network.h"

namespace quern::kernels {

/// Memory of one evaluation; one for each thread, used again and again. Of a network of n numbers (network_elems) it
/// takes at most 10 n bytes and 512 KiB: 3 MiB for the largest network of a model, 250 KiB for those that are trained.
struct NetworkRoom {
  std::vector<std::vector<std::int16_t>> tensors;  ///< the input, then what each layer gave
  std::vector<std::int16_t> patches;
  std::vector<std::int32_t> sums;
};

/// A checked network with its weights in the order of the loops. Immutable: threads share it, each with its own room.
class PreparedNetwork {
 public:
  PreparedNetwork() = default;
  /// `network` has passed check_network. May throw std::bad_alloc. O(weights).
  explicit PreparedNetwork(Network network);

  const Network& network() const { return network_; }
  std::size_t inputs() const { return network_.in.elems(); }
  std::size_t outputs() const { return network_.out().elems(); }

  /// `out` = what the network makes of `in`, both in host memory and of inputs() and outputs() numbers; inputs beyond
  /// the limit of their bits count as it. The same numbers for every `kernels`. May throw std::bad_alloc the first time
  /// a room is used.
  void run(const NetworkKernels& kernels, std::span<const std::int16_t> in, NetworkRoom& room,
           std::span<std::int16_t> out) const;

 private:
  struct Rows {
    std::size_t pairs = 0;  ///< of inputs of a row
    std::size_t rows = 0;   ///< with those of 0 up to a multiple of kProductRows
    std::vector<std::int16_t> weights;
    std::vector<std::int32_t> bias;
  };

  void run_layer(const NetworkKernels& kernels, std::size_t number, NetworkRoom& room) const;

  Network network_;
  std::vector<Rows> rows_;  ///< of each layer; empty ones where it has no weights
};

}  // namespace quern::kernels
