// A chunk in levels to bytes.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#include "codecs/stencil/elements.h"
#include "codecs/stencil/exceptions.h"
#include "codecs/stencil/glance_cost.h"
#include "codecs/stencil/levels_chunk.h"
#include "codecs/stencil/levels_encode_memory.h"
#include "codecs/stencil/levels_fit.h"
#include "codecs/stencil/levels_grid.h"
#include "codecs/stencil/levels_model.h"
#include "codecs/stencil/levels_sections.h"
#include "codecs/stencil/levels_view.h"
#include "codecs/stencil/levels_walk.h"
#include "codecs/stencil/residual_fit.h"
#include "codecs/stencil/residual_symbols.h"
#include "codecs/stencil/symbol_counts.h"
#include "codecs/stencil/token_cost.h"
#include "libcompress/format/writer.h"

namespace quern::codec::stencil {
namespace {

constexpr std::uint64_t kSectionBytes = 1024;   // of a level, that make a section of its own worth its lane
constexpr std::size_t kLoopRounds = 2;          // of a level with a sequential axis
constexpr std::size_t kLineBytes = 64;          // of memory that are fetched together
constexpr std::size_t kFewContextSamples = 96;  // of a class, not worth weights

/// Codes with values in binary64, or narrow.
template <class Element, class Value>
class LevelsWriter final : public TargetRows {
 public:
  using Bits = typename Element::Bits;

  LevelsWriter(const ChunkSpec& spec, const ConstBox3& in, const ChunkModel& format, const LevelsView& view,
               LevelsEncodeMemory<Value>& memory)
      : spec_(spec), in_(in), view_(view), memory_(memory), top_(view.axes.top()) {
    model_.values = format;
    model_.tightening = spec.tightening;
    model_.predictors = memory.predictors;
    std::fill_n(memory.predictors, LevelsModel::predictor_count(view.axes), Predictor{});
    samples_.resize(2 * kParityClasses);
    std::size_t at = 0;
    for (unsigned level = top_ + 1; level-- > 0;) {
      first_[level] = at;
      std::size_t points = 1;
      std::size_t coarser = 1;
      for (std::size_t a = 0; a < view.axes.rank; ++a) {
        points *= view.axes.points(a, level);
        coarser *= view.axes.points(a, level + 1);
      }
      at += level == top_ ? points : points - coarser;
    }
    first_[kMaxLevels] = at;
  }

  /// Codes all levels.
  void code() {
    choose_border();
    for (unsigned level = top_ + 1; level-- > 0;) {
      open(level);
      if (in_.special != nullptr) load_special(level);
      view_.axes.sequential ? code_planes(level) : code_classes(level);
      if (spec_.glance) {
        level_bits_[level] = entropy(level) >> 12;
        glance(level);
        continue;
      }
      sample_contexts(level);
      if (level > 1) continue;
      fit_set(level);
      if (level == 1) {
        for (unsigned again = top_ + 1; again-- > 1;) {
          open(again);
          run_level(Run::last);
          finish(again);
        }
      } else {
        if (view_.axes.sequential) check_level();
        finish(0);
      }
    }
  }

  ChunkCost estimate() {
    code();
    if (spec_.glance) return {glance_bits_, 0, plain_bits()};
    const std::uint64_t bits = estimate_levels_cost(counts_, model_.values);
    Vector<std::uint8_t> head;
    write_levels_model(model_, view_.axes, head);
    return {bits + (exceptions_.size() * (sizeof(Bits) + 2) << 15), std::uint64_t{head.size()} << 15, plain_bits()};
  }

  /// False when a value that should be narrow was not: then nothing that was written or estimated has a meaning.
  bool narrow() const { return narrow_; }

