// Head, planes and classes of masks coded by levels.
#include "libcompress/pipeline/mask/level_codec.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <exception>
#include <new>
#include <type_traits>
#include <utility>

#include "kernels/mask/levels/choice.h"
#include "kernels/mask/levels/head.h"
#include "kernels/mask/levels/rim.h"
#include "kernels/mask/walk.h"
#include "libcompress/pipeline/mask/level_plane.h"

namespace quern::mask {
namespace {

/// What both sides know of a mask before its cells.
struct LevelShape {
  kernels::MaskPlanes planes;
  std::uint64_t distance = 1;
  kernels::MaskAlphabet alphabet;
  bool beside_rim = false;
};

/// Number of a class without the first: specials from 0 on, verbatim last.
unsigned class_number(std::uint8_t c, const kernels::MaskAlphabet& alphabet) {
  return c == kVerbatimClass ? alphabet.size() - 2 : c - 1U;
}

Vector<std::uint64_t> masked_bits(std::span<const std::uint8_t> classes) {
  Vector<std::uint64_t> packed(classes.size() / 64 + 2);
  kernels::pack_bits(classes.data(), classes.size(), packed.data());
  return packed;
}

/// Bit j of the numbers of the masked cells' classes, packed. `packed`: which are masked.
Vector<std::uint64_t> number_bits(std::span<const std::uint8_t> classes, const Vector<std::uint64_t>& packed,
                                  const kernels::MaskAlphabet& alphabet, unsigned j) {
  std::array<std::uint8_t, 256> bit_of{};
  for (unsigned c = 1; c < alphabet.size() - 1; ++c) bit_of[c] = static_cast<std::uint8_t>((c - 1) >> j & 1);
  const std::uint8_t last = alphabet.last_class();
  bit_of[last] = static_cast<std::uint8_t>(class_number(last, alphabet) >> j & 1);
  Vector<std::uint64_t> bits(packed.size());
  for (std::size_t k = 0; k < bits.size(); ++k) {
    std::uint64_t word = 0;
    for (std::uint64_t left = packed[k]; left != 0; left &= left - 1) {
      const int x = std::countr_zero(left);
      word |= std::uint64_t{bit_of[classes[64 * k + static_cast<unsigned>(x)]]} << x;
    }
    bits[k] = word;
  }
  return bits;
}

/// Cells of a mask in rows, by packed bits.
auto rows_of(const Vector<std::uint64_t>& packed, std::uint64_t cells, std::uint64_t cols) {
  return kernels::MaskRows(kernels::MaskBits([words = packed.data()](std::uint64_t k) { return words[k]; }), cells,
                           cols);
}

/// What bit j of the numbers costs.
kernels::LevelClassCost class_cost(const Vector<std::uint64_t>& packed, const Vector<std::uint64_t>& numbers,
                                   std::uint64_t cells, std::uint64_t cols) {
  const auto rows = rows_of(packed, cells, cols);
  const kernels::MaskBits bits([words = numbers.data()](std::uint64_t k) { return words[k]; });
  kernels::LevelClassCost sum;
  for (std::uint64_t y = 0; y < rows.rows(); ++y) {
    for (std::uint64_t k = 0; k < rows.along(); ++k)
      sum += kernels::level_class_cost(rows, y, k, [&](std::uint64_t at) { return bits.window(at); });
  }
  return sum;
}

/// Cells [at, at + 64) of packed bits.
std::uint64_t window(const Vector<std::uint64_t>& packed, std::uint64_t at) {
  return kernels::MaskBits([&](std::uint64_t k) { return packed[k]; }).window(at);
}

/// Codes positions, then classes. `classes`: one a cell; read by an encoder, written by a decoder.
template <class Coder>
class LevelMaskWalk {
 public:
  using Classes = std::conditional_t<Coder::kDecodes, Vector<std::uint8_t>, const Vector<std::uint8_t>>;

  /// `packed`: which cells are masked; a decoder's are 0.
  LevelMaskWalk(Coder& coder, const LevelShape& shape, Vector<std::uint64_t> packed)
      : coder_(coder), shape_(shape), cells_(shape.planes.cells), packed_(std::move(packed)) {}

  std::uint64_t masked() const {
    std::uint64_t sum = 0;
    for (const std::uint64_t word : packed_) sum += static_cast<std::uint64_t>(std::popcount(word));
    return sum;
  }

