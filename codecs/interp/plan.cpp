// Which tiles and predictors: trials on boxes.
#include "codecs/interp/plan.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>

#include "codecs/interp/elements.h"
#include "codecs/interp/exceptions.h"
#include "codecs/interp/level_coder.h"
#include "coding/distribution_fit.h"
#include "coding/symbol_counts.h"
#include "libcompress/core/buffer.h"
#include "libcompress/core/run_tasks.h"
#include "libcompress/core/scattered_sample.h"

namespace quern::codec::interp {
namespace {

using kernels::InterpKind;
using kernels::InterpPredictor;
using kernels::InterpTile;

/// A box has so many tiles, but no fewer and no more elements than these.
constexpr std::uint64_t kBoxTiles = 8;
constexpr std::uint64_t kLeastBoxElems = UINT64_C(1) << 12;
constexpr std::uint64_t kMostBoxElems = UINT64_C(1) << 15;
/// All boxes hold about one element in so many, but no more than these.
constexpr std::uint64_t kElemsOfOne = 16;
constexpr std::uint64_t kMostElems = UINT64_C(1) << 17;

/// Where a box lies, in the grid of a layout.
struct Place {
  std::array<std::uint64_t, 3> origin{};
  std::array<std::uint64_t, 3> extents{1, 1, 1};
};

Vector<Place> places_of(const ChunkGrid& grid, const InterpTile& tile, std::uint64_t sampled) {
  // The part of the grid that the first elements cover: whole planes, or rows, or a part of one row.
  std::array<std::uint64_t, 3> covered = grid.extents;
  std::uint64_t inner = grid.extents[0] * grid.extents[1] * grid.extents[2];
  for (std::size_t a = 0; a < 3 && sampled < inner; ++a) {
    inner /= grid.extents[a];
    covered[a] = std::max<std::uint64_t>(sampled / inner, 1);
    if (sampled >= inner) break;
  }
  Place place;
  std::uint64_t elems = 1;
  for (std::size_t a = 0; a < 3; ++a) {
    place.extents[a] = std::min(covered[a], UINT64_C(1) << tile.logs[a]);
    elems *= place.extents[a];
  }
  const std::uint64_t most = std::clamp(kBoxTiles * elems, kLeastBoxElems, kMostBoxElems);
  for (bool grown = true; grown;) {
    grown = false;
    for (std::size_t a = 3; a-- > 0;) {
      const std::uint64_t longer = std::min(2 * place.extents[a], covered[a]);
      if (longer == place.extents[a] || elems / place.extents[a] * longer > most) continue;
      elems = elems / place.extents[a] * longer;
      place.extents[a] = longer;
      grown = true;
    }
  }
  const std::uint64_t total = covered[0] * covered[1] * covered[2];
  const std::uint64_t boxes = std::max<std::uint64_t>(std::min(total / kElemsOfOne, kMostElems) / elems, 1);
  Vector<Place> places;
  for (std::uint64_t i = 0; i < boxes; ++i) {
    for (std::size_t a = 0; a < 3; ++a)
      place.origin[a] = scattered_box_place(covered[a] - place.extents[a] + 1, a, i) >> tile.logs[a] << tile.logs[a];
    places.push_back(place);
  }
  return places;
}

/// The boxes of one layout, with values of one width.
template <class Element, class Word>
class Trial {
 public:
  using Bits = typename Element::Bits;

  Trial(const ChunkSpec& spec, Arena& arena) : spec_(spec), counts_(arena) {}

  void add(Arena& arena, const ConstBox3& box, const ChunkFormat& format) {
    const Extents extents = chunk_extents(box.extents);
    LevelCoder<Word>& coder = coders_.emplace_back(arena, spec_, extents);
    for (std::size_t r = 0; r < extents[0] * extents[1]; ++r) {
      const auto* const row = static_cast<const Bits*>(box.data) + row_offset(box, r);
      to_units<Element>(*spec_.kernels, row, extents[2], format.values, coder.targets + r * extents[2]);
      if (box.special != nullptr) std::copy_n(special_row(box, r), extents[2], coder.special + r * extents[2]);
    }
    elems_ += coder.elems();
    if (box.special != nullptr) {
      const auto ordinary = std::count(coder.special, coder.special + coder.elems(), std::uint8_t{0});
      elems_ -= coder.elems() - static_cast<std::uint64_t>(ordinary);
    }
    coder.start(format.values.fraction_bits, box.special != nullptr);
  }

