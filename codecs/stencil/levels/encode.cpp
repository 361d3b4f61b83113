// A chunk in levels to bytes.
#include <algorithm>
#include <cstring>

#include "codecs/stencil/device/levels_coarser.h"
#include "codecs/stencil/elements.h"
#include "codecs/stencil/exceptions.h"
#include "codecs/stencil/levels/border.h"
#include "codecs/stencil/levels/chunk.h"
#include "codecs/stencil/levels/context_fit.h"
#include "codecs/stencil/levels/encode_memory.h"
#include "codecs/stencil/levels/fit.h"
#include "codecs/stencil/levels/given_plane.h"
#include "codecs/stencil/levels/grid.h"
#include "codecs/stencil/levels/loop.h"
#include "codecs/stencil/levels/model.h"
#include "codecs/stencil/levels/plane_rounds.h"
#include "codecs/stencil/levels/rows.h"
#include "codecs/stencil/levels/sections.h"
#include "codecs/stencil/levels/view.h"
#include "codecs/stencil/levels/walk.h"
#include "codecs/stencil/networks/level_networks.h"
#include "coding/distribution_fit.h"
#include "coding/quick_estimate.h"
#include "coding/symbol_counts.h"
#include "coding/token_cost.h"
#include "coding/token_tally.h"
#include "libcompress/format/writer.h"

namespace quern::codec::stencil {
namespace {

/// Encodes with values in binary64, or narrow.
template <class Element, class Value>
class LevelsWriter {
 public:
  using Bits = typename Element::Bits;

  /// `given`: the plane before the chunk's, in units and C order; null: there is none.
  LevelsWriter(const EncodeSpec& spec, const ConstBox3& in, const LevelsValueFormat& format, const LevelsView& view,
               const double* given, LevelsEncodeMemory<Value>& memory, bool sorted)
      : spec_(spec),
        in_(in),
        view_(view),
        given_(given),
        memory_(memory),
        top_(view.axes.top()),
        first_(first_of_levels(view.axes)),
        rows_(spec, in, view, model_.format, {memory.originals, memory.targets, memory.special}),
        loop_(spec, view, model_, memory, rows_),
        sorted_(sorted),
        sample_memory_(memory.before_symbols().samples),
        fit_room_(memory.before_symbols().fits) {
    model_.networks = spec.networks;
    model_.format = format;
    model_.tightening = spec.tightening;
    model_.predictors = memory.predictors;
    std::fill_n(memory.predictors, LevelsModel::predictor_count(view.axes), Predictor{});
    samples_.resize(2 * kParityClasses);
  }

  /// Codes all levels.
  void code() {
    if constexpr (LevelRows<Element>::kSorted) {
      const SortedElements sorted = memory_.sorted(view_);
      if (sorted.coarser != nullptr && !sorted_)
        sort_elements(view_, static_cast<const std::uint32_t*>(in_.data), sorted);
      rows_.take_from(sorted);
    }
    code_levels(top_, 0);
  }
  /// Those but the finest, with all that is known of them in the end; and opens the finest one.
  void code_coarser() {
    code_levels(top_, 1);
    open(0);
  }

  ChunkCost estimate() {
    code();
    if (spec_.quick_estimate) return {estimate_bits_, 0, plain_bits()};
    const std::uint64_t bits = coding::estimate_distributions_cost(counts_, model_.distributions);
    Vector<std::uint8_t> head;
    write_levels_model(model_, view_.axes, head);
    return {bits + (loop_.exceptions().size() * (sizeof(Bits) + 2) << 15), std::uint64_t{head.size()} << 15,
            plain_bits()};
  }

  /// False when a value that should be narrow was not, or one was so large that sums are not exact: then nothing that
  /// was written or estimated has a meaning.
  bool fits() const { return loop_.narrow() && exact_; }