  std::size_t write(std::span<std::uint8_t> out) {
    code();
    if (!narrow_) return 0;
    const std::uint64_t bits = fit_levels(counts_, model_.values) >> 12;
    const std::size_t raw_bytes = memory_.elems * sizeof(Bits);
    if (bits / 8 + exceptions_.size() >= raw_bytes) return 0;
    Vector<std::uint8_t> head;
    head.push_back(static_cast<std::uint8_t>(Mode::levels));
    write_levels_model(model_, view_.axes, head);
    Writer writer(head);
    std::sort(exceptions_.begin(), exceptions_.end());
    write_exceptions(exceptions_, writer);
    memory_.sections.fill_entries(model_.values);
    const LevelResiduals residuals{&axes(), memory_.elems, first_, level_bits_, memory_.codes, memory_.symbols};
    // Fine levels that are large enough get sections of their own; those above them share the first.
    unsigned own = 0;
    while (own < top_ && level_bits_[own] / 8 >= kSectionBytes) ++own;
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

 private:
  /// Sets a value, and notes if it should be narrow and is not.
  void keep(double value, Value& to) {
    if constexpr (!std::is_same_v<Value, double>) {
      constexpr auto kMost = static_cast<double>(kernels::kMostNarrow);
      if (!(value > -kMost && value < kMost)) {
        narrow_ = false;
        value = 0;
      }
    }
    to = static_cast<Value>(value);
  }

  /// Order-0 entropy of all levels, in units of 2^-12.
  std::uint64_t plain_bits() const {
    std::uint64_t bits = 0;
    for (const std::uint64_t level : level_bits_) bits += level << 12;
    return bits;
  }

  const LevelAxes& axes() const { return view_.axes; }
  LevelGridOf<Value>& grid() { return memory_.grid; }
  LevelTargets targets(unsigned level) {
    return {this, in_.special == nullptr ? nullptr : memory_.special + first_[level], memory_.codes + first_[level]};
  }

  void open(unsigned level) {
    grid().open(level, model_.border, spec_.kernels->rows);
    memory_.predictor.start_level(grid());
  }

  /// Which elements of a level are special.
  void load_special(unsigned level) {
    const std::size_t step = view_.row_step(level, view_.special_strides);
    for_coded_runs(grid(), [&](const CodedRun& run) {
      for_rows(grid(), run, [&](const CodedRow& row, std::size_t) {
        const std::uint8_t* const special =
            in_.special + view_.row_start(row.place.parity_class, level, row.place.index, view_.special_strides);
        std::uint8_t* const mask = memory_.special + first_[level] + row.code;
        for (std::size_t x = 0; x < row.columns; ++x) mask[x] = special[x * step] != 0 ? 1 : 0;
      });
      return true;
    });
  }

  /// Fills the row's originals, and its targets: special elements take the ordinary one before them in their row. Rows
  /// are taken from the array whenever they are wanted, which costs less than to keep them all.
  const std::int64_t* row(std::size_t parity_class, const RowIndex& index, std::size_t code) override {
    const unsigned level = grid().level();
    const std::size_t columns = grid().view(parity_class).extents[axes().rank - 1];
    load_originals(parity_class, index);
    std::int64_t* const to = memory_.targets;
    spec_.kernels->units(memory_.originals, columns, model_.values.base, 1 / model_.values.unit(), to);
    if (in_.special == nullptr) return to;
    const std::uint8_t* const mask = memory_.special + first_[level] + code;
    std::int64_t last = 0;
    for (std::size_t x = columns; x-- > 0;)
      if (mask[x] == 0) last = to[x];
    for (std::size_t x = 0; x < columns; ++x) {
      if (mask[x] != 0) to[x] = last;
      last = to[x];
    }
    return to;
  }
  const std::int64_t* row(const CodedRow& coded) {
    return row(coded.place.parity_class, coded.place.index, coded.code);
  }
  void load_originals(std::size_t parity_class, const RowIndex& index) {
    const unsigned level = grid().level();
    const std::size_t columns = grid().view(parity_class).extents[axes().rank - 1];
    const std::size_t step = view_.row_step(level, view_.strides);
    const Bits* const from =
        static_cast<const Bits*>(in_.data) + view_.row_start(parity_class, level, index, view_.strides);
    gather(from, step, columns, memory_.originals);
    // Of rows that skip others, processors do not foresee the next.
    const std::size_t axis = grid().run_axis();
    if (axis == kMaxAxes || index[axis] + 1 >= grid().run_rows(parity_class)) return;
    const auto* const next = reinterpret_cast<const std::uint8_t*>(from + (view_.strides[axis] << (level + 1)));
    for (std::size_t at = 0; at < columns * step * sizeof(Bits); at += kLineBytes) __builtin_prefetch(next + at);
  }

  /// Elements `step` apart; mostly two.
  void gather(const Bits* from, std::size_t step, std::size_t count, double* out) const {
    if constexpr (std::is_same_v<Element, F32>) {
      spec_.kernels->widen(from, step, count, out);
    } else {
      for (std::size_t x = 0; x < count; ++x) out[x] = Element::value(from[x * step]);
    }
  }

  /// Whether the last points of an axis lie nearer to the line through those before them than to the one before.
  void choose_border() {
    constexpr std::size_t kLines = 512;
    const double inverse = 1 / model_.values.step;
    std::uint64_t flat = 0;
    std::uint64_t line = 0;
    const auto cost = [](double d) {
      const double v = std::fabs(d);
      return kernels::log2_fixed(256 + static_cast<std::uint32_t>(v < 0x1p20 ? v * 512 : 0x1p29));
    };
    for (std::size_t axis = 0; axis < axes().rank; ++axis) {
      if (!axes().hierarchical(axis)) continue;
      for (unsigned level = 0; level < 3; ++level) {
        const std::size_t n = axes().points(axis, level);
        if (n < 4 || n % 2 != 0) continue;
        const std::size_t step = view_.strides[axis] << level;
        const std::size_t lines = memory_.elems / axes().extents[axis];
        const std::size_t wanted = std::min(lines, kLines);
        for (std::size_t i = 0; i < wanted; ++i) {
          std::size_t rest = static_cast<std::size_t>(std::uint64_t{i} * lines / wanted);
          std::size_t at = (n - 1) * step;
          std::size_t special = (n - 1) * (view_.special_strides[axis] << level);
          for (std::size_t a = axes().rank; a-- > 0;) {
            if (a == axis) continue;
            at += rest % axes().extents[a] * view_.strides[a];
            special += rest % axes().extents[a] * view_.special_strides[a];
            rest /= axes().extents[a];
          }
          if (in_.special != nullptr && in_.special[special] != 0) continue;
          const Bits* const data = static_cast<const Bits*>(in_.data) + at;
          const double last = Element::value(*data) * inverse;
          const double before = Element::value(*(data - step)) * inverse;
          const double farther = Element::value(*(data - 3 * step)) * inverse;
          if (!(last - last == 0) || !(before - before == 0) || !(farther - farther == 0)) continue;
          flat += cost(last - before);
          line += cost(last - (1.5 * before - 0.5 * farther));
        }
      }
    }
    model_.border = line < flat ? Border::linear : Border::mirrored;
  }

  void choose(unsigned level, const CodePlaces& places, std::size_t parity_class, bool later) {
    choose_predictor(grid(), ClassRows(grid(), parity_class, later), places, targets(level),
                     memory_.predictor.list(later, parity_class), *spec_.kernels, fit_room_,
                     spec_.parts.weights && !spec_.quick, model_);
    memory_.predictor.forget(later, parity_class);
  }

  /// Without a sequential axis a class is fitted when all that it looks at has its final values.
  void code_classes(unsigned level) {
    const CodePlaces places(grid());
    std::size_t chosen = 0;  // class 0 is only coded at the top, first
    bool first = true;
    for_coded_runs(grid(), [&](const CodedRun& run) {
      if (first || run.first.parity_class != chosen) choose(level, places, run.first.parity_class, false);
      first = false;
      chosen = run.first.parity_class;
      code_run(run, level == 0 ? Run::last : Run::first);
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
        const std::int64_t* const from = this->row(row);
        for (std::size_t x = 0; x < row.columns; ++x)
          keep(nearest(static_cast<double>(from[x]) * inverse) * quantum, values[x]);
        std::uint32_t* const magnitudes = grid().magnitudes(c, row.place.index);
        std::fill_n(magnitudes, row.columns, 0u);
        grid().finish_row(c, values, magnitudes);
      });
      grid().finish_run(run.first.parity_class, run.first.index);
      return true;
    });
    std::uint64_t least = UINT64_MAX;
    Vector<Predictor> best;
    Predictor* const own = &model_.predictor(level, false, 0);
    for (std::size_t round = 0; round < (spec_.glance || spec_.quick ? 1 : kLoopRounds); ++round) {
      for (std::size_t i = 0; i < classes.count; ++i)
        for (const bool later : {false, true}) choose(level, places, classes.list[i], later);
      run_level(Run::first);
      const std::uint64_t cost = entropy(level);
      if (cost < least) {
        least = cost;
        best.assign(own, own + 2 * kParityClasses);
      } else {
        std::copy(best.begin(), best.end(), own);
        memory_.predictor.start_level(grid());
        run_level(Run::first);
      }
    }
  }

