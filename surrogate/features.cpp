// Two passes over the sample blocks: moments, from which weights are fitted; then residuals. A fixed number of tasks
// count each into tables of their own, which are added up in order.
#include "surrogate/features.h"

#include <algorithm>
#include <new>
#include <optional>

#include "libcompress/core/run_tasks.h"
#include "libcompress/core/scattered_sample.h"
#include "libcompress/core/task_runner.h"
#include "libcompress/pipeline/elements.h"
#include "surrogate/closed_form.h"
#include "surrogate/fit.h"
#include "surrogate/sample_blocks.h"

namespace quern::surrogate {
namespace {

constexpr std::uint64_t kTasks = 16;

double magnitude_of(double x) { return x < 0 ? -x : x; }

/// What one task has counted.
struct Tally {
  Features counts;
  Moments causal, between;
  std::array<std::uint64_t, 4> pairs{};
};

/// Deviations of windows as structural similarity takes them, at every fourth place of each axis.
void count_deviations(const SampleBlock& block, Counts& counts) {
  const Triple& n = block.extents;
  Triple w{};
  for (std::size_t a = 0; a < 3; ++a) w[a] = std::min<std::uint64_t>(n[a], 7);
  const double elems = static_cast<double>(w[0] * w[1] * w[2]);
  for (std::uint64_t z = 0; z + w[0] <= n[0]; z += 4)
    for (std::uint64_t y = 0; y + w[1] <= n[1]; y += 4)
      for (std::uint64_t x = 0; x + w[2] <= n[2]; x += 4) {
        double sum = 0;
        double squares = 0;
        bool valid = true;
        const double shift = block.values[(z * n[1] + y) * n[2] + x];
        for (std::uint64_t dz = 0; dz < w[0]; ++dz)
          for (std::uint64_t dy = 0; dy < w[1]; ++dy)
            for (std::uint64_t dx = 0; dx < w[2]; ++dx) {
              const std::size_t i = ((z + dz) * n[1] + y + dy) * n[2] + x + dx;
              const double v = block.values[i] - shift;
              valid = valid && block.valid[i] != 0;
              sum += v;
              squares += v * v;
            }
        if (!valid) continue;
        const double variance = std::max(squares - sum * sum / elems, 0.0) / elems;
        ++counts[static_cast<std::size_t>(bin_of(sqrt_of(variance)))];
      }
}

void add_variogram(const SampleBlock& block, Tally& tally) {
  const Triple& n = block.extents;
  for (std::size_t k = 0; k < 4; ++k) {
    const std::uint64_t lag = UINT64_C(1) << k;
    double sum = 0;
    std::uint64_t pairs = 0;
    for (std::uint64_t row = 0; row < n[0] * n[1]; ++row)
      for (std::uint64_t x = lag; x < n[2]; ++x) {
        const std::size_t i = row * n[2] + x;
        if (block.valid[i] == 0 || block.valid[i - lag] == 0) continue;
        const double d = block.values[i] - block.values[i - lag];
        sum += d * d;
        ++pairs;
      }
    tally.counts.variogram[k] += sum;
    tally.pairs[k] += pairs;
  }
}

/// The residual of an element from neighbours `stride` and 3 * stride away, averaged over the axes that have them;
/// nothing where none has.
template <class Element>
std::optional<double> coarse_residual(const std::uint8_t* data, const SamplePlan& plan, const Triple& place,
                                      std::uint64_t volume, std::uint64_t stride,
                                      std::span<const std::uint64_t> fill_bits) {
  const auto value_at = [&](std::uint64_t at) -> std::optional<double> {
    const auto bits = load_bits<Element>(data, at);
    if (!is_valid<Element>(bits, fill_bits)) return std::nullopt;
    return Element::value(bits);
  };
  const Triple& n = plan.extents;
  const Triple strides{n[1] * n[2], n[2], 1};
  const std::uint64_t middle = ((volume * n[0] + place[0]) * n[1] + place[1]) * n[2] + place[2];
  const std::optional<double> here = value_at(middle);
  if (!here) return std::nullopt;
  double sum = 0;
  unsigned axes = 0;
  for (std::size_t a = 0; a < 3; ++a) {
    if (place[a] < stride || place[a] + stride >= plan.extents[a]) continue;
    const bool cubic = place[a] >= 3 * stride && place[a] + 3 * stride < plan.extents[a];
    double predicted = 0;
    bool valid = true;
    for (const std::uint64_t distance : {stride, 3 * stride}) {
      if (distance != stride && !cubic) continue;
      const double weight = !cubic ? 0.5 : distance == stride ? 9.0 / 16 : -1.0 / 16;
      for (const bool after : {false, true}) {
        const std::uint64_t away = distance * strides[a];
        const std::optional<double> value = value_at(after ? middle + away : middle - away);
        valid = valid && value.has_value();
        predicted += weight * value.value_or(0);
      }
    }
    if (!valid) continue;
    sum += predicted;
    ++axes;
  }
  if (axes == 0) return std::nullopt;
  return *here - sum / axes;
}

class Extraction {
 public:
  Extraction(const ArrayView& array, const ValueRange& range, std::span<const std::uint64_t> fill_bits)
      : array_(array),
        fill_bits_(fill_bits),
        plan_(array.shape),
        scale_(scale_of(range)),
        tasks_(std::min(kTasks, plan_.blocks)) {
    taps_ = fixed_taps(plan_.rank, plan_.block);
  }

