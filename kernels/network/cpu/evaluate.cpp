// Layer after layer. Convolutions gather what each place sees, then multiply it by all rows.
#include "kernels/network/cpu/evaluate.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/network/rules.h"

namespace quern::kernels {
namespace {

/// Numbers that are gathered, or summed, at a time: rows of the output that see more are taken in parts.
constexpr std::size_t kGatheredNumbers = std::size_t{1} << 16;

/// Places of a row of the output, from `begin` on and before `end`.
struct RowPart {
  std::uint32_t z = 0, y = 0, begin = 0, end = 0;
};

/// What these places see, side by side; of odd counts the last is followed by a 0.
void gather(const NetworkLayer& layer, const TensorShape& in, const std::int16_t* from, const RowPart& part,
            std::size_t pairs, std::int16_t* to) {
  const std::size_t channels = in.channels;
  const auto place = [&](std::uint32_t at, std::uint32_t tap, std::size_t axis) {
    const std::int64_t n = std::int64_t{at} * layer.step[axis] + tap - layer.width[axis] / 2;
    return static_cast<std::size_t>(std::clamp<std::int64_t>(n, 0, std::int64_t{in.extents[axis]} - 1));
  };
  const std::size_t columns = std::size_t{layer.width[0]} * layer.width[1] * layer.width[2] * channels;
  for (std::uint32_t x = part.begin; x < part.end; ++x, to += 2 * pairs) {
    std::int16_t* at = to;
    for (std::uint32_t i = 0; i < layer.width[0]; ++i)
      for (std::uint32_t j = 0; j < layer.width[1]; ++j) {
        const std::int16_t* const row =
            from + (place(part.z, i, 0) * in.extents[1] + place(part.y, j, 1)) * in.extents[2] * channels;
        for (std::uint32_t k = 0; k < layer.width[2]; ++k, at += channels)
          std::memcpy(at, row + place(x, k, 2) * channels, channels * sizeof(*at));
      }
    if (columns % 2 != 0) *at = 0;
  }
}

/// Channels to places or back: factor by factor, the fastest axis last among the channels that move.
void shuffle(const NetworkLayer& layer, const TensorShape& small, const TensorShape& large, const std::int16_t* from,
             std::int16_t* to) {
  const bool up = layer.kind == LayerKind::depth_to_space;
  const std::size_t channels = large.channels;
  for (std::size_t z = 0; z < large.extents[0]; ++z)
    for (std::size_t y = 0; y < large.extents[1]; ++y)
      for (std::size_t x = 0; x < large.extents[2]; ++x) {
        const std::size_t group =
            ((z % layer.width[0]) * layer.width[1] + y % layer.width[1]) * layer.width[2] + x % layer.width[2];
        const std::size_t place =
            ((z / layer.width[0]) * small.extents[1] + y / layer.width[1]) * small.extents[2] + x / layer.width[2];
        const std::size_t at_small = place * small.channels + group * channels;
        const std::size_t at_large = ((z * large.extents[1] + y) * large.extents[2] + x) * channels;
        std::memcpy(to + (up ? at_large : at_small), from + (up ? at_small : at_large), channels * sizeof(*to));
      }
}

void join(const TensorShape& in, const std::int16_t* first, std::uint32_t other_channels, const std::int16_t* second,
          std::int16_t* to) {
  for (std::size_t p = 0; p < in.places(); ++p, to += in.channels + other_channels) {
    std::memcpy(to, first + p * in.channels, in.channels * sizeof(*to));
    std::memcpy(to + in.channels, second + p * other_channels, other_channels * sizeof(*to));
  }
}

}  // namespace

PreparedNetwork::PreparedNetwork(Network network) : network_(std::move(network)), rows_(network_.layers.size()) {
  for (std::size_t n = 0; n < rows_.size(); ++n) {
    const NetworkLayer& layer = network_.layers[n];
    if (!layer.has_weights()) continue;
    Rows& rows = rows_[n];
    const std::size_t real = layer.rows();
    const std::size_t columns = layer.weights.size() / real;
    rows.pairs = (columns + 1) / 2;
    rows.rows = (real + kProductRows - 1) / kProductRows * kProductRows;
    rows.weights.assign(rows.rows * 2 * rows.pairs, 0);
    rows.bias.assign(rows.rows, 0);
    std::copy(layer.bias.begin(), layer.bias.end(), rows.bias.begin());
    for (std::size_t r = 0; r < real; ++r)
      for (std::size_t k = 0; k < columns; ++k)
        rows.weights[((r / kProductRows * rows.pairs + k / 2) * kProductRows + r % kProductRows) * 2 + k % 2] =
            layer.weights[r * columns + k];
  }
}

void PreparedNetwork::run(const NetworkKernels& kernels, std::span<const std::int16_t> in, NetworkRoom& room,
                          std::span<std::int16_t> out) const {
  room.tensors.resize(network_.layers.size() + 1);
  room.tensors[0].assign(in.begin(), in.end());
  const std::int32_t limit = activation_limit(network_.in_bits);
  for (std::int16_t& v : room.tensors[0]) v = clamp_activation(v, limit);
  for (std::size_t n = 0; n < network_.layers.size(); ++n) run_layer(kernels, n, room);
  std::copy(room.tensors.back().begin(), room.tensors.back().end(), out.begin());
}

void PreparedNetwork::run_layer(const NetworkKernels& kernels, std::size_t number, NetworkRoom& room) const {
  const NetworkLayer& layer = network_.layers[number];
  const TensorShape& in = number == 0 ? network_.in : network_.layers[number - 1].out;
  const std::vector<std::int16_t>& from = room.tensors[number];
  std::vector<std::int16_t>& to = room.tensors[number + 1];
  to.resize(layer.out.elems());
  if (layer.kind == LayerKind::depth_to_space) return shuffle(layer, in, layer.out, from.data(), to.data());
  if (layer.kind == LayerKind::space_to_depth) return shuffle(layer, layer.out, in, from.data(), to.data());
  const std::int32_t limit = activation_limit(layer.bits);
  if (layer.kind == LayerKind::add) {
    const std::vector<std::int16_t>& other = room.tensors[layer.other];
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = clamp_activation(std::int32_t{from[i]} + other[i], limit);
    return;
  }
  if (layer.kind == LayerKind::concatenate)
    return join(in, from.data(), layer.out.channels - in.channels, room.tensors[layer.other].data(), to.data());

  const Rows& rows = rows_[number];
  const std::size_t real = layer.rows();
  const bool dense = layer.kind == LayerKind::dense;
  // A dense layer is one place that sees all inputs.
  const std::size_t places = dense ? 1 : layer.out.extents[2];
  const std::size_t lines = dense ? 1 : layer.out.places() / places;
  const std::size_t most = std::clamp<std::size_t>(kGatheredNumbers / std::max(2 * rows.pairs, rows.rows), 1, places);
  room.patches.resize(most * 2 * rows.pairs);
  room.sums.resize(most * rows.rows);
  for (std::size_t line = 0; line < lines; ++line)
    for (std::size_t first = 0; first < places; first += most) {
      const std::size_t count = std::min(most, places - first);
      if (dense) {
        std::copy(from.begin(), from.end(), room.patches.begin());
        if (from.size() % 2 != 0) room.patches[from.size()] = 0;
      } else {
        const RowPart part{static_cast<std::uint32_t>(line / layer.out.extents[1]),
                           static_cast<std::uint32_t>(line % layer.out.extents[1]), static_cast<std::uint32_t>(first),
                           static_cast<std::uint32_t>(first + count)};
        gather(layer, in, from.data(), part, rows.pairs, room.patches.data());
      }
      kernels.products(room.patches.data(), count, rows.pairs, rows.weights.data(), rows.bias.data(), rows.rows,
                       room.sums.data());
      for (std::size_t p = 0; p < count; ++p)
        for (std::size_t r = 0; r < real; ++r)
          to[(line * places + first + p) * real + r] =
              rescaled(room.sums[p * rows.rows + r], layer.multipliers[r], layer.shift, layer.activation, limit);
    }
}

}  // namespace quern::kernels