  bool run(Classes& classes) {
    if (!positions()) return false;
    if (shape_.alphabet.size() > 2) return classes_of(classes);
    if constexpr (Coder::kDecodes) unpack(packed_, shape_.alphabet.last_class(), classes);
    return true;
  }

 private:
  std::uint64_t cells_of(std::uint64_t plane) const { return shape_.planes.rows_of(plane) * shape_.planes.cols; }
  std::uint64_t reference_of(std::uint64_t plane) const { return kernels::reference_plane(plane, shape_.distance); }
  std::uint64_t first_cell(std::uint64_t plane) const { return plane * shape_.planes.plane_cells(); }

  bool positions() {
    const std::uint64_t count = shape_.planes.count();
    LevelTables tables;
    Vector<std::uint8_t> differs(count, 1);
    LevelList list;
    list.make_room(1, false);
    for (std::uint64_t i = 1; i < count; ++i) {
      list.clear();
      list.add(kernels::level_contexts::kDiffers + (i == 1 ? 0U : differs[i - 1]),
               !Coder::kDecodes && is_other(i) ? 1 : 0);
      coder_.code(tables, list);
      differs[i] = list.symbols[0];
    }
    LevelPlaneWalk<Coder> walk(coder_, tables);
    LevelBits plane, reference;
    for (std::uint64_t i = 0; i < count; ++i) {
      if (differs[i] == 0) {
        if (Coder::kDecodes) copy(first_cell(reference_of(i)), first_cell(i), cells_of(i));
        continue;
      }
      LevelSurroundings beside;
      plane.resize(shape_.planes.rows_of(i), shape_.planes.cols);
      if (!Coder::kDecodes) load(packed_, first_cell(i), plane);
      if (i > 0) {
        reference.resize(plane.rows(), plane.cols());
        load(packed_, first_cell(reference_of(i)), reference);
        beside.reference = &reference;
      }
      if (!walk.plane(plane, beside)) return false;
      if (Coder::kDecodes) store(plane, first_cell(i), packed_);
    }
    return coder_.good();
  }

  bool is_other(std::uint64_t plane) const {
    const std::uint64_t a = first_cell(plane), b = first_cell(reference_of(plane)), n = cells_of(plane);
    for (std::uint64_t at = 0; at < n; at += 64) {
      const std::uint64_t wanted = n - at >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << (n - at)) - 1;
      if (((window(packed_, a + at) ^ window(packed_, b + at)) & wanted) != 0) return true;
    }
    return false;
  }
  static void load(const Vector<std::uint64_t>& packed, std::uint64_t first, LevelBits& plane) {
    for (std::uint64_t y = 0; y < plane.rows(); ++y) {
      for (std::uint64_t k = 0; k < plane.words(); ++k)
        plane.row(y)[k] = window(packed, first + y * plane.cols() + 64 * k);
      plane.pad(y);
    }
  }
  /// Into bits that are 0.
  static void set(std::uint64_t word, std::uint64_t at, Vector<std::uint64_t>& packed) {
    packed[at / 64] |= word << at % 64;
    if (at % 64 != 0) packed[at / 64 + 1] |= word >> (64 - at % 64);
  }
  static void store(const LevelBits& plane, std::uint64_t first, Vector<std::uint64_t>& packed) {
    for (std::uint64_t y = 0; y < plane.rows(); ++y) {
      for (std::uint64_t k = 0; k < plane.words(); ++k)
        set(plane.row(y)[k] & plane.columns(k), first + y * plane.cols() + 64 * k, packed);
    }
  }
  void copy(std::uint64_t from, std::uint64_t to, std::uint64_t n) {
    for (std::uint64_t at = 0; at < n; at += 64) {
      const std::uint64_t wanted = n - at >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << (n - at)) - 1;
      set(window(packed_, from + at) & wanted, to + at, packed_);
    }
  }
  /// `value` where a bit is set.
  static void unpack(const Vector<std::uint64_t>& packed, std::uint8_t value, Vector<std::uint8_t>& classes) {
    for (std::size_t at = 0; at < classes.size(); at += 8) {
      const std::uint64_t eight = kernels::spread_to_bytes(packed[at / 64] >> at % 64) * value;
      std::memcpy(classes.data() + at, &eight, std::min<std::size_t>(classes.size() - at, 8));
    }
  }