  std::size_t write(std::span<std::uint8_t> out) {
    code();
    if (!fits()) return 0;
    const std::uint64_t bits = coding::fit_distributions(counts_, model_.distributions) >> 12;
    const std::size_t raw_bytes = memory_.elems * sizeof(Bits);
    if (bits / 8 + loop_.exceptions().size() >= raw_bytes) return 0;
    Vector<std::uint8_t> head;
    LevelAxes stored = view_.axes;
    stored.edges = stored.edges && uses_edges();
    if (given_ == nullptr) head.push_back(static_cast<std::uint8_t>(stored.edges ? Mode::levels_edges : Mode::levels));
    write_levels_model(model_, stored, head);
    Writer writer(head);
    std::sort(loop_.exceptions().begin(), loop_.exceptions().end());
    write_exceptions(loop_.exceptions(), writer);
    memory_.sections.fill_entries(model_.distributions);
    const LevelResiduals residuals{&axes(), memory_.elems, first_, level_bits_, memory_.codes, memory_.symbols};
    const unsigned own = own_sections(level_bits_, top_);
    writer.u8(static_cast<std::uint8_t>(own));
    Vector<std::uint8_t> payload;
    for (unsigned s = 0; s <= own; ++s) {
      const std::size_t before = payload.size();
      if (!memory_.sections.write(residuals, s == 0 ? top_ : own - s, own - s, payload, raw_bytes)) return 0;
      if (s < own) writer.varint(payload.size() - before);
    }
    if (head.size() + payload.size() > raw_bytes) return 0;
    std::memcpy(out.data(), head.data(), head.size());
    std::memcpy(out.data() + head.size(), payload.data(), payload.size());
    return head.size() + payload.size();
  }

  void tell(CoarserLevels& out) {
    out.model = model_;
    out.predictors.assign(memory_.predictors, memory_.predictors + LevelsModel::predictor_count(axes()));
    out.counts = counts_;
    out.bits = level_bits_;
    out.codes.assign(memory_.codes, memory_.codes + first_[0]);
    out.symbols.assign(memory_.symbols, memory_.symbols + first_[0]);
    for (const auto& [index, bits] : loop_.exceptions()) out.exceptions.emplace_back(index, bits);
    const std::size_t columns = grid().view(0).extents[axes().rank - 1];
    for (std::size_t r = 0; r < grid().view(0).rows; ++r) {
      const RowIndex index = grid().index_of(0, r);
      const Value* const values = grid().values(0, index);
      const kernels::MagnitudeOf<Value>* const magnitudes = grid().magnitudes(0, index);
      out.values.insert(out.values.end(), values, values + columns);
      out.magnitudes.insert(out.magnitudes.end(), magnitudes, magnitudes + columns);
    }
  }

 private:
  /// Codes levels from one to another; all their values are final if the last one is 0 or 1.
  void code_levels(unsigned first, unsigned last) {
    model_.border = choose_border<Element>(view_, in_, model_.format.step);
    grid().small().start(model_.format);
    for (unsigned level = first + 1; level-- > last;) {
      open(level);
      if (rows_.masked()) rows_.load_special(grid());
      codes_by_planes() ? code_planes(level) : code_classes(level);
      if (spec_.quick_estimate) {
        level_bits_[level] = entropy(level) >> 12;
        add_quick_estimate(level);
        continue;
      }
      sample_contexts(level);
      if (level > 1) continue;
      if (level == 1) {
        for (unsigned again = top_ + 1; again-- > 1;) {
          open(again);
          loop_.run_level(Run::last);
          finish(again);
        }
      } else {
        if (codes_by_planes()) loop_.check_level();
        finish(0);
      }
    }
  }

  /// Whether a class is predicted from groups that are not linear.
  bool uses_edges() const {
    for (std::size_t i = 0; i < LevelsModel::predictor_count(view_.axes); ++i)
      if (model_.predictors[i].edges) return true;
    return false;
  }

  /// Order-0 entropy of all levels, in units of 2^-12.
  std::uint64_t plain_bits() const {
    std::uint64_t bits = 0;
    for (const std::uint64_t level : level_bits_) bits += level << 12;
    return bits;
  }

  const LevelAxes& axes() const { return view_.axes; }
  /// Where planes follow each other they are fitted together; after one that is given there is a single one.
  bool codes_by_planes() const { return view_.axes.sequential && given_ == nullptr; }
  LevelGridOf<Value>& grid() { return memory_.grid; }
  LevelTargets targets(unsigned level) { return {&rows_, rows_.special(0), memory_.codes + first_[level]}; }

  void open(unsigned level) {
    grid().open(level, model_.border, spec_.kernels->rows);
    if (given_ != nullptr) load_given_plane(view_, given_, grid());
    memory_.predictor.start_level(grid());
    rows_.open(level);
  }

