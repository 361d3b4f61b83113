// Bytes to a chunk in levels. The bytes are hostile: whatever they are, nothing is read or written out of bounds.
#include <algorithm>
#include <array>
#include <new>
#include <type_traits>

#include "codecs/stencil/edges/special_values.h"
#include "codecs/stencil/elements.h"
#include "codecs/stencil/exceptions.h"
#include "codecs/stencil/lattice/chunk.h"
#include "codecs/stencil/levels/chunk.h"
#include "codecs/stencil/levels/coarse_positions.h"
#include "codecs/stencil/levels/given_plane.h"
#include "codecs/stencil/levels/grid.h"
#include "codecs/stencil/levels/model.h"
#include "codecs/stencil/levels/view.h"
#include "codecs/stencil/levels/walk.h"
#include "codecs/stencil/networks/level_networks.h"
#include "coding/stream_reader.h"
#include "coding/token_tables.h"
#include "kernels/stencil/rules.h"
#include "libcompress/format/reader.h"

namespace quern::codec::stencil {
namespace {

template <class Value>
struct DecodeMemory {
  DecodeMemory(Arena& arena, const LevelAxes& axes, bool networks)
      : predictors(arena.take<Predictor>(LevelsModel::predictor_count(axes))),
        tables(arena.take<kernels::TokenTable>(kernels::kContextBins)),
        contexts(arena.take<std::uint8_t>(row_room(axes.extents[axes.rank - 1]))),
        codes(arena.take<std::int32_t>(row_room(axes.extents[axes.rank - 1]))),
        predicted(arena.take<std::int64_t>(row_room(axes.extents[axes.rank - 1]))),
        small_predicted(arena.take<std::int32_t>(row_room(axes.extents[axes.rank - 1]))),
        grid(arena, axes, networks),
        predictor(arena, axes.extents[axes.rank - 1]) {}
  Predictor* predictors;
  kernels::TokenTable* tables;
  std::uint8_t* contexts;  ///< levels of a row
  std::int32_t* codes;     ///< of a row
  std::int64_t* predicted;
  std::int32_t* small_predicted;  ///< the same where sums are small
  LevelGridOf<Value> grid;
  RowPredictorOf<Value> predictor;
};

template <class Element, class Value>
class LevelsReader {
 public:
  using Bits = typename Element::Bits;
  using LevelGrid = LevelGridOf<Value>;
  using Magnitude = kernels::MagnitudeOf<Value>;

  LevelsReader(const ChunkSpec& spec, const MutableBox3& out, const LevelsView& view, DecodeMemory<Value>& memory)
      : spec_(spec), out_(out), view_(view), memory_(memory) {
    model_.predictors = memory.predictors;
  }

  /// Values that should have been narrow were not: what was decoded is worthless.
  bool too_wide() const { return too_wide_; }

  static constexpr bool kNarrow = !std::is_same_v<Value, double>;

  /// Lets the chunk follow a plane that is a reference; `room` is for its elements in units. Before run().
  void follow(const ConstBox3& reference, double* room) {
    reference_ = &reference;
    given_ = room;
  }