  /// The numbers of the masked cells' classes, bit by bit from the lowest, each as one plane.
  bool classes_of(Classes& classes) {
    const auto width = static_cast<unsigned>(std::bit_width(shape_.alphabet.size() - 2));
    const std::uint64_t cols = shape_.planes.cols;
    LevelBits masked, rim, plane;
    masked.resize(cells_ / cols, cols);
    load(packed_, 0, masked);
    plane.resize(masked.rows(), cols);
    if (shape_.beside_rim) load_rim(rim);
    for (unsigned j = 0; j < width; ++j) {
      if constexpr (!Coder::kDecodes) load(number_bits(classes, packed_, shape_.alphabet, j), 0, plane);
      LevelTables tables;
      LevelPlaneWalk<Coder> walk(coder_, tables);
      const bool beside_rim = j == 0 && shape_.beside_rim;
      if (!walk.plane(plane, {beside_rim ? &rim : nullptr, beside_rim ? nullptr : &masked})) return false;
      if constexpr (Coder::kDecodes) {
        Vector<std::uint64_t> bits(packed_.size());
        store(plane, 0, bits);
        for (std::uint64_t cell = 0; cell < cells_; ++cell) {
          const std::uint64_t bit = bits[cell / 64] & packed_[cell / 64];
          classes[cell] = static_cast<std::uint8_t>(classes[cell] | (bit >> cell % 64 & 1) << j);
        }
      }
    }
    if constexpr (Coder::kDecodes) return name_classes(classes);
    return true;
  }

  void load_rim(LevelBits& rim) const {
    const auto rows = rows_of(packed_, cells_, shape_.planes.cols);
    rim.resize(rows.rows(), shape_.planes.cols);
    for (std::uint64_t y = 0; y < rows.rows(); ++y) {
      for (std::uint64_t k = 0; k < rows.along(); ++k) rim.row(y)[k] = rows.rim(y, k);
      rim.pad(y);
    }
  }

  /// From numbers to classes. False where there is none of a number.
  bool name_classes(Vector<std::uint8_t>& classes) const {
    const unsigned count = shape_.alphabet.size() - 1;
    for (std::uint64_t cell = 0; cell < cells_; ++cell) {
      if ((packed_[cell / 64] >> cell % 64 & 1) == 0) continue;
      if (classes[cell] >= count) return false;
      const auto named = static_cast<std::uint8_t>(classes[cell] + 1);
      classes[cell] = named == count ? shape_.alphabet.last_class() : named;
    }
    return true;
  }

  Coder& coder_;
  const LevelShape& shape_;
  const std::uint64_t cells_;
  Vector<std::uint64_t> packed_;  // which cells are masked
};

kernels::LevelPlanes choose_planes(const Vector<std::uint64_t>& packed, const Extents& extents, Views views) {
  const kernels::MaskPlanes own(extents);
  Vector<std::uint64_t> hashes(kernels::most_level_planes(own));
  return kernels::best_level_planes(packed.data(), own, views, hashes.data());
}

void put_number(std::uint64_t value, Vector<std::uint8_t>& out) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<std::uint8_t>(value | 0x80));
  out.push_back(static_cast<std::uint8_t>(value));
}
void put_element(std::uint64_t bits, std::size_t bytes, Vector<std::uint8_t>& out) {
  for (std::size_t b = 0; b < bytes; ++b) out.push_back(static_cast<std::uint8_t>(bits >> (8 * b)));
}

