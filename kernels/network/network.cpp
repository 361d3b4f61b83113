// Checks of networks that come from files.
#include "kernels/network/network.h"

#include <algorithm>

#include "kernels/network/rules.h"

namespace quern::kernels {
namespace {

/// Shape and bits of each tensor there is so far; the input is the first.
struct Tensor {
  TensorShape shape;
  unsigned bits = 0;
};

bool is_size(const TensorShape& shape) {
  std::uint64_t elems = shape.channels;
  if (elems == 0) return false;
  for (const std::uint32_t extent : shape.extents) {
    if (extent == 0 || extent > kMostNetworkElems || elems > kMostNetworkElems) return false;
    elems *= extent;
  }
  return elems <= kMostNetworkElems;
}

bool are_bits(unsigned bits) { return bits >= kLeastActivationBits && bits <= kMostActivationBits; }

/// Inputs of a row.
std::uint64_t columns_of(const NetworkLayer& layer, const TensorShape& in) {
  if (layer.kind == LayerKind::dense) return in.elems();
  return std::uint64_t{layer.width[0]} * layer.width[1] * layer.width[2] * in.channels;
}

const char* check_rows(const NetworkLayer& layer, const Tensor& in, std::size_t& weights_left) {
  const std::uint64_t columns = columns_of(layer, in.shape);
  const std::size_t rows = layer.rows();
  if (columns * rows > weights_left) return "a network has too many weights";
  if (layer.weights.size() != columns * rows || layer.bias.size() != rows || layer.multipliers.size() != rows)
    return "weights of a network do not fit its layers";
  weights_left -= static_cast<std::size_t>(columns * rows);
  if (layer.shift < 1 || layer.shift > kMostRescaleShift) return "a layer of a network rescales by an unknown shift";
  const std::uint64_t most = static_cast<std::uint64_t>(activation_limit(in.bits));
  for (std::size_t r = 0; r < rows; ++r) {
    std::uint64_t sum = 0;
    for (std::uint64_t c = 0; c < columns; ++c) {
      const int w = layer.weights[r * columns + c];
      sum += static_cast<std::uint64_t>(w < 0 ? -w : w);
    }
    const std::int64_t bias = layer.bias[r];
    sum = sum * most + static_cast<std::uint64_t>(bias < 0 ? -bias : bias);
    if (sum >= std::uint64_t{1} << 31) return "sums of a network could overflow";
    if (layer.multipliers[r] < 0) return "a network has a negative multiplier";
  }
  return nullptr;
}

const char* check_convolution(NetworkLayer& layer, const Tensor& in) {
  for (std::size_t a = 0; a < 3; ++a) {
    if ((layer.width[a] != 1 && layer.width[a] != 3) || (layer.step[a] != 1 && layer.step[a] != 2))
      return "a convolution of a network has an unknown width or step";
    layer.out.extents[a] = (in.shape.extents[a] - 1) / layer.step[a] + 1;
  }
  return nullptr;
}

const char* check_shuffle(NetworkLayer& layer, const Tensor& in) {
  layer.out = in.shape;
  std::uint32_t factor = 1;
  for (std::size_t a = 0; a < 3; ++a) {
    if (layer.width[a] != 1 && layer.width[a] != 2) return "a network moves channels by an unknown factor";
    factor *= layer.width[a];
    if (layer.kind == LayerKind::depth_to_space) {
      layer.out.extents[a] *= layer.width[a];
    } else {
      if (in.shape.extents[a] % layer.width[a] != 0) return "a network moves places that do not divide";
      layer.out.extents[a] /= layer.width[a];
    }
  }
  if (layer.kind == LayerKind::space_to_depth) {
    layer.out.channels *= factor;
    return nullptr;
  }
  if (in.shape.channels % factor != 0) return "a network moves channels that do not divide";
  layer.out.channels /= factor;
  return nullptr;
}

const char* check_pair(NetworkLayer& layer, const Tensor& in, const std::vector<Tensor>& tensors, unsigned& bits) {
  if (layer.other >= tensors.size()) return "a layer of a network reads what comes later";
  const Tensor& other = tensors[layer.other];
  layer.out = in.shape;
  if (layer.kind == LayerKind::add) return other.shape == in.shape ? nullptr : "a network adds tensors of two shapes";
  if (other.shape.extents != in.shape.extents) return "a network joins tensors of two shapes";
  layer.out.channels += other.shape.channels;
  bits = std::max(in.bits, other.bits);
  return nullptr;
}

}  // namespace

const char* check_network(Network& network) {
  if (!is_size(network.in) || !are_bits(network.in_bits)) return "a network has an unknown kind of input";
  if (network.layers.empty() || network.layers.size() > kMostLayers) return "a network has too few or too many layers";
  std::vector<Tensor> tensors{{network.in, network.in_bits}};
  std::size_t weights_left = kMostWeights;
  for (NetworkLayer& layer : network.layers) {
    const Tensor in = tensors.back();
    unsigned bits = in.bits;
    const char* wrong = nullptr;
    switch (layer.kind) {
      case LayerKind::dense: bits = layer.bits; break;
      case LayerKind::convolution:
        bits = layer.bits;
        wrong = check_convolution(layer, in);
        break;
      case LayerKind::depth_to_space:
      case LayerKind::space_to_depth: wrong = check_shuffle(layer, in); break;
      case LayerKind::add:
      case LayerKind::concatenate:
        if (layer.kind == LayerKind::add) bits = layer.bits;
        wrong = check_pair(layer, in, tensors, bits);
        break;
      default: return "a network has a layer of an unknown kind";
    }
    if (wrong != nullptr) return wrong;
    if (!is_size(layer.out) || !are_bits(bits)) return "a layer of a network has an unknown size or number of bits";
    if (layer.activation > Activation::leaky) return "a layer of a network has an unknown activation";
    if (layer.has_weights()) wrong = check_rows(layer, in, weights_left);
    if (wrong != nullptr) return wrong;
    tensors.push_back({layer.out, bits});
  }
  return nullptr;
}

std::uint64_t network_elems(const Network& network) {
  std::uint64_t elems = network.in.elems();
  for (const NetworkLayer& layer : network.layers) elems += layer.out.elems();
  return elems;
}

std::uint64_t network_products(const Network& network) {
  std::uint64_t products = 0;
  for (const NetworkLayer& layer : network.layers)
    products += layer.weights.size() * (layer.kind == LayerKind::convolution ? layer.out.places() : 1);
  return products;
}

}  // namespace quern::kernels
