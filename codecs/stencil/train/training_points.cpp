// The codec's own walk over the finest level gathers the points.
#include "codecs/stencil/train/training_points.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <stdexcept>

#include <quern/compress.h>

#include "codecs/stencil/least_squares/solve.h"
#include "codecs/stencil/levels/given_plane.h"
#include "codecs/stencil/levels/grid.h"
#include "codecs/stencil/levels/view.h"
#include "codecs/stencil/networks/input_taps.h"
#include "codecs/stencil/networks/level_networks.h"
#include "libcompress/core/arena.h"

namespace quern::codec::stencil::train {
namespace {

using surrogate::TrainingArray;

constexpr unsigned kFractionBits = 5;  // of values, in steps; what networks see does not depend on it but by rounding
constexpr std::size_t kRun = 32;       // points that follow each other in a row
constexpr float kWell = 0.3F;          // in steps: of points that are predicted better one in kKept stays
constexpr std::size_t kKept = 8;

Shape shape_of(const TrainingArray& array) {
  const auto shape = Shape::make(std::vector<std::uint64_t>(array.extents.begin(), array.extents.end()));
  if (!shape.ok()) throw std::runtime_error(shape.status().text());
  return *shape;
}

std::vector<float> reconstructed(const TrainingArray& array, double bound) {
  CompressOptions options;
  options.bound = {BoundKind::abs, bound};
  options.codec = "stencil";
  options.settings = {{"layout", "levels"}, {"parts", "off"}};
  Vector<std::uint8_t> stream;
  VectorSink sink(stream);
  const ArrayView view{array.values.data(), DType::f32, shape_of(array)};
  const auto made = compress(view, options, builtin_codecs(), {}, sink);
  if (!made.ok()) throw std::runtime_error(array.path + ": " + made.status().text());
  std::vector<float> back(array.values.size());
  MemorySource source(stream);
  const auto read = decompress(source, {back.data(), DType::f32, view.shape}, builtin_codecs(), {});
  if (!read.status().ok()) throw std::runtime_error(array.path + ": " + read.status().text());
  return back;
}

/// An array at its finest level, as decoders have it.
class FinestLevel {
 public:
  FinestLevel(const TrainingArray& array, double bound)
      : array_(array), view_(box_of(array), form()), unit_(2 * bound / (1 << kFractionBits)) {
    Arena measured(nullptr);
    const LevelGridOf<double> needed(measured, view_.axes);
    memory_.resize(measured.used() + 4096);
    void* at = memory_.data();
    std::size_t room = memory_.size();
    Arena arena(static_cast<std::uint8_t*>(std::align(64, measured.used(), at, room)));
    grid_.emplace(arena, view_.axes);
    const std::vector<float> decoded = reconstructed(array, bound);
    std::vector<double> values(decoded.size());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::nearbyint(static_cast<double>(decoded[i]) / unit_);
    for (unsigned level = view_.axes.top() + 1; level-- > 0;) {
      grid_->open(level, Border::mirrored, kernels::stencil_kernels(kernels::best_isa()).rows);
      load_given_plane(view_, values.data(), *grid_);
    }
  }

  const LevelAxes& axes() const { return view_.axes; }

  /// Appends points of a class. Of each the distance from what it counts from, and those of the taps, all in steps, go
  /// to `distances`.
  void sample(std::size_t c, const Vector<Offset>& taps, std::size_t wanted, std::mt19937_64& random, ClassPoints& to,
              std::vector<float>& distances) const {
    const auto& own = grid_->view(c);
    const std::size_t columns = own.extents[axes().rank - 1];
    if (own.rows == 0 || columns == 0) return;
    const std::size_t run = std::min(columns, kRun);
    wanted = std::min(wanted, own.rows * columns);
    const auto dense = view_.dense();
    const std::size_t step = view_.row_step(0, dense);
    std::vector<const double*> rows(taps.size());
    std::array<LevelNetworks::Point, kNetworkBatch> points{};
    for (std::size_t done = 0; done < wanted; done += run) {
      const RowIndex index = grid_->index_of(c, random() % own.rows);
      const std::size_t first = random() % (columns - run + 1);
      for (std::size_t t = 0; t < taps.size(); ++t) rows[t] = grid_->value_row(c, index, taps[t]) + first;
      const std::size_t begin = to.inputs.size();
      to.inputs.resize(begin + run * (taps.size() + 1));
      LevelNetworks::inputs<double>(rows, 2 * static_cast<std::size_t>(std::popcount(c)), run, kFractionBits,
                                    to.inputs.data() + begin, points.data());
      const float* const from = array_.values.data() + view_.row_start(c, 0, index, dense);
      constexpr double kStep = 1 << kFractionBits;
      for (std::size_t x = 0; x < run; ++x) {
        const auto base = static_cast<double>(points[x].base);
        to.scale.push_back(static_cast<float>(std::ldexp(1.0, static_cast<int>(points[x].scale)) / kStep));
        for (std::size_t t = 0; t < taps.size(); ++t)
          distances.push_back(static_cast<float>((rows[t][x] - base) / kStep));
        distances.push_back(static_cast<float>((static_cast<double>(from[(first + x) * step]) / unit_ - base) / kStep));
      }
    }
  }

