// The mini-blocks that stage 1 reads: where they lie, and their values as fractions of the range.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include <quern/array.h>
#include <quern/compress.h>

namespace quern::surrogate {

using Triple = std::array<std::uint64_t, 3>;

/// What blocks there are of an array of more than kWhole values: their extents in volumes of one, two and three axes, and
/// how many values they hold together at least.
struct BlockSizes {
  std::array<Triple, 3> of_rank;
  std::uint64_t sampled;
};
inline constexpr std::uint64_t kWhole = UINT64_C(1) << 18;
inline constexpr BlockSizes kFeatureBlocks{{{{1, 1, 4096}, {1, 64, 128}, {16, 24, 32}}}, UINT64_C(3) << 15};

/// An array as volumes of up to three axes, slowest first, and the boxes of them that are sampled. An array of at most
/// kWhole values is sampled whole.
struct SamplePlan {
  explicit SamplePlan(const Shape& shape, const BlockSizes& sizes = kFeatureBlocks);

  unsigned rank = 1;  ///< axes of a volume that are longer than 1: 1 to 3
  std::uint64_t volumes = 1;
  Triple extents{1, 1, 1};  ///< of a volume
  Triple block{1, 1, 1};
  std::uint64_t blocks = 0;

  std::uint64_t sampled() const { return blocks * block[0] * block[1] * block[2]; }
  /// The element at which sample block `i` begins.
  std::uint64_t begin(std::uint64_t i) const;
};

/// One block in memory. `valid` is 0 where the element is NaN, infinite or a fill value; there, `values` repeats the
/// valid value before it.
struct SampleBlock {
  Triple extents{1, 1, 1};
  std::vector<double> values;  ///< (x - middle) / range
  std::vector<std::uint8_t> valid;
  std::uint64_t specials = 0;
  std::uint64_t repeats = 0;  ///< valid elements equal to the one before them in their row
  std::uint64_t zeros = 0;    ///< valid elements equal to 0

  std::uint64_t elems() const { return extents[0] * extents[1] * extents[2]; }
};

struct Scale {
  double middle = 0;
  double range = 1;
};

/// Of an array's valid values; the differences of none of them overflow.
Scale scale_of(const ValueRange& range);

/// Reads block `i`. `plan` is of the array's shape.
void load_block(const ArrayView& array, const SamplePlan& plan, std::uint64_t i,
                std::span<const std::uint64_t> fill_bits, const Scale& scale, SampleBlock& out);

}  // namespace quern::surrogate