  Status run(TaskRunner& runner, Features& out) {
    std::vector<Tally> tallies(tasks_);
    QUERN_RETURN_IF_ERROR(run_tasks(runner, tasks_, [&](std::size_t task) {
      each_block(task, [&](const SampleBlock& block, Room& room) { gather_moments(block, room, tallies[task]); });
      return Status();
    }));
    fit(tallies);
    QUERN_RETURN_IF_ERROR(run_tasks(runner, tasks_, [&](std::size_t task) {
      each_block(task, [&](const SampleBlock& block, Room& room) { count(block, room, tallies[task]); });
      count_coarse(task, tallies[task]);
      return count_bytes(task, tallies[task]);
    }));
    fold(tallies, out);
    return {};
  }

 private:
  /// What a task works in.
  struct Room {
    std::vector<double> residual;
    std::vector<float> magnitude;
  };

  template <class Use>
  void each_block(std::size_t task, const Use& use) const {
    SampleBlock block;
    Room room;
    for (std::uint64_t i = task; i < plan_.blocks; i += tasks_) {
      load_block(array_, plan_, i, fill_bits_, scale_, block);
      use(block, room);
    }
  }

  void gather_moments(const SampleBlock& block, Room& room, Tally& tally) const {
    std::vector<double>& activity = room.residual;
    const Inner known = inner_box(taps_[kLorenzo], block.extents);
    residuals(block, taps_[kLorenzo], known, activity);
    add_moments(block, causal_neighbours(plan_.rank, block.extents), activity, known, tally.causal);
    add_moments(block, neighbours_between(plan_.rank, block.extents), activity, known, tally.between);
  }

  void fit(const std::vector<Tally>& tallies) {
    Moments causal;
    Moments between;
    for (const Tally& tally : tallies) {
      causal.add(tally.causal);
      between.add(tally.between);
    }
    const Taps before = causal_neighbours(plan_.rank, plan_.block);
    taps_[kFitFine] = fitted(before, causal, 0x1p-16);
    taps_[kFitMiddle] = fitted(before, causal, 0x1p-11);
    taps_[kFitCoarse] = fitted(before, causal, 0x1p-7);
    taps_[kFitBetween] = fitted(neighbours_between(plan_.rank, plan_.block), between, 0x1p-10);
  }

  void count(const SampleBlock& block, Room& room, Tally& tally) const {
    tally.counts.sampled += block.elems();
    tally.counts.specials += block.specials;
    tally.counts.repeats += block.repeats;
    tally.counts.zeros += block.zeros;
    for (std::size_t p = 0; p < kPredictors; ++p) {
      if (p >= kCubic8 || (taps_[p].empty() && p != kValue)) continue;
      const Inner inner = inner_box(taps_[p], block.extents);
      residuals(block, taps_[p], inner, room.residual);
      take_magnitudes(room.residual, block.extents, inner, room.magnitude);
      count_residuals(block, room.magnitude, inner, tally.counts.residuals[p]);
      for (std::size_t g = 0; g < kGroupPredictors.size(); ++g)
        if (kGroupPredictors[g] == p) count_groups(block, room.magnitude, inner, tally.counts.groups[g]);
    }
    count_deviations(block, tally.counts.deviations);
    add_variogram(block, tally);
  }