 private:
  static LevelsForm form() {
    LevelsForm levels;
    levels.levels = true;
    return levels;
  }
  static ConstBox3 box_of(const TrainingArray& array) {
    const auto& e = array.extents;
    return {array.values.data(), e, {e[1] * e[2], e[2]}, nullptr, {e[1] * e[2], e[2]}};
  }

  const TrainingArray& array_;
  LevelsView view_;
  double unit_;
  std::vector<std::uint8_t> memory_;
  std::optional<LevelGridOf<double>> grid_;
};

/// What a linear prediction fitted to these points leaves of them, large errors counting less, as the codec fits.
void add_left(const std::vector<float>& distances, std::size_t taps, std::vector<float>& left) {
  constexpr double kRidge = 1e-3;
  const std::size_t width = taps + 1;
  const std::size_t count = distances.size() / width;
  std::vector<double> rest(count);
  for (std::size_t i = 0; i < count; ++i) rest[i] = static_cast<double>(distances[i * width + taps]);
  std::array<double, SquareSums::kMost> fitted{};
  SquareSums sums;
  for (int round = 0; round < 3; ++round) {
    sums.clear(width);
    double total = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const float* const x = distances.data() + i * width;
      const double weight = 1 / (1 + 2 * std::fabs(rest[i]));
      total += weight;
      for (std::size_t k = 0; k < width; ++k)
        for (std::size_t l = 0; l <= k; ++l)
          sums.at(l, k) += weight * static_cast<double>(x[k]) * static_cast<double>(x[l]);
    }
    for (std::size_t k = 0; k < width; ++k) {
      sums.at(k, k) += kRidge * total;
      for (std::size_t l = 0; l < k; ++l) sums.at(k, l) = sums.at(l, k);
    }
    if (!solve_symmetric(sums, taps, fitted.data())) break;
    for (std::size_t i = 0; i < count; ++i) {
      const float* const x = distances.data() + i * width;
      rest[i] = static_cast<double>(x[taps]);
      for (std::size_t k = 0; k < taps; ++k) rest[i] -= fitted[k] * static_cast<double>(x[k]);
    }
  }
  for (const double r : rest) left.push_back(static_cast<float>(r));
}

/// Leaves out most of the points from `first` on that are predicted well.
void thin(ClassPoints& points, std::size_t first, std::mt19937_64& random) {
  const std::size_t width = points.taps + 1;
  std::size_t kept = first;
  for (std::size_t i = first; i < points.left.size(); ++i) {
    const bool well = std::fabs(points.left[i]) < kWell;
    if (well && random() % kKept != 0) continue;
    points.left[kept] = points.left[i];
    points.scale[kept] = points.scale[i];
    std::copy_n(points.inputs.begin() + static_cast<std::ptrdiff_t>(i * width), width,
                points.inputs.begin() + static_cast<std::ptrdiff_t>(kept * width));
    points.weight.push_back(well ? static_cast<float>(kKept) : 1.0F);
    ++kept;
  }
  points.left.resize(kept);
  points.scale.resize(kept);
  points.inputs.resize(kept * width);
}

}  // namespace

std::size_t long_axes(const TrainingArray& array) {
  return static_cast<std::size_t>(
      std::count_if(array.extents.begin(), array.extents.end(), [](std::uint64_t extent) { return extent > 1; }));
}

std::array<ClassPoints, 8> sample_points(const std::vector<TrainingArray>& arrays, const PointOptions& options) {
  std::mt19937_64 random(options.seed);
  std::array<ClassPoints, 8> classes;
  const std::size_t wanted = std::max<std::size_t>(options.points / arrays.size(), 1);
  for (const TrainingArray& array : arrays) {
    const FinestLevel level(array, options.bound * 2 * static_cast<double>(array.half_range));
    for (std::size_t c = 1; c < std::size_t{1} << level.axes().rank; ++c) {
      Vector<Offset> taps = network_taps(level.axes().rank, c);
      taps.resize(std::min(taps.size(), options.taps));
      classes[c].taps = taps.size();
      std::vector<float> distances;
      const std::size_t first = classes[c].left.size();
      level.sample(c, taps, wanted, random, classes[c], distances);
      add_left(distances, taps.size(), classes[c].left);
      thin(classes[c], first, random);
    }
  }
  return classes;
}

}  // namespace quern::codec::stencil::train
