// Streams are made in memory and counted.
#include "surrogate/codec_curve.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <optional>
#include <string>

#include <quern/memory.h>
#include <quern/stream_io.h>

#include "libcompress/core/run_tasks.h"
#include "surrogate/numbers.h"
#include "surrogate/sample_blocks.h"

namespace quern::surrogate {
namespace {

/// Bounds are 2^-octave of the range.
constexpr int kAllOctaves[] = {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 18, 20, 23};
constexpr int kOctavesOfSamples[] = {2, 3, 4, 5, 6, 8, 10, 13, 16, 20};
constexpr int kMiddleOctave = 10;
/// Whole tiles (docs/format-lorenzo.md 2) of the layouts that split an array's last axes as these blocks do. Other layouts
/// of the array have no counterpart in the copy: `1d` and `2d:1` of the copy put other values into a row than those of the
/// array do, so where they are the smallest the copy does not show by how much.
constexpr BlockSizes kTileBlocks{{{{1, 1, 1024}, {1, 32, 128}, {4, 32, 32}}}, UINT64_C(1) << 16};

/// What is encoded: the array itself, or a copy of blocks of it.
struct Sample {
  Vector<std::uint8_t> copy;
  ArrayView array;
  std::uint64_t whole_elems = 0;  ///< of the array that it stands for; 0: it is the array
  std::string layout = "auto";
};

/// Blocks one after another along the slowest axis of a block.
void gather(const ArrayView& array, const SamplePlan& plan, Sample& out) {
  const std::size_t size = dtype_bytes(array.dtype);
  const auto* data = static_cast<const std::uint8_t*>(array.data);
  const Triple& b = plan.block;
  out.copy.resize(plan.sampled() * size);
  std::uint8_t* to = out.copy.data();
  for (std::uint64_t i = 0; i < plan.blocks; ++i)
    for (std::uint64_t r = 0; r < b[0] * b[1]; ++r, to += b[2] * size)
      std::memcpy(to, data + (plan.begin(i) + (r / b[1] * plan.extents[1] + r % b[1]) * plan.extents[2]) * size,
                  b[2] * size);
  Triple extents = b;
  extents[3 - plan.rank] *= plan.blocks;
  const std::span<const std::uint64_t> axes(extents);
  out.array = {out.copy.data(), array.dtype, *Shape::try_make(axes.subspan(3 - plan.rank))};
  out.whole_elems = array.elems();
}

struct Bound {
  ErrorBound bound;
  double half_width = 0;  ///< of the quantizer's steps, in the array's units
};

/// Integers keep to whole bounds. The bounds of small ranges coincide.
std::vector<Bound> bounds_of(DType dtype, double range, std::span<const int> octaves) {
  std::vector<Bound> out;
  for (const int octave : octaves) {
    double value = std::ldexp(range, -octave);
    double half_width = value;
    if (!is_float(dtype)) {
      value = std::floor(std::min(value, 0x1p62));
      half_width = value + 0.5;
    }
    if (!out.empty() && out.back().half_width == half_width) continue;
    if (value > 0) {
      out.push_back({{BoundKind::abs, value}, half_width});
    } else if (half_width > 0) {
      out.push_back({{BoundKind::lossless, 0.0}, half_width});
    }
  }
  return out;
}

/// Bytes of the sample's stream, and of its header.
struct Size {
  std::uint64_t stream = 0;
  std::uint64_t header = 0;
};

/// Counts a stream, and keeps its beginning.
class CountingSink final : public ByteSink {
 public:
  Status write(std::span<const std::uint8_t> bytes) override {
    count_ += bytes.size();
    const std::size_t kept = std::min(bytes.size(), kKept - begin_.size());
    begin_.insert(begin_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(kept));
    return {};
  }
  std::uint64_t count() const { return count_; }
  std::span<const std::uint8_t> begin() const { return begin_; }

