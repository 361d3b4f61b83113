#include "codecs/stencil/plan/cuts.h"

#include <algorithm>
#include <cmath>

#include "codecs/stencil/elements.h"
#include "codecs/stencil/plan/sample_block.h"
#include "libcompress/core/buffer.h"

namespace quern::codec::stencil {
namespace {

constexpr std::uint64_t kFewestSliceElems = 256;  // of a slice that says anything
constexpr std::uint64_t kFewestPartElems = UINT64_C(1) << 12;
constexpr std::uint64_t kMostRows = 16;  // of a slice
constexpr std::uint64_t kMostColumns = 128;
constexpr std::uint64_t kFewestColumns = 8;
constexpr std::uint64_t kLookedAtShare = 8;
constexpr std::size_t kMostComponents = 16;  // slices of an axis that may be all unlike
constexpr std::size_t kMostCuts = 63;
// Differences count in sixteenths of codes: what a wide bound hides tells like from unlike, too.
constexpr double kFiner = 16;
constexpr double kCodeBits = 7;  // of a difference of one code, then
constexpr double kUnlikeBits = 1;
constexpr double kScaleBits = 2;

/// Some rows of every slice.
struct Window {
  std::uint64_t first = 0;
  ConstBox3 place;

  bool worth_it() const { return place.extents[2] >= kFewestColumns; }
};

Window window_of(const Shape& array) {
  const std::uint64_t slices = array[0];
  const std::uint64_t slice = array.elems() / slices;
  const std::uint64_t columns = array[array.rank() - 1];
  const std::uint64_t all_rows = slice / columns;
  std::uint64_t rows = std::min(all_rows, kMostRows);
  std::uint64_t wide = std::min(columns, kMostColumns);
  const std::uint64_t most = std::max<std::uint64_t>(array.elems() / kLookedAtShare, 1);
  while (rows > 1 && slices * rows * wide > most) rows /= 2;
  while (wide > 1 && slices * rows * wide > most) wide /= 2;
  const std::uint64_t step = all_rows / rows;
  Window window;
  window.first = step / 2 * columns + (columns - wide) / 2;
  window.place.extents = {slices, rows, wide};
  window.place.strides = {slice, step * columns};
  return window;
}

struct SliceBits {
  Vector<double> within;  ///< of each slice
  Vector<double> across;  ///< from each slice but the last to the next
  Vector<double> apart;   ///< the same, but to another place of the next: what slices that are unrelated have
};

template <class Element>
SliceBits slice_bits(const ConstBox3& box, double inverse) {
  using Bits = typename Element::Bits;
  const auto* const data = static_cast<const Bits*>(box.data);
  SliceBits found;
  for (std::uint64_t i = 0; i < box.extents[0]; ++i) {
    std::uint64_t within = 0;
    std::uint64_t across = 0;
    std::uint64_t apart = 0;
    const Bits* const slice = data + i * box.strides[0];
    const Bits* const following = i + 1 < box.extents[0] ? slice + box.strides[0] : slice;
    for (std::uint64_t j = 0; j < box.extents[1]; ++j) {
      const Bits* const row = slice + j * box.strides[1];
      const Bits* const next = following + j * box.strides[1];
      const Bits* const other = following + ((j + (box.extents[1] + 1) / 2) % box.extents[1]) * box.strides[1];
      for (std::uint64_t x = 1; x < box.extents[2]; ++x) {
        const double value = Element::value(row[x]);
        within += difference_bits(value, Element::value(row[x - 1]), inverse);
        across += difference_bits(value, Element::value(next[x]), inverse);
        const std::uint64_t far = (x + box.extents[2] / 2) % box.extents[2];
        apart += difference_bits(value, Element::value(other[far]), inverse);
      }
    }
    const auto count = static_cast<double>(box.extents[1] * (box.extents[2] - 1));
    found.within.push_back(static_cast<double>(within) / count);
    if (i + 1 == box.extents[0]) break;
    found.across.push_back(static_cast<double>(across) / count);
    found.apart.push_back(static_cast<double>(apart) / count);
  }
  return found;
}

/// For each place but the first, whether the slices on both sides are unlike, and whether that is sure.
struct UnlikePlaces {
  explicit UnlikePlaces(const SliceBits& bits) : unlike(bits.within.size(), false), sure(bits.within.size(), false) {
    const std::size_t slices = bits.within.size();
    const auto& across = bits.across;
    for (std::size_t i = 1; i < slices; ++i) {
      unlike[i] = across[i - 1] >= std::max(bits.within[i - 1], bits.within[i]) + kUnlikeBits &&
                  across[i - 1] >= bits.apart[i - 1] - kUnlikeBits;
      const double before = i > 1 ? across[i - 2] : 0;
      const double behind = i + 1 < slices ? across[i] : 0;
      const bool stands_out = across[i - 1] >= std::max(before, behind) + kUnlikeBits;
      sure[i] = unlike[i] && (stands_out || slices <= kMostComponents);
    }
    if (static_cast<std::size_t>(std::count(unlike.begin(), unlike.end(), true)) >= kMostComponents) unlike = sure;
  }

  Vector<bool> unlike;
  Vector<bool> sure;
};

/// Parts have some elements at least; a cut that leaves fewer before it is left out.
Vector<Cut> cuts_at(const SliceBits& bits, const UnlikePlaces& places, std::uint64_t fewest, bool by_scale) {
  const std::size_t slices = bits.within.size();
  Vector<Cut> cuts;
  std::size_t begin = 0;
  // Below a code scales make no difference.
  const auto coded_bits = [&](std::size_t i) { return std::max(bits.within[i], kCodeBits); };
  double sum = coded_bits(0);
  for (std::size_t i = 1; i < slices; ++i) {
    const double mean = sum / static_cast<double>(i - begin);
    const bool scale = by_scale && std::fabs(coded_bits(i) - mean) >= kScaleBits;
    if ((places.unlike[i] || scale) && i - begin >= fewest && slices - i >= fewest) {
      cuts.push_back({i, places.sure[i]});
      begin = i;
      sum = 0;
    }
    sum += coded_bits(i);
  }
  return cuts;
}

}  // namespace

Result<Vector<Cut>> propose_cuts(const PlanRequest& request) {
  const Shape& array = request.shape;
  if (array.rank() < 2 || array[0] < 2 || request.sample->elems() < array.elems()) return Vector<Cut>();
  const std::uint64_t slice = array.elems() / array[0];
  const Window window = window_of(array);
  if (slice < kFewestSliceElems || !window.worth_it()) return Vector<Cut>();
  AlignedBuffer room;
  QUERN_RETURN_IF_ERROR(room.resize(window.place.elems() * dtype_bytes(request.dtype)));
  QUERN_ASSIGN_OR_RETURN(const ConstBox3 box, request.sample->look(window.first, window.place, room.data(), nullptr));
  const SliceBits bits = with_element(request.dtype, [&](auto element) {
    return slice_bits<decltype(element)>(box, kFiner / (2 * request.bound.value));
  });
  const std::uint64_t fewest = (kFewestPartElems + slice - 1) / slice;
  const UnlikePlaces places(bits);
  for (const bool by_scale : {true, false}) {
    Vector<Cut> cuts = cuts_at(bits, places, fewest, by_scale);
    if (cuts.size() <= kMostCuts) return cuts;
  }
  return Vector<Cut>();
}

}  // namespace quern::codec::stencil
