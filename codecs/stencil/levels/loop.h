// The closed loop over the rows of a level: predictions from values as decoders will have them, codes of what elements
// differ from those by, and the elements that miss the bound.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <quern/memory.h>

#include "codecs/stencil/elements.h"
#include "codecs/stencil/levels/encode_memory.h"
#include "codecs/stencil/levels/model.h"
#include "codecs/stencil/levels/rows.h"
#include "codecs/stencil/levels/sections.h"
#include "codecs/stencil/levels/view.h"
#include "codecs/stencil/levels/walk.h"
#include "kernels/stencil/rules.h"

namespace quern::codec::stencil {

/// Whether values may change again; when not, they are checked against the bound.
enum class Run : std::uint8_t { first, last };

/// Codes with values in binary64, or narrow.
template <class Element, class Value>
class LevelsLoop {
 public:
  using Bits = typename Element::Bits;
  using Magnitude = kernels::MagnitudeOf<Value>;

  /// All outlive the loop.
  LevelsLoop(const EncodeSpec& spec, const LevelsView& view, const LevelsModel& model,
             LevelsEncodeMemory<Value>& memory, LevelRows<Element>& rows)
      : spec_(spec), view_(view), model_(model), memory_(memory), rows_(rows), first_(first_of_levels(view.axes)) {}

  /// False when a value that should be narrow was not: then nothing that was coded has a meaning.
  bool narrow() const { return narrow_; }
  /// What a network makes of a point is not narrow.
  void give_up_narrow() { narrow_ = false; }
  /// Elements that missed the bound in last runs, by their number in C order.
  Vector<std::pair<std::uint64_t, Bits>>& exceptions() { return exceptions_; }

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

  /// The loop over all rows of the open level.
  void run_level(Run pass) {
    for_coded_runs(memory_.grid, [&](const CodedRun& run) {
      code_run(run, pass);
      return true;
    });
  }

  /// The closed loop over the rows of a run.
  void code_run(const CodedRun& run, Run pass) {
    memory_.predictor.open_values(memory_.grid, run, model_);
    for_rows(memory_.grid, run, [&](const CodedRow& row, std::size_t number) {
      const std::size_t begin = number * memory_.grid.row_pitch();
      const kernels::RowSourcesView<Value>& sources =
          memory_.predictor.predicted_row(number, begin, row.columns, spec_.kernels->edges);
      bool kept = false;
      if (!rows_.masked()) {
        kept = code_row(row, sources, begin, pass);
      } else {
        code_masked_row(row, sources, begin);
      }
      if (pass == Run::last && !kept) note_exceptions(row);
    });
    memory_.grid.finish_run(run.first.parity_class, run.first.index);
  }

  /// Finds the elements of the open level that miss the bound.
  void check_level() {
    for_coded_runs(memory_.grid, [&](const CodedRun& run) {
      for_rows(memory_.grid, run, [&](const CodedRow& row, std::size_t) {
        rows_.load_originals(row.place.parity_class, row.place.index, row.code);
        note_exceptions(row);
      });
      return true;
    });
  }