  void choose(unsigned level, const CodePlaces& places, std::size_t parity_class, bool later) {
    const bool network = predict_by_network(level, parity_class);
    choose_predictor(grid(), ClassRows(grid(), parity_class, later), places, targets(level),
                     memory_.predictor.list(later, parity_class), network, LevelsFitting(spec_),
                     memory_.predictor.edges(), fit_room_, model_);
    memory_.predictor.forget(later, parity_class);
  }

  /// Fills the rows of the class's network; false where it has none.
  bool predict_by_network(unsigned level, std::size_t parity_class) {
    const LevelNetworks* const networks = spec_.networks == nullptr ? nullptr : spec_.networks->networks;
    if (networks == nullptr || !spec_.parts.weights || !networks->predicts(axes(), level, parity_class)) return false;
    if (networks->predict_class(grid(), parity_class, model_.format.fraction_bits)) return true;
    loop_.give_up_narrow();
    return false;
  }

  /// Where one plane alone is coded, a class is fitted when all that it looks at has its final values.
  void code_classes(unsigned level) {
    const CodePlaces places(grid());
    std::size_t chosen = 0;  // class 0 is only coded at the top, first
    bool first = true;
    for_coded_runs(grid(), [&](const CodedRun& run) {
      if (first || run.first.parity_class != chosen) choose(level, places, run.first.parity_class, run.first.later);
      first = false;
      chosen = run.first.parity_class;
      loop_.code_run(run, level == 0 ? Run::last : Run::first);
      return true;
    });
  }

  /// With one, planes are fitted together: first on values rounded to codes, then on the reconstruction.
  void code_planes(unsigned level) {
    const CodePlaces places(grid());
    const CodedClasses classes(axes(), level);
    const auto quantum = static_cast<double>(model_.quantum(level));
    const double inverse = 1 / quantum;
    for_coded_runs(grid(), [&](const CodedRun& run) {
      for_rows(grid(), run, [&](const CodedRow& row, std::size_t) {
        const std::size_t c = row.place.parity_class;
        Value* const values = grid().values(c, row.place.index);
        const std::int64_t* const from = rows_.row(row);
        for (std::size_t x = 0; x < row.columns; ++x)
          loop_.keep(nearest(static_cast<double>(from[x]) * inverse) * quantum, values[x]);
        kernels::MagnitudeOf<Value>* const magnitudes = grid().magnitudes(c, row.place.index);
        std::memset(magnitudes, 0, row.columns * sizeof(*magnitudes));
        grid().small().see(values, row.columns);
        grid().finish_row(c, values, magnitudes);
      });
      grid().finish_run(run.first.parity_class, run.first.index);
      return true;
    });
    PlaneRounds rounds(spec_.quick_estimate ? 1 : loop_rounds(spec_.effort));
    for (auto next = PlaneRounds::Next::fit; next != PlaneRounds::Next::end;) {
      if (next == PlaneRounds::Next::code_again) {
        memory_.predictor.start_level(grid());
      } else {
        for (std::size_t i = 0; i < classes.count; ++i)
          for (const bool later : {false, true}) choose(level, places, classes.list[i], later);
      }
      loop_.run_level(Run::first);
      next = rounds.coded([&] { return entropy(level); }, &model_.predictor(level, false, 0));
    }
  }

  std::uint64_t entropy(unsigned level) const {
    const std::size_t end = level == 0 ? memory_.elems : first_[level - 1];
    coding::TokenTally tally;
    tally.add(spec_.kernels->residuals, memory_.codes + first_[level], nullptr, end - first_[level]);
    return coding::token_cost(tally.counts());
  }

  void add_quick_estimate(unsigned level) {
    coding::QuickEstimate cost;
    for_coded_runs(grid(), [&](const CodedRun& run) {
      for_rows(grid(), run, [&](const CodedRow& row, std::size_t) {
        const std::size_t at = first_[level] + row.code;
        cost.add_row(memory_.codes + at, rows_.special(row.code), row.columns);
      });
      return true;
    });
    estimate_bits_ += cost.bits();
  }

