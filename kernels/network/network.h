// Networks of whole numbers, semantics version 1: the same bits on every machine. What layers compute is specified in
// docs/format-model.md; this file has their description, network/rules.h the numbers, network/cpu/ the loops.
//
// Version 1 is frozen: what changes a result is version 2 beside it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace quern::kernels {

inline constexpr std::uint16_t kNetworkSemantics = 1;
inline constexpr std::size_t kMostLayers = 64;
inline constexpr std::size_t kMostNetworkElems = std::size_t{1} << 20;  ///< of a tensor
inline constexpr std::size_t kMostWeights = std::size_t{1} << 23;       ///< of a network
/// Bits of a number with its sign: they lie within +-(2^(bits-1) - 1).
inline constexpr unsigned kLeastActivationBits = 8;
inline constexpr unsigned kMostActivationBits = 16;
inline constexpr unsigned kMostRescaleShift = 62;

/// Shape of a tensor of 16-bit integers; channels are its fastest axis, the extents before them slowest first.
struct TensorShape {
  std::array<std::uint32_t, 3> extents{1, 1, 1};
  std::uint32_t channels = 1;

  constexpr std::size_t places() const { return std::size_t{extents[0]} * extents[1] * extents[2]; }
  constexpr std::size_t elems() const { return places() * channels; }
  friend constexpr bool operator==(const TensorShape&, const TensorShape&) = default;
};

enum class LayerKind : std::uint8_t {
  dense = 0,           ///< every output from all inputs
  convolution = 1,     ///< 1 or 3 wide along each axis, steps of 1 or 2, edges repeated
  depth_to_space = 2,  ///< channels become places: each extent times its factor
  space_to_depth = 3,  ///< the reverse
  add = 4,             ///< another tensor of the same shape is added
  concatenate = 5,     ///< channels of another tensor follow
};

enum class Activation : std::uint8_t {
  none = 0,
  relu = 1,   ///< max(x, 0)
  leaky = 2,  ///< max(x, floor(x / 8))
};

struct NetworkLayer {
  LayerKind kind = LayerKind::dense;
  Activation activation = Activation::none;  ///< of dense and convolution
  std::uint8_t bits = kMostActivationBits;   ///< of the output of dense, convolution and add
  std::uint8_t shift = 1;                    ///< of rescaling: 1 to kMostRescaleShift
  /// Widths of a convolution (1 or 3), factors of depth_to_space and space_to_depth (1 or 2), by axis.
  std::array<std::uint8_t, 3> width{1, 1, 1};
  std::array<std::uint8_t, 3> step{1, 1, 1};  ///< of a convolution: 1 or 2
  std::uint32_t other = 0;  ///< add, concatenate: number of the other tensor; 0 is the input, i what layer i - 1 gave
  TensorShape out;          ///< dense: all of it; convolution: its channels; else set by check_network
  /// A row for each output (dense) or output channel: inputs in their order in memory; of a convolution the places it
  /// sees, slowest axis first, and of each the channels.
  std::vector<std::int8_t> weights;
  std::vector<std::int32_t> bias;         ///< one a row
  std::vector<std::int32_t> multipliers;  ///< one a row, not negative

  bool has_weights() const { return kind == LayerKind::dense || kind == LayerKind::convolution; }
  std::size_t rows() const { return kind == LayerKind::dense ? out.elems() : out.channels; }
};

struct Network {
  TensorShape in;
  std::uint8_t in_bits = kMostActivationBits;
  std::vector<NetworkLayer> layers;

  const TensorShape& out() const { return layers.empty() ? in : layers.back().out; }
};

/// Completes the shapes and proves that no sum can overflow: for each row, the sum of |weight| times the largest input,
/// plus |bias|, is below 2^31. Null, or what is wrong. The network may come from anywhere. O(weights).
const char* check_network(Network& network);

/// Numbers of all tensors together, the input among them; of a checked network.
std::uint64_t network_elems(const Network& network);

/// Multiplications that one evaluation takes; of a checked network.
std::uint64_t network_products(const Network& network);

}  // namespace quern::kernels