  std::uint64_t entropy(unsigned level) const {
    TokenCounts counts{};
    const std::size_t end = level == 0 ? memory_.elems : first_[level - 1];
    for (std::size_t i = first_[level]; i < end; ++i) {
      const std::int32_t code = memory_.codes[i];
      ++counts[kernels::token_of(static_cast<std::uint32_t>(code < 0 ? -code : code))];
    }
    return token_cost(counts);
  }

  void glance(unsigned level) {
    GlanceCost cost;
    for_coded_runs(grid(), [&](const CodedRun& run) {
      for_rows(grid(), run, [&](const CodedRow& row, std::size_t) {
        const std::size_t at = first_[level] + row.code;
        cost.add_row(memory_.codes + at, in_.special == nullptr ? nullptr : memory_.special + at, row.columns);
      });
      return true;
    });
    glance_bits_ += cost.bits();
  }

  /// Whether values may change again; when not, they are checked against the bound.
  enum class Run : std::uint8_t { first, last };

  void run_level(Run pass) {
    for_coded_runs(grid(), [&](const CodedRun& run) {
      code_run(run, pass);
      return true;
    });
  }

  /// The closed loop over the rows of a run.
  void code_run(const CodedRun& run, Run pass) {
    memory_.predictor.open_values(grid(), run, model_);
    for_rows(grid(), run, [&](const CodedRow& row, std::size_t number) {
      const kernels::RowSourcesView<Value>& sources = memory_.predictor.row(number);
      const std::size_t begin = number * grid().row_pitch();
      bool kept = false;
      if (in_.special == nullptr) {
        kept = code_row(row, sources, begin, pass);
      } else {
        code_masked_row(row, sources, begin);
      }
      if (pass == Run::last && !kept) note_exceptions(row);
    });
    grid().finish_run(run.first.parity_class, run.first.index);
  }
  /// True when all elements of the row clearly keep the bound, which is only looked at in the last pass.
  bool code_row(const CodedRow& row, const kernels::RowSourcesView<Value>& sources, std::size_t begin, Run pass) {
    constexpr bool kSingle = std::is_same_v<Element, F32>;
    constexpr bool kChecked = kSingle || std::is_same_v<Element, F64>;
    const std::size_t c = row.place.parity_class;
    Value* const values = grid().values(c, row.place.index);
    std::uint32_t* const magnitudes = grid().magnitudes(c, row.place.index);
    load_originals(c, row.place.index);
    kernels::CodedRowBuffers<Value> to;
    to.originals = memory_.originals;
    to.base = model_.values.base;
    to.unit = model_.values.unit();
    to.inverse = 1 / to.unit;
    to.quantum = model_.quantum(row.place.level);
    to.most = kernels::kMaxMagnitude;
    to.most_magnitude = kMaxContextMagnitude;
    to.values = values;
    to.magnitudes = magnitudes;
    to.codes = memory_.codes + first_[row.place.level] + row.code;
    if (kChecked && pass == Run::last) to.strict = clear_distance(spec_.bound);
    to.single = kSingle;
    const kernels::CodedRowResult result = spec_.kernels->rows.of<Value>().code(sources, begin, row.columns, to);
    narrow_ = narrow_ && result.narrow;
    grid().finish_row(c, values, magnitudes);
    return result.kept;
  }
  void code_masked_row(const CodedRow& row, const kernels::RowSourcesView<Value>& sources, std::size_t begin) {
    constexpr std::int64_t kMost = kernels::kMaxMagnitude;
    const std::size_t c = row.place.parity_class;
    const std::int64_t quantum = model_.quantum(row.place.level);
    const double inverse = 1 / static_cast<double>(quantum);
    const std::size_t at = first_[row.place.level] + row.code;
    const std::int64_t* const wanted = this->row(row);
    Value* const values = grid().values(c, row.place.index);
    std::uint32_t* const magnitudes = grid().magnitudes(c, row.place.index);
    const std::int64_t* const predicted = memory_.numbers;
    spec_.kernels->rows.of<Value>().predict(sources, begin, row.columns, memory_.numbers, memory_.levels);
    const std::uint8_t* const special = memory_.special + at;
    for (std::size_t x = 0; x < row.columns; ++x) {
      std::int64_t value = 0;
      std::int64_t code = 0;
      if (special[x] != 0) {
        value = std::clamp(predicted[x], model_.values.low, model_.values.high);
      } else {
        code = std::clamp(static_cast<std::int64_t>(nearest(static_cast<double>(wanted[x] - predicted[x]) * inverse)),
                          -kMost, kMost);
        value = predicted[x] + code * quantum;
      }
      memory_.codes[at + x] = static_cast<std::int32_t>(code);
      magnitudes[x] = static_cast<std::uint32_t>(std::min<std::int64_t>(code < 0 ? -code : code, kMaxContextMagnitude));
      keep(static_cast<double>(value), values[x]);
    }
    grid().finish_row(c, values, magnitudes);
  }