  /// Of the blocks' elements as they are stored.
  Status count_bytes(std::size_t task, Tally& tally) const {
    tally.counts.bytes.resize(8 * 256);
    const std::size_t size = dtype_bytes(array_.dtype);
    const auto* data = static_cast<const std::uint8_t*>(array_.data);
    for (std::uint64_t i = task; i < plan_.blocks; i += tasks_) {
      const std::uint64_t begin = plan_.begin(i);
      for (std::uint64_t r = 0; r < plan_.block[0] * plan_.block[1]; ++r) {
        const std::uint64_t row =
            begin + (r / plan_.block[1] * plan_.extents[1] + r % plan_.block[1]) * plan_.extents[2];
        for (std::uint64_t x = 0; x < plan_.block[2]; ++x)
          for (std::size_t b = 0; b < size; ++b) ++tally.counts.bytes[b * 256 + data[(row + x) * size + b]];
      }
    }
    return {};
  }

  /// Residuals at strides that no block holds, at places all over the array.
  void count_coarse(std::size_t task, Tally& tally) const {
    constexpr std::uint64_t kPlaces = 4096;
    const double factor = scale_.range > 0 ? 1 / scale_.range : 0;
    with_element(array_.dtype, [&](auto element) {
      using Element = decltype(element);
      const auto* data = static_cast<const std::uint8_t*>(array_.data);
      for (std::size_t p = kCubic8; p <= kCubic64; ++p) {
        const std::uint64_t stride = UINT64_C(8) << (p - kCubic8);
        JointCounts& joint = tally.counts.residuals[p];
        for (std::uint64_t i = task; i < kPlaces; i += tasks_) {
          Triple place{};
          for (std::size_t a = 0; a < 3; ++a) place[a] = scattered_box_place(plan_.extents[a], a, i);
          const std::uint64_t volume = scattered_box_place(plan_.volumes, 3, i);
          const auto found = coarse_residual<Element>(data, plan_, place, volume, stride, fill_bits_);
          if (!found) continue;
          joint.make_room();
          ++joint.at(0, bin_of(magnitude_of(*found * factor)));
        }
      }
    });
  }

  void fold(const std::vector<Tally>& tallies, Features& out) const {
    std::array<std::uint64_t, 4> pairs{};
    out.bytes.resize(8 * 256);
    for (const Tally& tally : tallies) {
      const Features& in = tally.counts;
      out.sampled += in.sampled;
      out.specials += in.specials;
      out.repeats += in.repeats;
      out.zeros += in.zeros;
      for (std::size_t p = 0; p < kPredictors; ++p) out.residuals[p].add(in.residuals[p]);
      for (std::size_t g = 0; g < out.groups.size(); ++g)
        for (std::size_t i = 0; i < kBins; ++i) out.groups[g][i] += in.groups[g][i];
      for (std::size_t i = 0; i < kBins; ++i) out.deviations[i] += in.deviations[i];
      for (std::size_t i = 0; i < in.bytes.size(); ++i) out.bytes[i] += in.bytes[i];
      for (std::size_t k = 0; k < 4; ++k) {
        out.variogram[k] += in.variogram[k];
        pairs[k] += tally.pairs[k];
      }
    }
    for (std::size_t k = 0; k < 4; ++k)
      if (pairs[k] != 0) out.variogram[k] /= static_cast<double>(pairs[k]);
    for (std::size_t p = 0; p < kPredictors; ++p) {
      out.residuals[p].noise_gain = p >= kCubic8 ? 0.64 / plan_.rank : noise_gain(taps_[p]);
      out.residuals[p].add_up();
    }
    out.rank = plan_.rank;
  }

  ArrayView array_;
  std::span<const std::uint64_t> fill_bits_;
  SamplePlan plan_;
  Scale scale_;
  std::uint64_t tasks_;
  std::array<Taps, kPredictors> taps_;
};

}  // namespace

Result<Features> extract_features(const ArrayView& array, const std::optional<ValueRange>& range,
                                  std::span<const std::uint64_t> fill_bits, const Registry& registry,
                                  const Execution& execution) {
  Features out;
  out.dtype = array.dtype;
  out.shape = array.shape;
  if (range) {
    out.range = std::min(range->max - range->min, 1e308);
    out.magnitude = std::max(magnitude_of(range->min), magnitude_of(range->max));
  }
  if (array.elems() == 0) return out;
  try {
    RunnerHandle runner(execution);
    const ValueRange known = range.value_or(ValueRange{});
    QUERN_RETURN_IF_ERROR(Extraction(array, known, fill_bits).run(runner.get(), out));
    out.byte_bits = byte_entropy(out);
    QUERN_ASSIGN_OR_RETURN(out.lorenzo, lorenzo_curve(array, known, fill_bits, registry, runner.get()));
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::out_of_memory, "out of memory");
  }
  return out;
}

}  // namespace quern::surrogate