  /// Chooses all predictors; returns the estimated bits, in units of 2^-12.
  std::uint64_t run(Predictors& predictors) {
    unsigned open = spec_.tile.levels();
    for_classes(spec_.tile, [&](unsigned level, unsigned c) {
      if (level != open)
        for (LevelCoder<Word>& coder : coders_) coder.open(level);
      open = level;
      predictors[level][c - 1] = cheapest(level, c);
      for (LevelCoder<Word>& coder : coders_) coder.code(c, predictors[level][c - 1]);
    });
    counts_.clear();
    for (const LevelCoder<Word>& coder : coders_) counts_.add(coder.symbols, coder.coded());
    coding::BinCounts bins{};
    counts_.add_to(bins);
    coding::Distributions distributions{};
    const std::uint64_t exceptions = beyond() * exception_bytes<Bits>() * 8;
    return coding::estimate_distributions_cost(bins, distributions) + (exceptions << 12);
  }
  /// Codes that do not reach their elements: these become exceptions.
  std::uint64_t beyond() const {
    constexpr auto kMost = static_cast<std::int32_t>(kernels::kMaxMagnitude);
    std::uint64_t number = 0;
    if constexpr (sizeof(Word) > sizeof(std::int32_t)) {
      for (const LevelCoder<Word>& coder : coders_)
        for (std::size_t i = 0; i < coder.coded(); ++i) number += coder.codes[i] == kMost || coder.codes[i] == -kMost;
    }
    return number;
  }
  /// Those that are not special: the others hardly cost anything.
  std::uint64_t elems() const { return elems_; }

 private:
  InterpPredictor cheapest(unsigned level, unsigned c) {
    const std::size_t stride = level == 0 ? 4 : level == 1 ? 2 : 1;
    InterpPredictor best{static_cast<std::uint8_t>(c), InterpKind::cubic};
    std::uint64_t least = UINT64_MAX;
    for (unsigned axes = c; axes > 0; axes = (axes - 1) & c) {
      for (const InterpKind kind : {InterpKind::cubic, InterpKind::natural, InterpKind::linear}) {
        const InterpPredictor predictor{static_cast<std::uint8_t>(axes), kind};
        std::uint64_t cost = 0;
        for (LevelCoder<Word>& coder : coders_) cost += coder.cost(c, predictor, stride);
        if (cost < least) best = predictor;
        least = std::min(cost, least);
      }
    }
    return best;
  }