  void sample_contexts(unsigned level) {
    const CodePlaces places(grid());
    const CodedClasses classes(axes(), level);
    const auto set = static_cast<unsigned>(context_set(level));
    for (std::size_t i = 0; i < classes.count; ++i) {
      for (const bool later : {false, true}) {
        if (later && axes().planes() == 1) continue;
        const std::size_t c = classes.list[i];
        ContextSamples& samples = samples_[(later ? 1 : 0) * kParityClasses + c];
        if (samples.filled.empty()) samples.start(FeatureList(axes(), set, c, later));
        add_context_samples(grid(), ClassRows(grid(), c, later), places, targets(level), model_, *spec_.kernels,
                            {memory_.predicted, memory_.spread}, samples);
      }
    }
  }

  /// Fits the context weights that the levels sampled so far share.
  void fit_set(unsigned level) {
    const std::size_t set = context_set(level);
    for (const bool later : {false, true}) {
      for (std::size_t c = 0; c < kParityClasses; ++c) {
        ContextSamples& samples = samples_[(later ? 1 : 0) * kParityClasses + c];
        if (samples.count() >= kFewContextSamples)
          model_.contexts[set][later ? 1 : 0][c] = fit_contexts(samples, !spec_.parts.contexts, *spec_.kernels);
        samples.filled.clear();
      }
    }
  }