  /// Samples the classes of a level, and fits those whose levels have all been sampled then. The finest level does not
  /// share its weights, so that its classes need samples one after the other.
  void sample_contexts(unsigned level) {
    const CodePlaces places(grid());
    const CodedClasses classes(axes(), level);
    const auto set = static_cast<unsigned>(context_set(level));
    for (std::size_t i = 0; i < classes.count; ++i) {
      for (const bool later : {false, true}) {
        if (!codes_planes(axes(), later)) continue;
        const std::size_t c = classes.list[i];
        ContextSamples& samples = samples_[(later ? 1 : 0) * kParityClasses + c];
        if (samples.blocks.empty()) samples.start(fitted_features(axes(), set, c, later, spec_.effort));
        add_context_samples(grid(), ClassRows(grid(), c, later), places, targets(level), model_, LevelsFitting(spec_),
                            {memory_.predicted, memory_.spread, sample_memory_}, samples);
        if (level > 0) continue;
        fit_class_contexts(set, later, c, LevelsFitting(spec_), samples, model_);
        sample_memory_.give_back();
      }
    }
    if (level != 1) return;
    for (std::size_t i = 0; i < samples_.size(); ++i)
      fit_class_contexts(set, i >= kParityClasses, i % kParityClasses, LevelsFitting(spec_), samples_[i], model_);
    sample_memory_.give_back();
  }

  /// Symbols of the open level, whose values are final.
  void finish(unsigned level) {
    memory_.counts.clear();
    for_coded_runs(grid(), [&](const CodedRun& run) {
      memory_.predictor.open_contexts(grid(), run, model_);
      const Value* values = grid().values(run.first.parity_class, run.first.index);
      std::size_t at = first_[level] + run.code;
      for (std::size_t r = 0; r < run.rows; ++r) {
        if constexpr (std::is_same_v<Value, double>)
          exact_ = exact_ && all_within(values, run.columns, most_exact(model_.format));
        spec_.kernels->rows.of<Value>().contexts(memory_.predictor.row(r), r * grid().row_pitch(), run.columns, values,
                                                 memory_.codes + at, model_.quantum(level), memory_.contexts);
        note_symbols(rows_.special(at - first_[level]), memory_.contexts, memory_.codes + at, run.columns,
                     memory_.symbols + at);
        values += grid().row_pitch();
        at += run.columns;
      }
      return true;
    });
    level_bits_[level] = coding::token_cost(memory_.counts.add_to(counts_)) >> 12;
  }

  void note_symbols(const std::uint8_t* special, const std::uint32_t* sums, const std::int32_t* codes,
                    std::size_t columns, std::uint16_t* symbols) {
    spec_.kernels->residuals.symbols(sums, codes, columns, symbols);
    memory_.counts.note(symbols, special, columns);
  }