  const ChunkSpec& spec_;
  coding::SymbolCounts counts_;
  Vector<LevelCoder<Word>> coders_;
  std::uint64_t elems_ = 0;
};

struct Outcome {
  Choice choice;
  std::uint64_t bits = 0;
  std::uint64_t elems = 0;   ///< 0: nothing could be coded
  std::uint64_t beyond = 0;  ///< codes that do not reach their elements
};

/// True when `a` takes fewer bits an element.
bool cheaper(const Outcome& a, const Outcome& b) {
  return a.elems > 0 && (b.elems == 0 || a.bits * b.elems < b.bits * a.elems);
}

/// The boxes as the sample has them, and their formats.
struct Boxes {
  Vector<AlignedBuffer> rooms;
  Vector<std::pair<ConstBox3, ChunkFormat>> list;
  bool narrow = true;
};

template <class Element>
Status look(const PlanRequest& request, const ChunkSpec& spec, const ChunkGrid& grid, const Vector<Place>& places,
            Boxes& boxes) {
  using Bits = typename Element::Bits;
  for (const Place& place : places) {
    ConstBox3 box;
    box.extents = place.extents;
    box.strides = {grid.extents[1] * grid.extents[2], grid.extents[2]};
    AlignedBuffer values;
    AlignedBuffer special;
    QUERN_RETURN_IF_ERROR(values.resize(box.elems() * sizeof(Bits)));
    QUERN_RETURN_IF_ERROR(special.resize(box.elems()));
    const std::uint64_t first = place.origin[0] * box.strides[0] + place.origin[1] * box.strides[1] + place.origin[2];
    QUERN_ASSIGN_OR_RETURN(const ConstBox3 seen, request.sample->look(first, box, values.data(), special.data()));
    boxes.rooms.push_back(std::move(values));
    boxes.rooms.push_back(std::move(special));
    ChunkRange range;
    for (std::size_t r = 0; r < seen.extents[0] * seen.extents[1]; ++r)
      add_range<Element>(*spec.kernels, static_cast<const Bits*>(seen.data) + row_offset(seen, r), special_row(seen, r),
                         static_cast<std::size_t>(seen.extents[2]), range);
    ChunkFormat format;
    if (!choose_format(range, spec.dtype, spec.bound, format)) continue;
    boxes.narrow = boxes.narrow && format.narrow;
    boxes.list.emplace_back(seen, format);
  }
  return {};
}

template <class Element, class Word>
Status try_boxes(const ChunkSpec& spec, const Boxes& boxes, Outcome& outcome) {
  const auto add_all = [&](Arena& arena, Trial<Element, Word>& trial, bool real) {
    for (const auto& [box, format] : boxes.list) {
      if (real) {
        trial.add(arena, box, format);
      } else {
        static_cast<void>(LevelCoder<Word>(arena, spec, chunk_extents(box.extents)));
      }
    }
  };
  Arena needed(nullptr);
  Trial<Element, Word> nothing(spec, needed);
  add_all(needed, nothing, false);
  AlignedBuffer memory;
  QUERN_RETURN_IF_ERROR(memory.resize(needed.used()));
  Arena arena(memory.data());
  Trial<Element, Word> trial(spec, arena);
  add_all(arena, trial, true);
  outcome.elems = trial.elems();
  outcome.bits = trial.run(outcome.choice.predictors);
  outcome.beyond = trial.beyond();
  return {};
}

Status try_layout(const PlanRequest& request, const Layout& layout, const kernels::InterpKernels& kernels,
                  const kernels::ResidualKernels& residuals, Outcome& outcome) {
  const ChunkGrid grid = make_grid(request.shape, layout);
  outcome.choice.layout = layout;
  for_classes(layout.tile, [&](unsigned level, unsigned c) {
    outcome.choice.predictors[level][c - 1] = {static_cast<std::uint8_t>(c), InterpKind::cubic};
  });
  ChunkSpec spec;
  spec.dtype = request.dtype;
  spec.tile = layout.tile;
  spec.bound = request.bound.value;
  spec.kernels = &kernels;
  spec.residuals = &residuals;
  const Vector<Place> places = places_of(grid, layout.tile, request.sample->elems());
  return with_element(request.dtype, [&](auto element) -> Status {
    using Element = decltype(element);
    Boxes boxes;
    QUERN_RETURN_IF_ERROR(look<Element>(request, spec, grid, places, boxes));
    if (boxes.list.empty()) return {};
    return boxes.narrow ? try_boxes<Element, std::int32_t>(spec, boxes, outcome)
                        : try_boxes<Element, std::int64_t>(spec, boxes, outcome);
  });
}

}  // namespace

Vector<Layout> all_layouts(const Shape& shape) {
  constexpr InterpTile kCube{{4, 4, 4}};
  constexpr InterpTile kPlane{{0, 6, 6}};
  constexpr InterpTile kUpright{{6, 0, 6}};
  constexpr InterpTile kColumn{{0, 12, 0}};
  constexpr InterpTile kLine{{0, 0, 12}};
  Vector<Layout> layouts;
  Vector<std::array<std::uint64_t, 3>> seen;
  const auto rank = static_cast<std::uint8_t>(shape.rank());
  const auto add = [&](std::uint8_t first, std::uint8_t second, std::initializer_list<InterpTile> tiles) {
    const auto extents = make_grid(shape, {kLine, first, second}).extents;
    // An axis of extent 1 in front of a longer one says the same as without it.
    if (extents[2] == 1 && (extents[0] > 1 || extents[1] > 1)) return;
    if (extents[1] == 1 && extents[0] > 1) return;
    if (std::find(seen.begin(), seen.end(), extents) != seen.end()) return;
    seen.push_back(extents);
    for (const InterpTile& tile : tiles) layouts.push_back({tile, first, second});
  };
  const auto whole = [&](std::uint8_t first, std::uint8_t second) {
    const auto extents = make_grid(shape, {kLine, first, second}).extents;
    if (extents[0] > 1) add(first, second, {kCube, kPlane, kUpright});
    if (extents[0] == 1 && extents[1] > 1) add(first, second, {kPlane, kLine, kColumn});
    if (extents[0] == 1 && extents[1] == 1) add(first, second, {kLine});
  };
  if (rank > 1) whole(static_cast<std::uint8_t>(rank - 2), static_cast<std::uint8_t>(rank - 1));
  if (rank > 3) whole(1, static_cast<std::uint8_t>(rank - 1));
  if (rank > 3) whole(1, 2);
  if (rank > 2) add(0, 1, {kColumn});
  whole(0, 0);
  return layouts;
}

Result<Choice> choose(const PlanRequest& request, const std::optional<Layout>& given,
                      const kernels::InterpKernels& kernels, const kernels::ResidualKernels& residuals) {
  Vector<Layout> layouts;
  if (given) {
    layouts.push_back(*given);
  } else {
    layouts = all_layouts(request.shape);
  }
  const auto best_of = [&]() -> Result<Outcome> {
    Vector<Outcome> outcomes(layouts.size());
    QUERN_RETURN_IF_ERROR(run_tasks(*request.runner, layouts.size(), [&](std::size_t i) {
      return try_layout(request, layouts[i], kernels, residuals, outcomes[i]);
    }));
    std::size_t best = 0;
    for (std::size_t i = 1; i < outcomes.size(); ++i)
      if (cheaper(outcomes[i], outcomes[best])) best = i;
    return outcomes[best];
  };
  QUERN_ASSIGN_OR_RETURN(const Outcome best, best_of());
  if (given || best.beyond == 0) return best.choice;
  // Codes lead from anchor to anchor where these are close together.
  Vector<Layout> smaller;
  for (Layout layout : layouts)
    for (const std::uint8_t most : std::initializer_list<std::uint8_t>{5, 3, 2, 1}) {
      for (std::uint8_t& log : layout.tile.logs) log = std::min(log, most);
      if (std::find(smaller.begin(), smaller.end(), layout) == smaller.end()) smaller.push_back(layout);
    }
  layouts = std::move(smaller);
  QUERN_ASSIGN_OR_RETURN(const Outcome closer, best_of());
  return cheaper(closer, best) ? closer.choice : best.choice;
}

}  // namespace quern::codec::interp