  /// Decodes levels down to `last`: to the box, or its points to `coarse`.
  Status run(std::span<const std::uint8_t> in, unsigned last, const CoarsePlaces* coarse) {
    last_ = last;
    model_.networks = spec_.networks;
    QUERN_RETURN_IF_ERROR(read_levels_model(in, view_.axes, model_));
    if (model_.format.masked != (out_.special != nullptr)) return corrupt("stencil: a chunk and its mask do not agree");
    // Special elements may have any value between these.
    if constexpr (kNarrow) {
      too_wide_ = model_.format.low <= -kernels::kMostNarrow || model_.format.high >= kernels::kMostNarrow;
      if (too_wide_) return {};
    }
    if (reference_ != nullptr) reference_in_units<Element>(*reference_, model_.format, given_);
    memory_.grid.small().start(model_.format);
    Reader reader(in);
    QUERN_ASSIGN_OR_RETURN(const std::uint64_t exceptions, reader.varint(view_.axes.elems()));
    const Reader exceptions_at = reader;
    QUERN_RETURN_IF_ERROR(check_exceptions<Bits>(reader, exceptions, view_.axes.elems()));
    coding::ServingTables serving{};
    QUERN_RETURN_IF_ERROR(coding::fill_token_tables(model_.distributions, memory_.tables, serving));
    QUERN_RETURN_IF_ERROR(sections(reader, in, kernels::ResidualTables(memory_.tables, serving)));
    Reader again = exceptions_at;
    if (too_wide_) return {};
    if (coarse != nullptr) {
      store_coarse(*coarse);
      return walk_exceptions<Bits>(again, exceptions, view_.axes.elems(),
                                   [&](std::uint64_t index, Bits bits) { put_coarse(index, bits, *coarse); });
    }
    store_values();
    return put_exceptions<Bits>(again, exceptions, view_.axes.elems(), out_);
  }

 private:
  static Status corrupt(const char* text) { return Status(StatusCode::corrupt, text); }

  Status sections(Reader& reader, std::span<const std::uint8_t> in, const kernels::ResidualTables& tables) {
    const unsigned top = view_.axes.top();
    QUERN_ASSIGN_OR_RETURN(const std::uint8_t own, reader.u8());
    if (own > top) return corrupt("stencil: more sections than levels");
    std::array<std::uint64_t, kMaxLevels> bytes{};
    std::uint64_t known = 0;
    for (std::size_t s = 0; s < own; ++s) {
      QUERN_ASSIGN_OR_RETURN(bytes[s], reader.varint(1 + spec_.raw_bytes()));
      known += bytes[s];
    }
    // Of a chunk whose coarse levels are wanted, the bytes of finer ones may be missing.
    const std::uint64_t left = reader.remaining();
    if (known > left && last_ == 0) return corrupt("stencil: sizes of levels do not fit their chunk");
    bytes[own] = left - std::min(known, left);
    std::size_t at = reader.position();
    unsigned level = top;
    for (unsigned s = 0; s <= own; ++s) {
      coding::StreamReader sources;
      if (bytes[s] > in.size() - at) return corrupt("stencil: a chunk is cut short");
      QUERN_RETURN_IF_ERROR(sources.open(in.subspan(at, static_cast<std::size_t>(bytes[s]))));
      kernels::DecodeStreams streams(sources.used());
      at += static_cast<std::size_t>(bytes[s]);
      const unsigned last = own - s;
      for (;; --level) {
        QUERN_RETURN_IF_ERROR(decode_level(level, tables, streams));
        if (too_wide_) return {};
        if (level == last) break;
        if (level == last_) return {};
      }
      if (!streams.finished()) return corrupt("stencil: a stream does not end where it should");
      if (level == last_) return {};
      --level;
    }
    return {};
  }