 private:
  /// True when all elements of the row clearly keep the bound, which is only looked at in the last pass.
  bool code_row(const CodedRow& row, const kernels::RowSourcesView<Value>& sources, std::size_t begin, Run pass) {
    constexpr bool kSingle = std::is_same_v<Element, F32>;
    constexpr bool kChecked = kSingle || std::is_same_v<Element, F64>;
    const std::size_t c = row.place.parity_class;
    Value* const values = memory_.grid.values(c, row.place.index);
    Magnitude* const magnitudes = memory_.grid.magnitudes(c, row.place.index);
    rows_.load_originals(c, row.place.index, row.code);
    kernels::CodedRowBuffers<Value> to;
    to.originals = rows_.originals();
    to.base = model_.format.base;
    to.unit = model_.format.unit();
    to.inverse = 1 / to.unit;
    to.quantum = model_.quantum(row.place.level);
    to.most = kernels::kMaxMagnitude;
    to.most_magnitude = kernels::kMaxContextMagnitude;
    to.values = values;
    to.magnitudes = magnitudes;
    to.codes = memory_.codes + first_[row.place.level] + row.code;
    if (kChecked && pass == Run::last) to.strict = clear_distance(spec_.bound);
    to.single = kSingle;
    const kernels::CodedRowResult result = code_columns(sources, begin, row.columns, to);
    narrow_ = narrow_ && result.narrow;
    memory_.grid.finish_row(c, values, magnitudes);
    return result.kept;
  }
  /// By kernels of small values where they are; what a row makes of them is looked at either way.
  kernels::CodedRowResult code_columns(const kernels::RowSourcesView<Value>& sources, std::size_t begin,
                                       std::size_t columns, kernels::CodedRowBuffers<Value>& to) {
    const kernels::StencilRowKernels& rows = spec_.kernels->rows;
    SmallValues<Value>& known = memory_.grid.small();
    if constexpr (SmallValues<Value>::kPossible) {
      if (memory_.predictor.small(memory_.grid)) {
        to.limit = known.limit();
        const kernels::CodedRowResult result = rows.small.code(sources, begin, columns, to);
        if (result.narrow) return result;
        known.give_up();
        to.limit = kernels::kMostNarrow;
      }
    }
    const kernels::CodedRowResult result = rows.of<Value>().code(sources, begin, columns, to);
    known.see(to.values, columns);
    return result;
  }
  void code_masked_row(const CodedRow& row, const kernels::RowSourcesView<Value>& sources, std::size_t begin) {
    constexpr std::int64_t kMost = kernels::kMaxMagnitude;
    const std::size_t c = row.place.parity_class;
    const std::int64_t quantum = model_.quantum(row.place.level);
    const double inverse = 1 / static_cast<double>(quantum);
    const std::size_t at = first_[row.place.level] + row.code;
    const std::int64_t* const wanted = rows_.row(row);
    Value* const values = memory_.grid.values(c, row.place.index);
    Magnitude* const magnitudes = memory_.grid.magnitudes(c, row.place.index);
    const std::int64_t* const predicted = memory_.numbers;
    spec_.kernels->rows.of<Value>().predict(sources, begin, row.columns, memory_.numbers, memory_.levels);
    const std::uint8_t* const special = rows_.special(row.code);
    for (std::size_t x = 0; x < row.columns; ++x) {
      std::int64_t value = 0;
      std::int64_t code = 0;
      if (special[x] != 0) {
        value = std::clamp(predicted[x], model_.format.low, model_.format.high);
      } else {
        code = std::clamp(static_cast<std::int64_t>(nearest(static_cast<double>(wanted[x] - predicted[x]) * inverse)),
                          -kMost, kMost);
        value = predicted[x] + code * quantum;
      }
      memory_.codes[at + x] = static_cast<std::int32_t>(code);
      const std::uint32_t magnitude = kernels::capped_magnitude(code, kernels::kMaxContextMagnitude);
      magnitudes[x] = static_cast<Magnitude>(magnitude);
      narrow_ = narrow_ && magnitudes[x] == magnitude;
      keep(static_cast<double>(value), values[x]);
    }
    memory_.grid.small().see(values, row.columns);
    memory_.grid.finish_row(c, values, magnitudes);
  }

  /// Finds the elements of a row, whose originals are loaded, that miss the bound.
  void note_exceptions(const CodedRow& row) {
    constexpr std::size_t kBlock = 64;
    const unsigned level = row.place.level;
    const std::uint8_t* const special = rows_.special(row.code);
    const Value* const values = memory_.grid.values(row.place.parity_class, row.place.index);
    const double unit = model_.format.unit();
    const double base = model_.format.base;
    for (std::size_t begin = 0; begin < row.columns; begin += kBlock) {
      const std::size_t count = std::min(kBlock, row.columns - begin);
      std::array<double, kBlock> block;  // NOLINT: the first `count` are set
      std::copy_n(values + begin, count, block.begin());
      if (clearly_kept<Element>(*spec_.kernels, rows_.originals() + begin, block.data(), count, unit, base,
                                spec_.bound))
        continue;
      const auto& place = row.place;
      const Bits* const from = rows_.elements(place.parity_class, place.index);
      const std::size_t step = rows_.row_step();
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

  const EncodeSpec& spec_;
  const LevelsView& view_;
  const LevelsModel& model_;
  LevelsEncodeMemory<Value>& memory_;
  LevelRows<Element>& rows_;
  std::array<std::size_t, kMaxLevels + 1> first_;
  Vector<std::pair<std::uint64_t, Bits>> exceptions_;
  bool narrow_ = true;
};

}  // namespace quern::codec::stencil
