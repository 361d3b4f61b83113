// Points in batches through a network.
#include "codecs/stencil/networks/level_networks.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <type_traits>
#include <utility>

#include "codecs/stencil/networks/chunk_networks.h"
#include "codecs/stencil/networks/point_rules.h"

namespace quern::codec::stencil {
namespace {

template <class Value>
std::int64_t network_operand(Value value) {
  if constexpr (std::is_same_v<Value, double>) {
    constexpr auto kMost = static_cast<double>(kMostNetworkValue);
    // A value that is no number fails both comparisons of clamp's, so it is dealt with first.
    if (!(value > -kMost)) return -kMostNetworkValue;
    return value < kMost ? static_cast<std::int64_t>(value) : kMostNetworkValue;
  }
  return static_cast<std::int64_t>(value);
}

/// Points of a class that wait for the network, and where what it makes of them goes.
template <class Value>
class Batch {
 public:
  Batch(const kernels::PreparedNetwork& network, const kernels::NetworkKernels& kernels, std::size_t inputs)
      : network_(network), kernels_(kernels), inputs_(inputs), in_(kNetworkBatch * inputs), out_(kNetworkBatch) {}

  std::size_t room() const { return kNetworkBatch - count_; }
  std::int16_t* inputs() { return in_.data() + count_ * inputs_; }
  LevelNetworks::Point* points() { return points_.data() + count_; }
  void add(Value* to, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) to_[count_++] = to + i;
    if (count_ == kNetworkBatch) flush();
  }
  void flush() {
    if (count_ == 0) return;
    std::fill(in_.begin() + static_cast<std::ptrdiff_t>(count_ * inputs_), in_.end(), std::int16_t{0});
    network_.run(kernels_, in_, room_, out_);
    for (std::size_t i = 0; i < count_; ++i) {
      const std::int64_t value = network_value(points_[i].base, out_[i], points_[i].scale);
      if constexpr (!std::is_same_v<Value, double>)
        fits_ = fits_ && value > -kernels::kMostNarrow && value < kernels::kMostNarrow;
      *to_[i] = static_cast<Value>(fits_ ? value : 0);
    }
    count_ = 0;
  }
  bool fits() const { return fits_; }

 private:
  const kernels::PreparedNetwork& network_;
  const kernels::NetworkKernels& kernels_;
  std::size_t inputs_;
  std::size_t count_ = 0;
  bool fits_ = true;
  std::vector<std::int16_t> in_;
  std::vector<std::int16_t> out_;
  kernels::NetworkRoom room_;
  std::array<LevelNetworks::Point, kNetworkBatch> points_{};
  std::array<Value*, kNetworkBatch> to_{};
};

}  // namespace

bool may_predict(const ChunkNetworks* stream, const LevelAxes& axes, unsigned level, std::size_t parity_class) {
  if (stream == nullptr) return false;
  if (stream->networks != nullptr) return stream->networks->predicts(axes, level, parity_class);
  return level == 0 && !axes.sequential && axes.rank >= 2 && axes.rank <= models::kMostLevelAxes && parity_class != 0;
}

Result<std::unique_ptr<const LevelNetworks>> LevelNetworks::make(const models::LevelModel& model,
                                                                 const kernels::NetworkKernels& kernels) {
  auto made = std::make_unique<LevelNetworks>();
  made->axes_ = model.axes;
  made->kernels_ = &kernels;
  for (std::size_t c = 1; c < std::size_t{1} << model.axes; ++c) {
    if (!model.classes[c]) continue;
    const std::size_t taps = models::LevelModel::taps(*model.classes[c]);
    Class& one = made->classes_[c];
    one.taps = network_taps(model.axes, c);
    if (taps > one.taps.size() || taps < 2 * static_cast<std::size_t>(std::popcount(c)))
      return Status(StatusCode::corrupt, "stencil: a network of the model reads points that are not known");
    one.taps.resize(taps);
    kernels::Network network = *model.classes[c];
    network.in.extents[2] = kNetworkBatch;
    if (const char* const wrong = kernels::check_network(network); wrong != nullptr)
      return Status(StatusCode::corrupt, wrong);
    one.network = kernels::PreparedNetwork(std::move(network));
  }
  return std::unique_ptr<const LevelNetworks>(std::move(made));
}