  Status decode_level(unsigned level, const kernels::ResidualTables& tables, kernels::DecodeStreams& streams) {
    const kernels::StencilKernels& kernels = *spec_.kernels;
    LevelGrid& grid = memory_.grid;
    grid.open(level, model_.border, kernels.rows);
    if (given_ != nullptr) load_given_plane(view_, given_, grid);
    memory_.predictor.start_level(grid);
    const std::int64_t quantum = model_.quantum(level);
    std::size_t predicted = 0;
    Status stopped;
    const bool complete = for_coded_runs(grid, [&](const CodedRun& run) {
      const std::size_t c = run.first.parity_class;
      if (by_network(level, run) && c != predicted) {
        predicted = c;
        stopped = predict_by_network(c);
        if (!stopped.ok() || too_wide_) return false;
      }
      memory_.predictor.open_values(grid, run, model_);
      memory_.predictor.open_contexts(grid, run, model_);
      Value* values = grid.values(c, run.first.index);
      Magnitude* magnitudes = grid.magnitudes(c, run.first.index);
      std::size_t linear = run.linear;
      for (std::size_t r = 0; r < run.rows; ++r) {
        const bool small = predict_row(run, r);
        if (out_.special != nullptr) {
          skip_special(run, r);
          if (small) {
            limit_special(memory_.contexts, run.columns, model_.format, memory_.small_predicted);
          } else {
            limit_special(memory_.contexts, run.columns, model_.format, memory_.predicted);
          }
        }
        kernels.residuals.decode_residuals(streams, tables, memory_.contexts, run.columns, linear, memory_.codes);
        reconstruct_row(run.columns, small, quantum, values, magnitudes);
        grid.finish_row(c, values, magnitudes);
        values += grid.row_pitch();
        magnitudes += grid.row_pitch();
        linear += run.columns;
      }
      grid.finish_run(c, run.first.index);
      return streams.failed == 0 && !too_wide_;
    });
    if (too_wide_) return {};
    QUERN_RETURN_IF_ERROR(stopped);
    return complete ? Status{} : corrupt("stencil: a stream is too short");
  }
  bool by_network(unsigned level, const CodedRun& run) const {
    return model_.predictor(level, run.first.later, run.first.parity_class).kind ==
           static_cast<std::uint8_t>(PredictorKind::network);
  }
  /// Fills the rows of the class's network, when all that it reads is decoded.
  Status predict_by_network(std::size_t parity_class) {
    if (spec_.networks->networks == nullptr)
      return Status(StatusCode::missing_model, "the stream needs its model, which was not found");
    try {
      too_wide_ = !spec_.networks->networks->predict_class(memory_.grid, parity_class, model_.format.fraction_bits);
      return {};
    } catch (const std::bad_alloc&) {
      return Status(StatusCode::out_of_memory, "stencil: out of memory while decoding");
    }
  }
  /// Predictions and contexts of a row of a run; true where the predictions are small ones.
  bool predict_row(const CodedRun& run, std::size_t number) {
    const std::size_t begin = number * memory_.grid.row_pitch();
    const kernels::RowSourcesView<Value>& sources =
        memory_.predictor.predicted_row(number, begin, run.columns, spec_.kernels->edges);
    const kernels::StencilRowKernels& rows = spec_.kernels->rows;
    if constexpr (kNarrow) {
      if (memory_.predictor.small(memory_.grid)) {
        rows.small.predict(sources, begin, run.columns, memory_.small_predicted, memory_.contexts);
        return true;
      }
    }
    rows.of<Value>().predict(sources, begin, run.columns, memory_.predicted, memory_.contexts);
    return false;
  }
  /// Values of a row from its predictions and codes.
  void reconstruct_row(std::size_t columns, bool small, std::int64_t quantum, Value* values, Magnitude* magnitudes) {
    const kernels::StencilRowKernels& rows = spec_.kernels->rows;
    SmallValues<Value>& known = memory_.grid.small();
    if constexpr (kNarrow) {
      if (small) {
        const bool kept = rows.small.reconstruct(memory_.small_predicted, memory_.codes, quantum, known.limit(),
                                                 columns, values, magnitudes);
        if (kept) return;
        std::copy_n(memory_.small_predicted, columns, memory_.predicted);
        known.give_up();
      }
    }
    if (!rows.of<Value>().reconstruct(memory_.predicted, memory_.codes, quantum, kernels::kMaxContextMagnitude, columns,
                                      values, magnitudes))
      too_wide_ = true;
    known.see(values, columns);
  }
  /// Marks the special elements of a row, which have no code.
  void skip_special(const CodedRun& run, std::size_t number) const {
    RowIndex index = run.first.index;
    if (number > 0) index[memory_.grid.run_axis()] += number;
    const unsigned level = run.first.level;
    const std::uint8_t* const special =
        out_.special + view_.row_start(run.first.parity_class, level, index, view_.special_strides);
    const std::size_t step = view_.row_step(level, view_.special_strides);
    for (std::size_t x = 0; x < run.columns; ++x)
      if (special[x * step] != 0) memory_.contexts[x] = kernels::kNoContextBin;
  }