  /// Finds the elements of the open level that miss the bound.
  void check_level() {
    for_coded_runs(grid(), [&](const CodedRun& run) {
      for_rows(grid(), run, [&](const CodedRow& row, std::size_t) {
        load_originals(row.place.parity_class, row.place.index);
        note_exceptions(row);
      });
      return true;
    });
  }

  /// Symbols of the open level, whose values are final.
  void finish(unsigned level) {
    memory_.counts.clear();
    for_coded_runs(grid(), [&](const CodedRun& run) {
      memory_.predictor.open_contexts(grid(), run, model_);
      const Value* values = grid().values(run.first.parity_class, run.first.index);
      std::size_t at = first_[level] + run.code;
      for (std::size_t r = 0; r < run.rows; ++r) {
        spec_.kernels->rows.of<Value>().contexts(memory_.predictor.row(r), r * grid().row_pitch(), run.columns, values,
                                                 memory_.codes + at, model_.quantum(level), memory_.contexts);
        note_symbols(in_.special == nullptr ? nullptr : memory_.special + at, memory_.contexts, memory_.codes + at,
                     run.columns, memory_.symbols + at);
        values += grid().row_pitch();
        at += run.columns;
      }
      return true;
    });
    level_bits_[level] = token_cost(memory_.counts.add_to(counts_)) >> 12;
  }

  void note_symbols(const std::uint8_t* special, const std::uint32_t* sums, const std::int32_t* codes,
                    std::size_t columns, std::uint16_t* symbols) {
    spec_.kernels->symbols(sums, codes, columns, symbols);
    memory_.counts.note(symbols, special, columns);
  }

