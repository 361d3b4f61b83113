// Bins are worked out from the bits of binary32 numbers, in loops without branches: compilers make vector code of them.
#include "surrogate/residual_counts.h"

#include <algorithm>
#include <bit>

namespace quern::surrogate {
namespace {

constexpr std::uint64_t kGroup = 32;
constexpr std::uint64_t kPiece = 256;  // of a row, whose bins are worked out together

constexpr int kExponent = 23;  // where it begins in a binary32 number
constexpr std::int32_t kBias = 127;
constexpr std::int32_t kFraction = (1 << kExponent) - 1;
constexpr std::int32_t kRootOfTwo = 0x3504F4;  // the least fraction of a number that is no less, in a binary32 number

std::int32_t bits_of(float magnitude) { return std::bit_cast<std::int32_t>(magnitude); }

/// bin_of() of a magnitude.
std::int32_t bin_of_bits(std::int32_t bits) {
  const std::int32_t upper = ((bits & kFraction) + (kFraction + 1 - kRootOfTwo)) >> kExponent;
  return std::clamp(2 * ((bits >> kExponent) - kBias) + upper + kUnitBin, 0, kBins - 1);
}
/// Half of that.
std::int32_t octave_of_bits(std::int32_t bits) {
  return std::clamp((bits >> kExponent) - kBias + kUnitBin / 2, 0, JointCounts::kOctaves - 1);
}

/// Where a piece of a row lies, and what is before it.
struct Piece {
  std::size_t at = 0;
  std::size_t count = 0;
  std::size_t row = 0, plane = 0;  ///< distances to the row and the plane before; 0: there is none
};

using Cells = std::array<std::int32_t, kPiece>;

void find_cells(const float* magnitude, const Piece& piece, Cells& cells) {
  std::array<float, kPiece> around;
  const float* here = magnitude + piece.at;
  for (std::size_t x = 0; x < piece.count; ++x) around[x] = here[x - 1];
  for (const std::size_t distance : {piece.row, piece.plane}) {
    if (distance == 0) continue;
    for (std::size_t x = 0; x < piece.count; ++x) around[x] += here[x - distance];
  }
  const float share = 1.0F / static_cast<float>(1 + (piece.row != 0 ? 1 : 0) + (piece.plane != 0 ? 1 : 0));
  for (std::size_t x = 0; x < piece.count; ++x)
    cells[x] = octave_of_bits(bits_of(around[x] * share)) * kBins + bin_of_bits(bits_of(here[x]));
}

}  // namespace

void JointCounts::add(const JointCounts& other) {
  counts.resize(std::max(counts.size(), other.counts.size()));
  for (std::size_t i = 0; i < other.counts.size(); ++i) counts[i] += other.counts[i];
}

void JointCounts::add_up() {
  up_to.clear();
  bins.clear();
  if (counts.empty()) return;
  Counts sums{};
  for (int octave = 0; octave < kOctaves; ++octave) {
    BinRange range{kBins, 0};
    for (int bin = 0; bin < kBins; ++bin) {
      const std::uint32_t count = at(octave, bin);
      if (count == 0) continue;
      sums[static_cast<std::size_t>(bin)] += count;
      range = {std::min(range.begin, bin), bin + 1};
    }
    up_to.push_back(sums);
    bins.push_back(range);
  }
}

void take_magnitudes(const std::vector<double>& residual, const Triple& extents, const Inner& inner,
                     std::vector<float>& out) {
  out.resize(residual.size());
  if (inner.empty()) return;
  for (std::uint64_t z = inner.begin[0]; z < inner.end[0]; ++z)
    for (std::uint64_t y = inner.begin[1]; y < inner.end[1]; ++y) {
      const std::size_t row = (z * extents[1] + y) * extents[2];
      for (std::uint64_t x = inner.begin[2]; x < inner.end[2]; ++x)
        out[row + x] = static_cast<float>(residual[row + x] < 0 ? -residual[row + x] : residual[row + x]);
    }
}

void count_residuals(const SampleBlock& block, const std::vector<float>& magnitude, const Inner& inner,
                     JointCounts& joint) {
  joint.make_room();
  if (inner.empty()) return;
  const Triple& n = block.extents;
  std::uint32_t* const counts = joint.counts.data();
  Cells cells;
  for (std::uint64_t z = inner.begin[0]; z < inner.end[0]; ++z)
    for (std::uint64_t y = inner.begin[1]; y < inner.end[1]; ++y)
      for (std::uint64_t x = inner.begin[2] + 1; x < inner.end[2]; x += kPiece) {
        Piece piece;
        piece.at = (z * n[1] + y) * n[2] + x;
        piece.count = std::min(kPiece, inner.end[2] - x);
        if (y > inner.begin[1]) piece.row = n[2];
        if (z > inner.begin[0]) piece.plane = n[1] * n[2];
        find_cells(magnitude.data(), piece, cells);
        const std::uint8_t* const valid = block.valid.data() + piece.at;
        for (std::size_t i = 0; i < piece.count; ++i) counts[cells[i]] += valid[i];
      }
}

void count_groups(const SampleBlock& block, const std::vector<float>& magnitude, const Inner& inner, Counts& counts) {
  if (inner.empty()) return;
  const Triple& n = block.extents;
  for (std::uint64_t z = inner.begin[0]; z < inner.end[0]; ++z)
    for (std::uint64_t y = inner.begin[1]; y < inner.end[1]; ++y) {
      const std::size_t row = (z * n[1] + y) * n[2];
      for (std::uint64_t x = inner.begin[2]; x < inner.end[2]; x += kGroup) {
        std::int32_t most = 0;  // magnitudes are ordered as their bits are
        for (std::size_t i = row + x; i < row + std::min(x + kGroup, inner.end[2]); ++i)
          most = std::max(most, bits_of(magnitude[i]) & -static_cast<std::int32_t>(block.valid[i]));
        ++counts[static_cast<std::size_t>(bin_of_bits(most))];
      }
    }
}

}  // namespace quern::surrogate