  /// Writes the finest level's classes to the box: those that differ in the parity along the last axis alone together,
  /// so that rows are written from end to end.
  void store_values() {
    const std::size_t step = view_.row_step(0, view_.strides);
    for (std::size_t c = 0; c < kParityClasses; ++c) {
      const auto& view = memory_.grid.view(c);
      if (!view.exists) continue;
      const bool pairs = std::is_same_v<Element, F32> && step == 2 && c % 2 == 0 && memory_.grid.view(c + 1).exists;
      for (std::size_t r = given_ == nullptr ? 0 : view.rows / 2; r < view.rows; ++r) {
        if constexpr (std::is_same_v<Element, F32>) {
          if (pairs) {
            store_pairs(c, r);
            continue;
          }
        }
        store_row(c, r, step);
      }
      if (pairs) ++c;
    }
  }
  Bits* row_place(std::size_t c, const RowIndex& index) const {
    return static_cast<Bits*>(out_.data) + view_.row_start(c, 0, index, view_.strides);
  }
  void store_row(std::size_t c, std::size_t r, std::size_t step) const {
    const double unit = model_.format.unit();
    const double base = model_.format.base;
    const std::size_t columns = memory_.grid.view(c).extents[view_.axes.rank - 1];
    const RowIndex index = memory_.grid.index_of(c, r);
    const Value* const from = memory_.grid.values(c, index);
    Bits* const to = row_place(c, index);
    for (std::size_t x = 0; x < columns; ++x) to[x * step] = Element::bits(static_cast<double>(from[x]) * unit + base);
  }
  /// A row of an even class and the same of the odd one after it, which has as many columns or one less.
  void store_pairs(std::size_t c, std::size_t r) const {
    const std::size_t last = view_.axes.rank - 1;
    const std::size_t evens = memory_.grid.view(c).extents[last];
    const std::size_t odds = memory_.grid.view(c + 1).extents[last];
    const RowIndex index = memory_.grid.index_of(c, r);
    const Value* const even = memory_.grid.values(c, index);
    Bits* const to = row_place(c, index);
    const double unit = model_.format.unit();
    spec_.kernels->rows.template of<Value>().store_pairs(even, memory_.grid.values(c + 1, index), unit,
                                                         model_.format.base, odds, to);
    if (evens > odds) to[2 * odds] = Element::bits(static_cast<double>(even[odds]) * unit + model_.format.base);
  }

  /// The same for the points of a coarse level.
  void store_coarse(const CoarsePlaces& to) {
    LevelGrid& grid = memory_.grid;
    const LevelAxes& axes = view_.axes;
    const std::size_t x_axis = axes.rank - 1;
    for (std::size_t c = 0; c < kParityClasses; ++c) {
      const auto& view = grid.view(c);
      if (!view.exists) continue;
      for (std::size_t r = 0; r < view.rows; ++r) {
        const RowIndex index = grid.index_of(c, r);
        std::size_t at = 0;
        bool kept = true;
        for (std::size_t a = 0; a < x_axis; ++a)
          kept = to.keep(axes.hierarchical(a) ? 2 * index[a] + axes.parity(c, a) : index[a], a, at) && kept;
        if (kept) store_coarse_row(grid.values(c, index), view.extents[x_axis], axes.parity(c, x_axis), at, to);
      }
    }
  }
  void store_coarse_row(const Value* from, std::size_t columns, std::size_t first, std::size_t row,
                        const CoarsePlaces& to) const {
    const std::size_t x_axis = view_.axes.rank - 1;
    const double unit = model_.format.unit();
    for (std::size_t x = 0; x < columns; ++x) {
      std::size_t at = row;
      if (to.keep(first + 2 * x, x_axis, at))
        static_cast<Bits*>(to.data)[at] = Element::bits(static_cast<double>(from[x]) * unit + model_.format.base);
    }
  }
  void put_coarse(std::uint64_t index, Bits bits, const CoarsePlaces& to) const {
    const LevelAxes& axes = view_.axes;
    std::size_t at = 0;
    auto rest = static_cast<std::size_t>(index);
    for (std::size_t a = axes.rank; a-- > 0; rest /= axes.extents[a]) {
      const std::size_t place = rest % axes.extents[a];
      const unsigned shift = axes.hierarchical(a) ? last_ : 0;
      if ((place >> shift) << shift != place || !to.keep(place >> shift, a, at)) return;
    }
    static_cast<Bits*>(to.data)[at] = bits;
  }