 private:
  static constexpr std::size_t kKept = 4096;  // no header here is longer: there is no metadata
  Vector<std::uint8_t> begin_;
  std::uint64_t count_ = 0;
};

Result<Size> encoded_size(const Sample& sample, const std::string& layout, const ErrorBound& bound,
                          std::span<const std::uint64_t> fill_bits, const Registry& registry) {
  CompressOptions options;
  options.codec = "lorenzo";
  options.bound = bound;
  options.settings.emplace_back("layout", layout);
  options.fill_bits.assign(fill_bits.begin(), fill_bits.end());
  CountingSink sink;
  const auto made = compress(sample.array, options, registry, Execution{}, sink);
  if (!made.ok()) return made.status();
  MemorySource source(sink.begin());
  QUERN_ASSIGN_OR_RETURN(const StreamInfo info, inspect(source, registry));
  return Size{sink.count(), info.header_bytes};
}

/// Of the whole array: what a stream has once is counted once.
double bits_of(const Size& size, const Sample& sample) {
  const double elems = static_cast<double>(sample.array.elems());
  if (sample.whole_elems == 0) return 8 * static_cast<double>(size.stream) / elems;
  return 8 * (static_cast<double>(size.stream - size.header) / elems +
              static_cast<double>(size.header) / static_cast<double>(sample.whole_elems));
}

/// The layout of the fewest bytes, to be kept at all bounds: of a copy, choosing takes longer than encoding. Three are tried
/// of those that the codec may choose for the array: `1d`, the last two axes, the last three.
Status choose_layout(Sample& sample, const Bound& at, std::span<const std::uint64_t> fill_bits,
                     const Registry& registry) {
  const std::size_t rank = sample.array.shape.rank();
  const std::array<const char*, 3> layouts{"1d", rank == 2 ? "2d:1" : "2d:2", "3d:1,2"};
  std::uint64_t least = UINT64_MAX;
  for (std::size_t i = 0; i < rank; ++i) {
    QUERN_ASSIGN_OR_RETURN(const Size size, encoded_size(sample, layouts[i], at.bound, fill_bits, registry));
    if (size.stream >= least) continue;
    least = size.stream;
    sample.layout = layouts[i];
  }
  return {};
}

/// Bounds that the codec refuses have no size. Fails with out_of_memory alone.
Status encode_all(const Sample& sample, std::span<const Bound> bounds, std::span<const std::uint64_t> fill_bits,
                  const Registry& registry, TaskRunner& runner, std::vector<std::optional<Size>>& sizes) {
  sizes.assign(bounds.size(), std::nullopt);
  return run_tasks(runner, bounds.size(), [&](std::size_t i) -> Status {
    const Result<Size> size = encoded_size(sample, sample.layout, bounds[i].bound, fill_bits, registry);
    if (size.ok()) sizes[i] = *size;
    return size.status().code() == StatusCode::out_of_memory ? size.status() : Status();
  });
}

}  // namespace

Result<std::vector<CurvePoint>> lorenzo_curve(const ArrayView& array, const ValueRange& range,
                                              std::span<const std::uint64_t> fill_bits, const Registry& registry,
                                              TaskRunner& runner) {
  std::vector<CurvePoint> out;
  const double width = range.max - range.min;
  if (array.elems() == 0 || registry.by_name("lorenzo") == nullptr || !(width > 0) || !std::isfinite(width)) return out;
  const SamplePlan plan(array.shape, kTileBlocks);
  const bool whole = plan.sampled() >= array.elems();
  const std::vector<Bound> bounds =
      bounds_of(array.dtype, width, whole ? std::span<const int>(kAllOctaves) : kOctavesOfSamples);
  Sample sample;
  sample.array = array;
  Status status;
  if (!whole) {
    gather(array, plan, sample);
    const auto middle = bounds_of(array.dtype, width, {&kMiddleOctave, 1});
    if (!middle.empty()) status = choose_layout(sample, middle.front(), fill_bits, registry);
  }
  if (status.code() == StatusCode::out_of_memory) return status;
  if (!status.ok()) return out;
  std::vector<std::optional<Size>> sizes;
  QUERN_RETURN_IF_ERROR(encode_all(sample, bounds, fill_bits, registry, runner, sizes));
  for (std::size_t i = 0; i < bounds.size(); ++i)
    if (sizes[i]) out.push_back({log2_of(bounds[i].half_width / width), log2_of(bits_of(*sizes[i], sample))});
  return out;
}

std::uint64_t lorenzo_sampled(const Shape& shape) {
  const std::uint64_t sampled = SamplePlan(shape, kTileBlocks).sampled();
  return sampled >= shape.elems() ? 0 : sampled;
}

double log_bits_at(std::span<const CurvePoint> curve, double log_bound, std::optional<double> most_bits) {
  for (std::size_t i = 0; i < curve.size(); ++i) {
    if (log_bound < curve[i].log_bound) continue;
    if (i == 0) break;
    const double part = (log_bound - curve[i].log_bound) / (curve[i - 1].log_bound - curve[i].log_bound);
    return curve[i].log_bits + part * (curve[i - 1].log_bits - curve[i].log_bits);
  }
  if (log_bound >= curve.front().log_bound) return curve.front().log_bits;
  const CurvePoint& last = curve.back();
  if (!most_bits) return last.log_bits;
  const double bits = exp2_of(last.log_bits) + last.log_bound - log_bound;
  return std::max(last.log_bits, log2_of(std::min(bits, *most_bits)));
}

}  // namespace quern::surrogate