Status encode_unguarded(const SegmentMask& mask, Vector<std::uint64_t> packed, const kernels::MaskPlanes& planes,
                        DType dtype, Vector<std::uint8_t>& out) {
  if (mask.empty() || mask.classes.size() != planes.cells || planes.cells % planes.cols != 0)
    return Status(StatusCode::invalid_argument, "mask does not have one class a cell of its planes");
  LevelShape shape{planes, 1, {static_cast<unsigned>(mask.specials.size()), !mask.verbatim.empty()}, false};
  shape.distance = kernels::nearest_distance(kernels::MaskBits([&](std::uint64_t k) { return packed[k]; }), planes);
  if (shape.alphabet.size() > 2) {
    const auto lowest = number_bits(mask.classes, packed, shape.alphabet, 0);
    const kernels::LevelClassCost cost = class_cost(packed, lowest, planes.cells, planes.cols);
    shape.beside_rim = cost.beside_rim() < cost.alone();
  }
  LevelEncoder coder;
  LevelMaskWalk<LevelEncoder>(coder, shape, std::move(packed)).run(mask.classes);

  out.push_back(kernels::kLevelMark);
  out.push_back(static_cast<std::uint8_t>(shape.alphabet.specials |
                                          (shape.alphabet.has_verbatim ? kernels::kLevelHasVerbatim : 0) |
                                          (shape.beside_rim ? kernels::kLevelBesideRim : 0)));
  out.push_back(static_cast<std::uint8_t>(std::bit_width(coder.lanes() / kernels::kFewestLevelLanes) - 1));
  if (planes.count() > 1) put_number(shape.distance, out);
  for (const std::uint64_t bits : mask.specials) put_element(bits, dtype_bytes(dtype), out);
  const auto groups = coder.words();
  for (const auto& group : groups) put_number(group.size(), out);
  for (const auto& group : groups) {
    for (const std::uint16_t word : group) put_element(word, sizeof word, out);
  }
  for (const std::uint64_t bits : mask.verbatim) put_element(bits, dtype_bytes(dtype), out);
  return {};
}

Status failed(kernels::MaskDamage damage) {
  switch (damage) {
    case kernels::MaskDamage::truncated: return Status(StatusCode::truncated, "mask ends too early");
    case kernels::MaskDamage::trailing: return Status(StatusCode::trailing_data, "bytes after the end of a mask");
    default: return Status(StatusCode::corrupt, "mask is not valid");
  }
}

constexpr std::uint64_t kBytesACell = 64;    // of views, whose rows have at least eight cells; more than they take
constexpr std::uint64_t kTables = 96 << 10;  // tables of contexts, and what does not depend on the cells
constexpr std::uint64_t kMostCells = UINT64_C(1) << 48;

Result<SegmentMask> decode_unguarded(std::span<const std::uint8_t> in, const kernels::MaskPlanes& planes, DType dtype,
                                     std::uint64_t max_bytes) {
  using kernels::MaskDamage;
  const auto element = static_cast<unsigned>(dtype_bytes(dtype));
  if (planes.cells == 0 || planes.cells % planes.cols != 0) return failed(MaskDamage::corrupt);
  if (planes.cells > kMostCells || level_decode_bytes(planes) > max_bytes)
    return Status(StatusCode::memory_limit, "mask needs more memory than allowed");
  std::array<std::uint64_t, kernels::kMostLevelGroups> counts{};
  const kernels::LevelHead head = kernels::read_level_head(in.data(), in.size(), planes.count(), element,
                                                           [&](unsigned g, std::uint64_t words) { counts[g] = words; });
  if (head.damage != MaskDamage::none) return failed(head.damage);
  const LevelShape shape{planes, head.distance, head.alphabet, head.beside_rim};
  SegmentMask mask;
  for (unsigned k = 0; k < head.alphabet.specials; ++k)
    mask.specials.push_back(kernels::stored_element(in.data() + head.specials + k * element, element));
  std::array<std::span<const std::uint8_t>, kernels::kMostLevelGroups> groups;
  const unsigned used = kernels::level_groups(head.lanes);
  std::uint64_t at = head.words;
  for (unsigned g = 0; g < used; at += 2 * counts[g++]) groups[g] = in.subspan(at, 2 * counts[g]);

  mask.classes.resize(planes.cells);
  LevelDecoder coder(head.lanes, {groups.data(), used});
  LevelMaskWalk<LevelDecoder> walk(coder, shape, Vector<std::uint64_t>(planes.cells / 64 + 2));
  if (!walk.run(mask.classes) || !coder.complete()) return failed(MaskDamage::corrupt);
  std::uint64_t verbatim = 0;
  if (head.alphabet.has_verbatim) {
    verbatim = static_cast<std::uint64_t>(std::count(mask.classes.begin(), mask.classes.end(), kVerbatimClass));
    if (verbatim == 0) return failed(MaskDamage::corrupt);
  }
  const std::uint64_t left = in.size() - head.verbatim;
  if (verbatim * element != left)
    return failed(verbatim * element > left ? MaskDamage::truncated : MaskDamage::trailing);
  mask.verbatim.reserve(static_cast<std::size_t>(verbatim));
  for (std::uint64_t i = 0; i < verbatim; ++i)
    mask.verbatim.push_back(kernels::stored_element(in.data() + head.verbatim + i * element, element));
  mask.masked = walk.masked();
  if (mask.masked == 0) return failed(MaskDamage::corrupt);
  return mask;
}

}  // namespace