  const ChunkSpec& spec_;
  const MutableBox3& out_;
  const LevelsView& view_;
  unsigned last_ = 0;
  DecodeMemory<Value>& memory_;
  const ConstBox3* reference_ = nullptr;
  double* given_ = nullptr;  ///< the plane before, in units; null: there is none
  LevelsModel model_;
  bool too_wide_ = false;
};

}  // namespace

namespace {

std::size_t decode_scratch_for(const LevelsView& view, std::size_t given_elems, bool networks) {
  Arena arena(nullptr);
  static_cast<void>(arena.take<double>(given_elems));
  const DecodeMemory<double> memory(arena, view.axes, networks);
  return arena.used() + arena.used() / 8 + 65536;
}

}  // namespace

std::size_t levels_decode_scratch_bytes(const ChunkSpec& spec) {
  return decode_scratch_for(LevelsView(full_box(spec), spec.form), 0, spec.networks != nullptr);
}

std::size_t levels_after_decode_scratch_bytes(const ChunkSpec& spec) {
  const MutableBox3 full = full_box(spec);
  return decode_scratch_for(LevelsView::after_reference(full, spec.form), static_cast<std::size_t>(full.elems()),
                            spec.networks != nullptr);
}

namespace {

/// `reference`: null, or the plane before.
Status decode_to(const ChunkSpec& spec, const LevelsView& view, std::span<const std::uint8_t> in,
                 const ConstBox3* reference, const MutableBox3& out, unsigned level, const CoarsePlaces* coarse,
                 std::span<std::uint8_t> scratch) {
  Arena measured(nullptr);
  const std::size_t given_elems = reference == nullptr ? 0 : static_cast<std::size_t>(out.elems());
  static_cast<void>(measured.take<double>(given_elems));
  const bool networks = spec.networks != nullptr;
  const DecodeMemory<double> needed(measured, view.axes, networks);
  if (measured.used() > scratch.size())
    return Status(StatusCode::internal, "stencil: scratch is too small for a chunk");
  return with_element(spec.dtype, [&](auto element) -> Status {
    using Element = decltype(element);
    {
      // Half the memory to go through; few chunks have values that do not fit.
      Arena arena(scratch.data());
      double* const room = arena.take<double>(given_elems);
      DecodeMemory<std::int32_t> memory(arena, view.axes, networks);
      LevelsReader<Element, std::int32_t> reader(spec, out, view, memory);
      if (reference != nullptr) reader.follow(*reference, room);
      const Status status = reader.run(in, level, coarse);
      if (!reader.too_wide()) return status;
      if (view.axes.edges) return Status(StatusCode::corrupt, "stencil: values are too large for their groups");
    }
    Arena arena(scratch.data());
    double* const room = arena.take<double>(given_elems);
    DecodeMemory<double> memory(arena, view.axes, networks);
    LevelsReader<Element, double> reader(spec, out, view, memory);
    if (reference != nullptr) reader.follow(*reference, room);
    return reader.run(in, level, coarse);
  });
}

bool may_be_levels(const ChunkSpec& spec, bool edges) { return edges ? spec.form.edges : spec.form.levels; }
Status not_in_levels() { return Status(StatusCode::corrupt, "stencil: a chunk in levels where none may be"); }

/// The level of its own that a chunk has to be decoded to: that of the array, but no coarser than there are. All of
/// them where the chunk, at an upper end of the array, has fewer axes and is coarser along one that the array keeps.
unsigned own_level(const LevelForm& form, const LevelsView& view, unsigned level) {
  for (std::size_t a = 0; a < view.axes.rank; ++a)
    if (view.axes.hierarchical(a) && view.axes.extents[a] > 1 && step_along(form, view, a) == 1) return 0;
  return std::min(level, view.axes.top());
}

}  // namespace

Status decode_levels(const ChunkSpec& spec, std::span<const std::uint8_t> in, bool edges, const MutableBox3& out,
                     std::span<std::uint8_t> scratch) {
  if (!may_be_levels(spec, edges)) return not_in_levels();
  LevelsView view(out, spec.form);
  view.axes.edges = edges;
  return decode_to(spec, view, in, nullptr, out, 0, nullptr, scratch);
}

Status decode_levels_after(const ChunkSpec& spec, std::span<const std::uint8_t> in, const ConstBox3& reference,
                           const MutableBox3& out, std::span<std::uint8_t> scratch) {
  return decode_to(spec, LevelsView::after_reference(out, spec.form), in, &reference, out, 0, nullptr, scratch);
}

Status decode_levels_coarse(const ChunkSpec& spec, std::span<const std::uint8_t> in, bool edges,
                            const MutableBox3& chunk, const LevelForm& form, unsigned level, const MutableBox3& out,
                            std::span<std::uint8_t> scratch) {
  if (!may_be_levels(spec, edges)) return not_in_levels();
  LevelsView view(chunk, spec.form);
  view.axes.edges = edges;
  const unsigned own = own_level(form, view, level);
  std::array<unsigned, kMaxAxes> has{};
  for (std::size_t a = 0; a < view.axes.rank; ++a) has[a] = view.axes.hierarchical(a) ? own : 0;
  const CoarsePlaces places = coarse_places(form, view, has, out);
  return decode_to(spec, view, in, nullptr, chunk, own, &places, scratch);
}

Result<Vector<std::uint64_t>> level_cuts(const ChunkSpec& spec, std::span<const std::uint8_t> chunk,
                                         const std::array<std::uint64_t, 3>& extents, const LevelForm& form) {
  Vector<std::uint64_t> cuts;
  if (chunk.size() > kLatticeHead && chunk[0] == static_cast<std::uint8_t>(Mode::lattice)) {
    QUERN_ASSIGN_OR_RETURN(cuts, level_cuts(integer_spec(spec), chunk.subspan(kLatticeHead), extents, form));
    for (std::uint64_t& cut : cuts) cut += kLatticeHead;
    return cuts;
  }
  if (chunk.empty() || !is_in_levels(chunk[0])) return cuts;
  LevelsView view(MutableBox3{nullptr, extents}, spec.form);
  view.axes.edges = chunk[0] == static_cast<std::uint8_t>(Mode::levels_edges);
  if (own_level(form, view, 1) == 0) return cuts;
  Vector<Predictor> predictors(LevelsModel::predictor_count(view.axes));
  LevelsModel model;
  model.networks = spec.networks;
  model.predictors = predictors.data();
  std::span<const std::uint8_t> rest = chunk.subspan(1);
  QUERN_RETURN_IF_ERROR(read_levels_model(rest, view.axes, model));
  Reader reader(rest);
  QUERN_ASSIGN_OR_RETURN(const std::uint64_t exceptions, reader.varint(view.axes.elems()));
  for (std::uint64_t i = 0; i < exceptions; ++i) {
    QUERN_RETURN_IF_ERROR(reader.varint(view.axes.elems()).status());
    QUERN_RETURN_IF_ERROR(reader.skip(dtype_bytes(spec.dtype)));
  }
  QUERN_ASSIGN_OR_RETURN(const std::uint8_t own, reader.u8());
  for (std::size_t s = 0; s < own; ++s) {
    QUERN_ASSIGN_OR_RETURN(const std::uint64_t bytes, reader.varint(chunk.size()));
    cuts.push_back(bytes);
  }
  std::uint64_t at = chunk.size() - reader.remaining();
  for (std::uint64_t& cut : cuts) cut = at += cut;
  return cuts;
}

}  // namespace quern::codec::stencil
