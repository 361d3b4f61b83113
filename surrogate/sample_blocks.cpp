// Places are spread by multiples of irrational numbers, so that no block lies where only its like lie.
#include "surrogate/sample_blocks.h"

#include <algorithm>
#include <cmath>

#include "libcompress/core/scattered_sample.h"
#include "libcompress/pipeline/elements.h"

namespace quern::surrogate {
namespace {

/// Axes longer than 1, slowest first; runs of short ones at the end are joined, since no predictor fits in them.
std::vector<std::uint64_t> long_axes(const Shape& shape) {
  constexpr std::uint64_t kShort = 4;
  std::vector<std::uint64_t> axes;
  for (const std::uint64_t extent : shape.extents())
    if (extent != 1) axes.push_back(extent);
  while (axes.size() > 1 && axes.back() < kShort && axes[axes.size() - 2] < 8 * kShort) {
    const std::uint64_t last = axes.back();
    axes.pop_back();
    axes.back() *= last;
  }
  return axes;
}

}  // namespace

SamplePlan::SamplePlan(const Shape& shape, const BlockSizes& sizes) {
  const std::uint64_t elems = shape.elems();
  const std::vector<std::uint64_t> axes = long_axes(shape);
  rank = static_cast<unsigned>(std::clamp<std::size_t>(axes.size(), 1, 3));
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::size_t from_end = axes.size() - i;
    if (from_end > 3) {
      volumes *= axes[i];
    } else {
      extents[3 - from_end] = axes[i];
    }
  }
  if (elems == 0) {
    volumes = 0;
    extents = {0, 0, 0};
    return;
  }
  const bool whole = elems <= kWhole;
  for (std::size_t a = 0; a < 3; ++a) block[a] = whole ? extents[a] : std::min(extents[a], sizes.of_rank[rank - 1][a]);
  const std::uint64_t one = block[0] * block[1] * block[2];
  blocks = whole ? volumes : (sizes.sampled + one - 1) / one;
}

std::uint64_t SamplePlan::begin(std::uint64_t i) const {
  const std::uint64_t volume = scattered_sample(volumes, std::min(blocks, volumes), i % std::min(blocks, volumes));
  std::uint64_t at = volume;
  for (std::size_t a = 0; a < 3; ++a) at = at * extents[a] + scattered_box_place(extents[a] - block[a] + 1, a, i);
  return at;
}

Scale scale_of(const ValueRange& range) {
  Scale scale{range.min / 2 + range.max / 2, range.max - range.min};
  if (!std::isfinite(scale.range)) scale.range = range.max / 2 - range.min / 2;
  return scale;
}

void load_block(const ArrayView& array, const SamplePlan& plan, std::uint64_t i,
                std::span<const std::uint64_t> fill_bits, const Scale& scale, SampleBlock& out) {
  out.extents = plan.block;
  out.values.resize(out.elems());
  out.valid.resize(out.elems());
  out.specials = out.repeats = out.zeros = 0;
  const double factor = scale.range > 0 ? 1 / scale.range : 0;
  const std::uint64_t begin = plan.begin(i);
  with_element(array.dtype, [&](auto element) {
    using Element = decltype(element);
    const auto* data = static_cast<const std::uint8_t*>(array.data);
    double last = 0;
    std::size_t at = 0;
    for (std::uint64_t z = 0; z < out.extents[0]; ++z)
      for (std::uint64_t y = 0; y < out.extents[1]; ++y) {
        const std::uint64_t row = begin + (z * plan.extents[1] + y) * plan.extents[2];
        for (std::uint64_t x = 0; x < out.extents[2]; ++x, ++at) {
          const auto bits = load_bits<Element>(data, row + x);
          const bool valid = is_valid<Element>(bits, fill_bits);
          if (valid) {
            const double value = Element::value(bits);
            const double scaled = (value - scale.middle) * factor;
            if (x != 0 && scaled == last) ++out.repeats;
            if (value == 0) ++out.zeros;
            last = scaled;
          } else {
            ++out.specials;
          }
          out.values[at] = last;
          out.valid[at] = valid ? 1 : 0;
        }
      }
  });
}

}  // namespace quern::surrogate