template <class Value>
void LevelNetworks::inputs(std::span<const Value* const> rows, std::size_t nearest, std::size_t count,
                           unsigned fraction_bits, std::int16_t* to, Point* points) {
  std::array<std::array<std::int64_t, kNetworkBatch>, models::kMostLevelTaps> values;  // NOLINT: set below
  std::array<std::int64_t, kNetworkBatch> bases{};
  std::array<std::uint64_t, kNetworkBatch> sums{};
  for (std::size_t t = 0; t < rows.size(); ++t)
    for (std::size_t x = 0; x < count; ++x) values[t][x] = network_operand(rows[t][x]);
  for (std::size_t t = 0; t < nearest; ++t)
    for (std::size_t x = 0; x < count; ++x) bases[x] += values[t][x];
  for (std::size_t x = 0; x < count; ++x) bases[x] = network_base(bases[x], nearest);
  for (std::size_t t = 0; t < rows.size(); ++t)
    for (std::size_t x = 0; x < count; ++x) {
      values[t][x] -= bases[x];
      sums[x] += static_cast<std::uint64_t>(values[t][x] < 0 ? -values[t][x] : values[t][x]);
    }
  for (std::size_t x = 0; x < count; ++x, to += rows.size() + 1) {
    points[x] = {bases[x], network_scale(sums[x], rows.size())};
    for (std::size_t t = 0; t < rows.size(); ++t) to[t] = network_input(values[t][x], points[x].scale);
    to[rows.size()] = network_scale_input(points[x].scale, fraction_bits);
  }
}

template <class Value>
bool LevelNetworks::predict_class(LevelGridOf<Value>& grid, std::size_t parity_class, unsigned fraction_bits) const {
  const Class& one = classes_[parity_class];
  const std::size_t nearest = 2 * static_cast<std::size_t>(std::popcount(parity_class));
  Batch<Value> batch(one.network, *kernels_, one.taps.size() + 1);
  std::array<const Value*, models::kMostLevelTaps> rows{};
  const auto& view = grid.view(parity_class);
  const std::size_t columns = view.extents[grid.axes().rank - 1];
  for (std::size_t r = 0; r < view.rows; ++r) {
    const RowIndex index = grid.index_of(parity_class, r);
    for (std::size_t t = 0; t < one.taps.size(); ++t) rows[t] = grid.value_row(parity_class, index, one.taps[t]);
    Value* const to = grid.network_row(parity_class, index);
    for (std::size_t x = 0; x < columns;) {
      const std::size_t count = std::min(columns - x, batch.room());
      inputs<Value>({rows.data(), one.taps.size()}, nearest, count, fraction_bits, batch.inputs(), batch.points());
      for (std::size_t t = 0; t < one.taps.size(); ++t) rows[t] += count;
      batch.add(to + x, count);
      x += count;
    }
  }
  batch.flush();
  if (!batch.fits()) return false;
  for (std::size_t r = 0; r < view.rows; ++r)
    grid.small().see(grid.network_row(parity_class, grid.index_of(parity_class, r)), columns);
  return true;
}

template bool LevelNetworks::predict_class(LevelGridOf<double>&, std::size_t, unsigned) const;
template bool LevelNetworks::predict_class(LevelGridOf<std::int32_t>&, std::size_t, unsigned) const;
template void LevelNetworks::inputs(std::span<const double* const>, std::size_t, std::size_t, unsigned, std::int16_t*,
                                    Point*);

}  // namespace quern::codec::stencil