  const EncodeSpec& spec_;
  const ConstBox3& in_;
  const LevelsView& view_;
  const double* given_;
  LevelsEncodeMemory<Value>& memory_;
  unsigned top_;
  std::array<std::size_t, kMaxLevels + 1> first_;  ///< element of each level in the order of coding
  LevelsModel model_;
  LevelRows<Element> rows_;
  LevelsLoop<Element, Value> loop_;
  coding::BinCounts counts_{};
  bool sorted_;        ///< before the first level
  bool exact_ = true;  ///< so far
  SampleMemory sample_memory_;
  Vector<ContextSamples> samples_;
  FitRoom fit_room_;
  std::uint64_t estimate_bits_ = 0;
  std::array<std::uint64_t, kMaxLevels> level_bits_{};  ///< about what each level takes
};

}  // namespace

namespace {

std::size_t encode_scratch_for(const EncodeSpec& spec, const LevelsView& view) {
  Arena arena(nullptr);
  const LevelsEncodeMemory<double> memory(arena, view.axes, spec);
  return arena.used() + arena.used() / 8 + 65536;
}

}  // namespace

std::size_t levels_encode_scratch_bytes(const EncodeSpec& spec) {
  return encode_scratch_for(spec, LevelsView(full_box(spec), spec.form));
}

std::size_t levels_after_encode_scratch_bytes(const EncodeSpec& spec) {
  return encode_scratch_for(spec, LevelsView::after_reference(full_box(spec), spec.form));
}

namespace {

/// Calls f(writer) with memory cut from scratch, where elements are `sorted` or not; first with narrow values if they
/// `may` be.
template <class R, class F>
Result<R> with_writer(bool may, const EncodeSpec& spec, const ConstBox3& in, const LevelsView& view,
                      const double* given, const LevelsValueFormat& format, std::span<std::uint8_t> scratch,
                      bool sorted, const F& f) {
  Arena arena(nullptr);
  const LevelsEncodeMemory<double> needed(arena, view.axes, spec);
  if (arena.used() > scratch.size()) return Status(StatusCode::internal, "stencil: scratch is too small for a chunk");
  return with_element(spec.dtype, [&](auto element) -> Result<R> {
    if (may) {
      Arena cut(scratch.data());
      LevelsEncodeMemory<std::int32_t> memory(cut, view.axes, spec);
      LevelsWriter<decltype(element), std::int32_t> writer(spec, in, format, view, given, memory, sorted);
      const R result = f(writer);
      if (writer.fits()) return result;
      sorted = false;
    }
    // Groups that are not linear are made from narrow values alone.
    LevelsView linear = view;
    linear.axes.edges = false;
    Arena cut(scratch.data());
    LevelsEncodeMemory<double> memory(cut, linear.axes, spec);
    LevelsWriter<decltype(element), double> writer(spec, in, format, linear, given, memory, sorted);
    return f(writer);
  });
}

}  // namespace

SortedChunk sort_chunk(const EncodeSpec& spec, const ConstBox3& in, std::span<std::uint8_t> scratch) {
  SortedChunk result;
  if (dtype_bytes(spec.dtype) != sizeof(std::uint32_t) || in.special != nullptr) return result;
  const LevelsView view(in, spec.form);
  Arena arena(scratch.data());
  const LevelsCodesMemory memory(arena, view.axes);
  const SortedElements sorted = arena.used() > scratch.size() ? SortedElements{} : memory.sorted(view);
  if (sorted.coarser == nullptr) return result;
  sort_elements(view, static_cast<const std::uint32_t*>(in.data), sorted);
  result.sorted = true;
  result.parts = {ConstBox3{sorted.coarser, {1, 1, memory.first}},
                  ConstBox3{sorted.finest, {1, 1, memory.elems - memory.first}}};
  return result;
}

Result<std::size_t> encode_levels(const EncodeSpec& spec, const ConstBox3& in, const LevelsValueFormat& format,
                                  bool narrow, bool sorted, std::span<std::uint8_t> out,
                                  std::span<std::uint8_t> scratch) {
  return with_writer<std::size_t>(narrow, spec, in, LevelsView(in, spec.form), nullptr, format, scratch, sorted,
                                  [&](auto& writer) { return writer.write(out); });
}

Result<std::size_t> encode_levels_after(const EncodeSpec& spec, const ConstBox3& in, const ConstBox3& reference,
                                        const LevelsValueFormat& format, bool narrow, std::span<std::uint8_t> out,
                                        std::span<std::uint8_t> scratch) {
  Vector<double> given(static_cast<std::size_t>(in.elems()));
  with_element(spec.dtype,
               [&](auto element) { reference_in_units<decltype(element)>(reference, format, given.data()); });
  return with_writer<std::size_t>(narrow, spec, in, LevelsView::after_reference(in, spec.form), given.data(), format,
                                  scratch, false, [&](auto& writer) { return writer.write(out); });
}

Result<ChunkCost> estimate_levels(const EncodeSpec& spec, const ConstBox3& in, const LevelsValueFormat& format,
                                  bool narrow, std::span<std::uint8_t> scratch) {
  return with_writer<ChunkCost>(narrow, spec, in, LevelsView(in, spec.form), nullptr, format, scratch, false,
                                [](auto& writer) { return writer.estimate(); });
}

bool code_coarser_levels(const EncodeSpec& spec, const ConstBox3& in, const LevelsValueFormat& format, bool narrow,
                         std::span<std::uint8_t> scratch, CoarserLevels& out) {
  const auto told = with_writer<bool>(narrow, spec, in, LevelsView(in, spec.form), nullptr, format, scratch, false,
                                      [&](auto& writer) {
                                        writer.code_coarser();
                                        if (writer.fits()) writer.tell(out);
                                        return writer.fits();
                                      });
  return told.ok() && *told;
}

}  // namespace quern::codec::stencil
