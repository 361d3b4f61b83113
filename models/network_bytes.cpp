// Layers in their order, each with the fields of its kind.
#include "models/network_bytes.h"

#include <limits>

namespace quern::models {
namespace {

using kernels::LayerKind;
using kernels::Network;
using kernels::NetworkLayer;
using kernels::TensorShape;

constexpr std::uint64_t kMostExtent = kernels::kMostNetworkElems;

void write_shape(const TensorShape& shape, Writer& out) {
  for (const std::uint32_t extent : shape.extents) out.varint(extent);
  out.varint(shape.channels);
}

Status read_shape(Reader& in, TensorShape& shape) {
  for (std::uint32_t& extent : shape.extents) {
    QUERN_ASSIGN_OR_RETURN(const std::uint64_t n, in.varint(kMostExtent));
    extent = static_cast<std::uint32_t>(n);
  }
  QUERN_ASSIGN_OR_RETURN(const std::uint64_t channels, in.varint(kMostExtent));
  shape.channels = static_cast<std::uint32_t>(channels);
  if (shape.channels == 0) return Status(StatusCode::corrupt, "a tensor of the model has no channels");
  std::uint64_t elems = shape.channels;
  for (const std::uint32_t extent : shape.extents) {
    if (extent == 0) return Status(StatusCode::corrupt, "a tensor of the model is empty");
    elems *= extent;
    if (elems > kMostExtent) return Status(StatusCode::corrupt, "a tensor of the model is too large");
  }
  return {};
}

Status read_bytes(Reader& in, std::array<std::uint8_t, 3>& to) {
  for (std::uint8_t& value : to) {
    QUERN_ASSIGN_OR_RETURN(value, in.u8());
  }
  return {};
}

void write_rows(const NetworkLayer& layer, Writer& out) {
  for (const std::int32_t bias : layer.bias)
    out.varint(bias < 0 ? 2 * static_cast<std::uint64_t>(-std::int64_t{bias}) - 1
                        : 2 * static_cast<std::uint64_t>(bias));
  for (const std::int32_t multiplier : layer.multipliers) out.varint(static_cast<std::uint64_t>(multiplier));
  out.bytes({reinterpret_cast<const std::uint8_t*>(layer.weights.data()), layer.weights.size()});
}

Status read_rows(Reader& in, std::uint64_t rows, std::uint64_t columns, NetworkLayer& layer) {
  if (columns > kernels::kMostWeights || rows * columns > kernels::kMostWeights)
    return Status(StatusCode::corrupt, "a layer of the model has too many weights");
  if (rows * columns > in.remaining()) return Status(StatusCode::truncated, "the model ends inside its weights");
  constexpr std::uint64_t kMost = std::numeric_limits<std::int32_t>::max();
  for (std::uint64_t r = 0; r < rows; ++r) {
    QUERN_ASSIGN_OR_RETURN(const std::uint64_t folded, in.varint(2 * kMost));
    const auto magnitude = static_cast<std::int32_t>((folded + 1) / 2);
    layer.bias.push_back(folded % 2 != 0 ? -magnitude : magnitude);
  }
  for (std::uint64_t r = 0; r < rows; ++r) {
    QUERN_ASSIGN_OR_RETURN(const std::uint64_t multiplier, in.varint(kMost));
    layer.multipliers.push_back(static_cast<std::int32_t>(multiplier));
  }
  QUERN_ASSIGN_OR_RETURN(const auto weights, in.bytes(rows * columns));
  const auto* const first = reinterpret_cast<const std::int8_t*>(weights.data());
  layer.weights.assign(first, first + weights.size());
  return {};
}

Status read_layer(Reader& in, const TensorShape& before, NetworkLayer& layer) {
  QUERN_ASSIGN_OR_RETURN(const std::uint8_t kind, in.u8());
  if (kind > static_cast<std::uint8_t>(LayerKind::concatenate))
    return Status(StatusCode::corrupt, "the model has a layer of the unknown kind {0}", kind);
  layer.kind = static_cast<LayerKind>(kind);
  if (layer.has_weights()) {
    QUERN_ASSIGN_OR_RETURN(const std::uint8_t activation, in.u8());
    layer.activation = static_cast<kernels::Activation>(activation);
    QUERN_ASSIGN_OR_RETURN(layer.bits, in.u8());
    QUERN_ASSIGN_OR_RETURN(layer.shift, in.u8());
  }
  switch (layer.kind) {
    case LayerKind::dense:
      QUERN_RETURN_IF_ERROR(read_shape(in, layer.out));
      return read_rows(in, layer.out.elems(), before.elems(), layer);
    case LayerKind::convolution: {
      QUERN_RETURN_IF_ERROR(read_bytes(in, layer.width));
      QUERN_RETURN_IF_ERROR(read_bytes(in, layer.step));
      QUERN_ASSIGN_OR_RETURN(const std::uint64_t channels, in.varint(kMostExtent));
      layer.out.channels = static_cast<std::uint32_t>(channels);
      return read_rows(in, channels, std::uint64_t{layer.width[0]} * layer.width[1] * layer.width[2] * before.channels,
                       layer);
    }
    case LayerKind::depth_to_space:
    case LayerKind::space_to_depth: return read_bytes(in, layer.width);
    case LayerKind::add:
    case LayerKind::concatenate: {
      if (layer.kind == LayerKind::add) {
        QUERN_ASSIGN_OR_RETURN(layer.bits, in.u8());
      }
      QUERN_ASSIGN_OR_RETURN(const std::uint64_t other, in.varint(kernels::kMostLayers));
      layer.other = static_cast<std::uint32_t>(other);
      return {};
    }
  }
  return {};
}

}  // namespace

void write_network(const Network& network, Writer& out) {
  write_shape(network.in, out);
  out.u8(network.in_bits);
  out.varint(network.layers.size());
  for (const NetworkLayer& layer : network.layers) {
    out.u8(static_cast<std::uint8_t>(layer.kind));
    if (layer.has_weights()) {
      out.u8(static_cast<std::uint8_t>(layer.activation));
      out.u8(layer.bits);
      out.u8(layer.shift);
    }
    if (layer.kind == LayerKind::dense) write_shape(layer.out, out);
    if (layer.kind == LayerKind::convolution || layer.kind == LayerKind::depth_to_space ||
        layer.kind == LayerKind::space_to_depth)
      out.bytes(layer.width);
    if (layer.kind == LayerKind::convolution) {
      out.bytes(layer.step);
      out.varint(layer.out.channels);
    }
    if (layer.kind == LayerKind::add) out.u8(layer.bits);
    if (layer.kind == LayerKind::add || layer.kind == LayerKind::concatenate) out.varint(layer.other);
    if (layer.has_weights()) write_rows(layer, out);
  }
}

Result<Network> read_network(Reader& in) {
  Network network;
  QUERN_RETURN_IF_ERROR(read_shape(in, network.in));
  QUERN_ASSIGN_OR_RETURN(network.in_bits, in.u8());
  QUERN_ASSIGN_OR_RETURN(const std::uint64_t layers, in.varint(kernels::kMostLayers));
  for (std::uint64_t n = 0; n < layers; ++n) {
    network.layers.emplace_back();
    // The shape before a layer says how many weights it has, so what is read so far is checked first.
    const TensorShape before = n == 0 ? network.in : network.layers[n - 1].out;
    QUERN_RETURN_IF_ERROR(read_layer(in, before, network.layers.back()));
    if (const char* const wrong = kernels::check_network(network); wrong != nullptr)
      return Status(StatusCode::corrupt, wrong);
  }
  if (const char* const wrong = kernels::check_network(network); wrong != nullptr)
    return Status(StatusCode::corrupt, wrong);
  return network;
}

}  // namespace quern::models