Status encode_levels(const SegmentMask& mask, const kernels::MaskPlanes& planes, DType dtype,
                     Vector<std::uint8_t>& out) {
  const std::size_t size = out.size();
  try {
    return encode_unguarded(mask, masked_bits(mask.classes), planes, dtype, out);
  } catch (const std::bad_alloc&) {
    out.resize(size);
    return Status(StatusCode::out_of_memory, "no memory for a mask");
  }
}

Status encode_levels(const SegmentMask& mask, const Extents& extents, Views views, DType dtype,
                     Vector<std::uint8_t>& out) {
  const std::size_t size = out.size();
  try {
    Vector<std::uint64_t> packed = masked_bits(mask.classes);
    const kernels::MaskPlanes own(extents), planes = choose_planes(packed, extents, views).planes;
    if (planes != own) kernels::put_view(planes, own, [&](std::uint8_t byte) { out.push_back(byte); });
    return encode_unguarded(mask, std::move(packed), planes, dtype, out);
  } catch (const std::bad_alloc&) {
    out.resize(size);
    return Status(StatusCode::out_of_memory, "no memory for a mask");
  }
}

std::uint64_t estimate_levels(std::span<const std::uint8_t> classes, std::size_t specials, const Extents& extents,
                              Views views, DType dtype) {
  const Vector<std::uint64_t> packed = masked_bits(classes);
  const kernels::LevelPlanes chosen = choose_planes(packed, extents, views);
  std::uint64_t cost = chosen.cost;
  const auto verbatim = static_cast<std::uint64_t>(std::count(classes.begin(), classes.end(), kVerbatimClass));
  const kernels::MaskAlphabet alphabet{static_cast<unsigned>(specials), verbatim != 0};
  if (alphabet.size() > 2) {
    for (unsigned j = 0; j < static_cast<unsigned>(std::bit_width(alphabet.size() - 2)); ++j) {
      const kernels::LevelClassCost bit =
          class_cost(packed, number_bits(classes, packed, alphabet, j), classes.size(), chosen.planes.cols);
      cost += j == 0 ? std::min(bit.alone(), bit.beside_rim()) : bit.alone();
    }
  }
  return kernels::level_bytes_estimate(cost, specials, verbatim, dtype_bytes(dtype));
}

std::uint64_t level_decode_bytes(const kernels::MaskPlanes& planes) {
  using Walk = LevelPlaneWalk<LevelDecoder>;
  if (planes.cells == 0) return kTables;
  // One after another: positions, classes of all rows as one plane, verbatim values.
  const std::uint64_t count = planes.count(), first = planes.rows_of(0), cols = planes.cols;
  const std::uint64_t positions =
      count + 2 * LevelBits::bytes(first, cols) + Walk::bytes(first, cols, count > 1, false);
  const std::uint64_t rows = planes.cells / cols, packed = planes.cells / 8 + 2 * sizeof(std::uint64_t);
  const std::uint64_t classes = 3 * LevelBits::bytes(rows, cols) + packed +
                                std::max(Walk::bytes(rows, cols, true, false), Walk::bytes(rows, cols, false, true));
  const std::uint64_t verbatim = planes.cells * sizeof(std::uint64_t);
  return planes.cells + packed + std::max({positions, classes, verbatim}) + kTables;
}

std::uint64_t most_level_decode_bytes(const kernels::MaskPlanes& own) {
  if (own.cols < kernels::kLeastViewExtent) return level_decode_bytes(own);
  return std::max(level_decode_bytes(own), own.cells * kBytesACell + kTables);
}

Result<SegmentMask> decode_levels(std::span<const std::uint8_t> in, const kernels::MaskPlanes& planes, DType dtype,
                                  std::uint64_t max_bytes) {
  try {
    return decode_unguarded(in, planes, dtype, max_bytes);
  } catch (const std::exception&) {
    return Status(StatusCode::out_of_memory, "no memory for a mask");
  }
}

}  // namespace quern::mask