  /// Finds the elements of a row, whose originals are loaded, that miss the bound.
  void note_exceptions(const CodedRow& row) {
    constexpr std::size_t kBlock = 64;
    const unsigned level = row.place.level;
    const std::size_t at = first_[level] + row.code;
    const std::uint8_t* const special = in_.special == nullptr ? nullptr : memory_.special + at;
    const Value* const values = grid().values(row.place.parity_class, row.place.index);
    const double unit = model_.values.unit();
    const double base = model_.values.base;
    for (std::size_t begin = 0; begin < row.columns; begin += kBlock) {
      const std::size_t count = std::min(kBlock, row.columns - begin);
      std::array<double, kBlock> block;  // NOLINT: the first `count` are set
      std::copy_n(values + begin, count, block.begin());
      if (clearly_kept<Element>(*spec_.kernels, memory_.originals + begin, block.data(), count, unit, base,
                                spec_.bound))
        continue;
      const auto& place = row.place;
      const Bits* const from =
          static_cast<const Bits*>(in_.data) + view_.row_start(place.parity_class, level, place.index, view_.strides);
      const std::size_t step = view_.row_step(level, view_.strides);
      const auto dense = view_.dense();
      const std::size_t index = view_.row_start(place.parity_class, level, place.index, dense);
      const std::size_t dense_step = view_.row_step(level, dense);
      for (std::size_t x = begin; x < begin + count; ++x) {
        if (special != nullptr && special[x] != 0) continue;
        const Bits bits = from[x * step];
        if (!keeps_bound<Element>(bits, Element::bits(block[x - begin] * unit + base), spec_.bound))
          exceptions_.emplace_back(index + x * dense_step, bits);
      }
    }
  }

  const ChunkSpec& spec_;
  const ConstBox3& in_;
  const LevelsView& view_;
  LevelsEncodeMemory<Value>& memory_;
  unsigned top_;
  std::array<std::size_t, kMaxLevels + 1> first_{};  ///< element of each level in the order of coding
  LevelsModel model_;
  LevelCounts counts_{};
  Vector<ContextSamples> samples_;
  FitRoom fit_room_;
  Vector<std::pair<std::uint64_t, Bits>> exceptions_;
  std::uint64_t glance_bits_ = 0;
  bool narrow_ = true;
  std::array<std::uint64_t, kMaxLevels> level_bits_{};  ///< about what each level takes
};

}  // namespace

std::size_t levels_encode_scratch_bytes(const ChunkSpec& spec) {
  Carver carver(nullptr);
  const LevelsEncodeMemory<double> memory(carver, LevelsView(full_box(spec), spec.form).axes, spec);
  return carver.used() + carver.used() / 8 + 65536;
}

namespace {

/// Calls f(writer) with memory cut from scratch; first with narrow values if they `may` be.
template <class R, class F>
Result<R> with_writer(bool may, const ChunkSpec& spec, const ConstBox3& in, const ChunkModel& format,
                      std::span<std::uint8_t> scratch, const F& f) {
  const LevelsView view(in, spec.form);
  Carver carver(nullptr);
  const LevelsEncodeMemory<double> needed(carver, view.axes, spec);
  if (carver.used() > scratch.size()) return Status(StatusCode::internal, "stencil: scratch is too small for a chunk");
  return with_element(spec.dtype, [&](auto element) -> Result<R> {
    if (may) {
      Carver cut(scratch.data());
      LevelsEncodeMemory<std::int32_t> memory(cut, view.axes, spec);
      LevelsWriter<decltype(element), std::int32_t> writer(spec, in, format, view, memory);
      const R result = f(writer);
      if (writer.narrow()) return result;
    }
    Carver cut(scratch.data());
    LevelsEncodeMemory<double> memory(cut, view.axes, spec);
    LevelsWriter<decltype(element), double> writer(spec, in, format, view, memory);
    return f(writer);
  });
}

}  // namespace

Result<std::size_t> encode_levels(const ChunkSpec& spec, const ConstBox3& in, const ChunkModel& format, bool narrow,
                                  std::span<std::uint8_t> out, std::span<std::uint8_t> scratch) {
  return with_writer<std::size_t>(narrow, spec, in, format, scratch, [&](auto& writer) { return writer.write(out); });
}

Result<ChunkCost> estimate_levels(const ChunkSpec& spec, const ConstBox3& in, const ChunkModel& format, bool narrow,
                                  std::span<std::uint8_t> scratch) {
  return with_writer<ChunkCost>(narrow, spec, in, format, scratch, [](auto& writer) { return writer.estimate(); });
}

}  // namespace quern::codec::stencil
