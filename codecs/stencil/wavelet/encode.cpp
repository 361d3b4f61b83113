// A chunk under the wavelet transform to bytes.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "codecs/stencil/elements.h"
#include "codecs/stencil/exceptions.h"
#include "codecs/stencil/levels/chunk.h"
#include "codecs/stencil/plan/middle_box.h"
#include "codecs/stencil/wavelet/choices.h"
#include "codecs/stencil/wavelet/chunk.h"
#include "codecs/stencil/wavelet/context.h"
#include "codecs/stencil/wavelet/fill.h"
#include "codecs/stencil/wavelet/fit.h"
#include "codecs/stencil/wavelet/lifting.h"
#include "codecs/stencil/wavelet/model.h"
#include "coding/distribution_fit.h"
#include "coding/stream_writer.h"
#include "coding/symbol_counts.h"
#include "coding/token_cost.h"
#include "coding/token_tables.h"
#include "kernels/stencil/rules.h"
#include "kernels/stencil/wavelet_quantize.h"
#include "libcompress/core/arena.h"

namespace quern::codec::stencil {
namespace {

constexpr WaveletEffort kEstimateEffort{8192, 16, false};
// Of chunks of more than twice so many elements a part in the middle chooses the step. (It says less of the transform.)
constexpr std::uint64_t kMiddleElems = UINT64_C(1) << 18;
constexpr std::uint64_t kMiddleExtent = 32;  // of it at least

struct EncodeMemory {
  EncodeMemory(Arena& arena, const WaveletAxes& axes, std::size_t raw_bytes)
      : elems(axes.elems()),
        targets(arena.take<double>(elems)),
        coefficients(arena.take<double>(elems)),
        work(arena.take<double>(elems)),
        room(arena.take<double>(lifting_room(axes))),
        magnitudes(arena.take<std::uint32_t>(elems)),
        corrections(arena.take<std::uint32_t>(elems)),
        codes(arena.take<std::int32_t>(2 * elems)),
        symbols(arena.take<std::uint16_t>(2 * elems)),
        missing(arena.take<std::uint8_t>(elems)),
        features(arena.take<std::uint32_t>(kWaveletFeatures * longest_extent(axes))),
        constants(arena.take<std::uint16_t>(kMaxWaveletGroups)),
        counts(arena),
        entries(coding::take_entries(arena)),
        words_count(raw_bytes / 2 + coding::kSpareWords),
        words(arena.take<std::uint16_t>(words_count)) {}

  std::size_t elems;
  double* targets;       ///< values of elements, in units
  double* coefficients;  ///< of the transform that was chosen
  double* work;
  double* room;
  std::uint32_t* magnitudes;   ///< of codes of coefficients, where these lie
  std::uint32_t* corrections;  ///< of corrections
  std::int32_t* codes;         ///< of coefficients in the order of coding, then corrections
  std::uint16_t* symbols;
  std::uint8_t* missing;  ///< not 0: no ordinary finite element
  std::uint32_t* features;
  std::uint16_t* constants;
  coding::SymbolCounts counts;
  kernels::ResidualEntries entries;
  std::size_t words_count;
  std::uint16_t* words;
};

template <class Element>
class WaveletWriter {
 public:
  using Bits = typename Element::Bits;

  WaveletWriter(const EncodeSpec& spec, const ConstBox3& in, const LevelsView& view, EncodeMemory& memory)
      : spec_(spec), in_(in), view_(view), memory_(memory), data_(static_cast<const Bits*>(in.data)) {
    model_.axes = wavelet_axes(view);
    model_.masked = in.special != nullptr;
    model_.constants = memory.constants;
  }

  /// Chooses units and the transform; false when values are too large against the bound.
  bool prepare(const ChunkRange& range) {
    const std::optional<WaveletUnits> units = wavelet_units(spec_, range, axes());
    if (!units) return false;
    units_ = *units;
    model_.format.base = units_.base;
    model_.format.step = units_.unit;
    load();
    choose_transform();
    return true;
  }

  ChunkCost estimate() {
    if (spec_.quick_estimate) return {transform_bits_, 0, transform_bits_, transform_};
    if (transform_bits_ > spec_.most_plain)
      return {std::uint64_t{8 * sizeof(Bits)} * memory_.elems << 12, 0, transform_bits_};
    effort_ = kEstimateEffort;
    const std::uint64_t bits = code(first_step());
    const std::uint64_t model = std::uint64_t{model_bytes()} << 15;
    return {bits - model, model, transform_bits_};
  }

  /// The step that a chunk like this one takes least with.
  double choose_step() {
    effort_ = kEstimateEffort;
    return best_step().step;
  }

  /// With that step; 0: the best one.
  std::size_t write(std::span<std::uint8_t> out, double step) {
    const std::uint64_t least = step != 0 ? code(step) : code_best();
    const std::size_t raw_bytes = memory_.elems * sizeof(Bits);
    if ((least >> 15) >= raw_bytes) return 0;
    Vector<std::uint8_t> stored;
    stored.push_back(static_cast<std::uint8_t>(Mode::wavelet));
    write_wavelet_model(model_, stored);
    Writer writer(stored);
    write_exceptions(exceptions_, writer);
    coding::fill_token_entries(model_.distributions, memory_.entries);
    const unsigned stream_bits = coding::choose_stream_bits(least >> 15);
    coding::StreamWriter streams({memory_.words, memory_.words_count}, stream_bits);
    const coding::CodedRows rows{memory_.codes, memory_.symbols, row_ends_.size(), row_ends_.data()};
    if (!streams.encode_rows(spec_.kernels->residuals, memory_.entries, rows)) return 0;
    writer.u8(static_cast<std::uint8_t>(stream_bits));
    streams.append_sizes(writer);
    streams.append_words(stored);
    if (stored.size() > raw_bytes) return 0;
    std::memcpy(out.data(), stored.data(), stored.size());
    return stored.size();
  }

 private:
  const WaveletAxes& axes() const { return model_.axes; }
  double first_step() const { return first_wavelet_step(spec_.for_psnr); }

  struct CodedStep {
    double step;
    std::uint64_t bits;  ///< in units of 2^-12
    bool is_last;        ///< what was coded last was coded with it
  };
  CodedStep best_step() {
    CodedStep best{first_step(), code(first_step()), true};
    if (spec_.for_psnr) return best;
    const auto pays = [&](double step) {
      const std::uint64_t bits = code(step);
      best.is_last = bits < best.bits;
      if (best.is_last) best = {step, bits, true};
      return best.is_last;
    };
    if (!pays(kWaveletSteps[1])) {
      pays(kSmallWaveletStep);
    } else {
      pays(kWaveletSteps[2]);
    }
    return best;
  }
  /// Codes with the best step; the bits.
  std::uint64_t code_best() {
    const CodedStep best = best_step();
    return best.is_last ? best.bits : code(best.step);
  }

  /// Calls visit(row, element offset, mask offset) for all rows of the chunk in C order.
  template <class Visit>
  void for_rows(const Visit& visit) const {
    const std::size_t last = axes().rank - 1;
    const std::size_t rows = memory_.elems / axes().extents[last];
    for (std::size_t r = 0; r < rows; ++r) {
      const ChunkRow row = chunk_row(axes(), view_, r);
      visit(r, row.index, data_ + row.at, in_.special == nullptr ? nullptr : in_.special + row.special);
    }
  }

  void load() {
    const std::size_t last = axes().rank - 1;
    const std::size_t columns = axes().extents[last];
    const double inverse = 1 / model_.format.step;
    bool any = false;
    for_rows([&](std::size_t r, const AxisValues&, const Bits* row, const std::uint8_t* special) {
      for (std::size_t x = 0; x < columns; ++x) {
        const double v = Element::value(row[x * view_.strides[last]]);
        const bool missing = !(v - v == 0) || (special != nullptr && special[x * view_.special_strides[last]] != 0);
        memory_.missing[r * columns + x] = missing ? 1 : 0;
        memory_.targets[r * columns + x] = missing ? 0 : nearest((v - model_.format.base) * inverse);
        any = any || missing;
      }
    });
    if (any) fill_missing(axes(), memory_.missing, memory_.targets);
  }

  /// Takes what has the least entropy: packets or none, of few or many levels.
  void choose_transform() {
    WaveletAxes best;
    std::uint64_t least = UINT64_MAX;
    const Vector<WaveletAxes> trials = wavelet_transforms(wavelet_axes(view_));
    for (std::uint8_t number = 0; number < trials.size(); ++number) {
      if (spec_.transform.value_or(number) != number) continue;
      std::copy_n(memory_.targets, memory_.elems, memory_.work);
      forward_wavelet(trials[number], *spec_.kernels, memory_.work, memory_.room);
      const std::uint64_t cost = entropy(trials[number]);
      if (cost >= least) continue;
      least = cost;
      best = trials[number];
      transform_ = number;
      std::swap(memory_.work, memory_.coefficients);
    }
    model_.axes = best;
    transform_bits_ = least;
    row_ends_.clear();
    std::uint32_t end = 0;
    for_bands(best, [&](const WaveletBand& band) {
      for (std::size_t r = 0; r < band.rows(); ++r)
        row_ends_.push_back(end += static_cast<std::uint32_t>(band.columns()));
      return true;
    });
    coefficient_rows_ = row_ends_.size();
  }

  /// Order-0 entropy of all bands, in units of 2^-12 bits.
  std::uint64_t entropy(const WaveletAxes& axes) const {
    std::uint64_t cost = 0;
    const unsigned step = step_units(first_step());
    for_bands(axes, [&](const WaveletBand& band) {
      coding::TokenCounts counts{};
      const double inverse = 1 / static_cast<double>(band_step(step, band.gain));
      for (std::size_t r = 0; r < band.rows(); ++r) {
        const double* const row = memory_.work + band_place(axes, band, band_row(axes, band, r));
        for (std::size_t x = 0; x < band.columns(); ++x)
          ++counts[kernels::token_of(
              kernels::magnitude_of(kernels::wavelet_code(row[x], inverse, kernels::kWaveletRounding)))];
      }
      cost += coding::token_cost(counts);
      return true;
    });
    return cost;
  }

  unsigned step_units(double step) const { return wavelet_step_units(units_, step); }

  /// Codes everything with that step; the bits, in units of 2^-12, that all takes.
  std::uint64_t code(double step) {
    model_.step = step_units(step);
    memory_.counts.clear();
    quantize();
    fit_coefficients();
    fitted_ = true;
    code_coefficients();
    reconstruct();
    correct();
    counts_ = {};
    memory_.counts.add_to(counts_);
    const std::uint64_t bits = effort_.distributions
                                   ? coding::fit_distributions(counts_, model_.distributions)
                                   : coding::estimate_distributions_cost(counts_, model_.distributions);
    return bits + ((model_bytes() + exceptions_.size() * (sizeof(Bits) + 2)) << 15);
  }

  std::size_t model_bytes() const {
    Vector<std::uint8_t> head;
    write_wavelet_model(model_, head);
    return head.size();
  }

  void quantize() {
    WaveletExcess excess;
    std::size_t at = 0;
    for_bands(axes(), [&](const WaveletBand& band) {
      const double inverse = 1 / static_cast<double>(band_step(model_.step, band.gain));
      for (std::size_t r = 0; r < band.rows(); ++r) {
        const AxisValues index = band_row(axes(), band, r);
        const std::size_t place = band_place(axes(), band, index);
        std::uint32_t* const row = memory_.magnitudes + place;
        const bool first = axes().rank < 2 || index[axes().rank - 2] == 0;
        const std::uint32_t* const above = first ? nullptr : row - axes().strides()[axes().rank - 2];
        for (std::size_t x = 0; x < band.columns(); ++x, ++at) {
          const double value = memory_.coefficients[place + x];
          const double rounding =
              quiet(row, above, x, band.columns()) ? kernels::kQuietWaveletRounding : kernels::kWaveletRounding;
          const std::int32_t code = kernels::wavelet_code(value, inverse, rounding);
          const std::uint32_t magnitude = kernels::magnitude_of(code);
          memory_.codes[at] = code;
          row[x] = std::min(magnitude, kernels::kMaxWaveletMagnitude);
          if (magnitude == 0) continue;
          excess.sums[magnitude == 1 ? 0 : 1] += kernels::wavelet_excess(value, inverse, magnitude);
          ++excess.counts[magnitude == 1 ? 0 : 1];
        }
      }
      return true;
    });
    model_.offsets = wavelet_offsets(excess);
  }

  /// True when the codes before a column and above it are all 0.
  static bool quiet(const std::uint32_t* row, const std::uint32_t* above, std::size_t x, std::size_t columns) {
    std::uint32_t sum = (x > 0 ? row[x - 1] : 0) + (x > 1 ? row[x - 2] : 0);
    if (above != nullptr) sum += above[x] + (x + 1 < columns ? above[x + 1] : 0);
    return sum == 0;
  }

  /// Takes samples of a row: what is known around it, and what is in it.
  void sample_row(std::size_t group, std::size_t columns, const std::uint32_t* magnitudes, const std::uint8_t* missing,
                  float weight, WaveletSamples& samples) {
    std::array<std::uint32_t, kWaveletFeatures> features{};
    for (std::size_t x = 0; x < columns; ++x) {
      if (missing != nullptr && missing[x] != 0) continue;
      for (std::size_t f = kNearFeatures; f < kWaveletFeatures; ++f) features[f] = memory_.features[f * columns + x];
      features[kWest] = x > 0 ? magnitudes[x - 1] : 0;
      features[kWestOfWest] = x > 1 ? magnitudes[x - 2] : 0;
      samples.add(group, features, magnitudes[x], weight);
    }
  }

  void fit_coefficients() {
    WaveletSamples samples(wavelet_groups(axes()));
    for_bands(axes(), [&](const WaveletBand& band) {
      const std::size_t columns = band.columns();
      const std::size_t wanted = sampled_rows(band, memory_.elems, effort_);
      const float weight = static_cast<float>(band.rows()) / static_cast<float>(wanted);
      for (std::size_t i = 0; i < wanted; ++i) {
        const AxisValues index = band_row(axes(), band, i * band.rows() / wanted);
        std::fill_n(memory_.features, kWaveletFeatures * columns, 0u);
        for_sources(axes(), band, index, memory_.magnitudes, [&](std::size_t feature, const MagnitudeRow& source) {
          add_row(source, 1, columns, *spec_.kernels, memory_.features + feature * columns);
        });
        sample_row(band.group, columns, memory_.magnitudes + band_place(axes(), band, index), nullptr, weight, samples);
      }
      return true;
    });
    samples.fit(*spec_.kernels, fitted_ ? kWaveletRoundsAgain : effort_.rounds, fitted_, spec_.parts.contexts,
                model_.weights, model_.constants);
  }

  /// Symbols of a row whose sums lack what lies in the row itself; `first` is the place of its first code.
  void note_row(const WaveletWeights& weights, std::size_t columns, const std::uint32_t* magnitudes,
                const std::uint8_t* missing, std::size_t first) {
    std::uint32_t* const sums = memory_.features;
    const auto& decode = spec_.kernels->decode;
    if (columns > 1) decode.add_row(magnitudes, weights[kWest], columns - 1, false, sums + 1);
    if (columns > 2) decode.add_row(magnitudes, weights[kWestOfWest], columns - 2, false, sums + 2);
    std::uint16_t* const symbols = memory_.symbols + first;
    spec_.kernels->residuals.symbols(sums, memory_.codes + first, columns, symbols);
    memory_.counts.note(symbols, missing, columns);
  }

  void code_coefficients() {
    std::size_t at = 0;
    for_bands(axes(), [&](const WaveletBand& band) {
      const std::size_t columns = band.columns();
      for (std::size_t r = 0; r < band.rows(); ++r, at += columns) {
        const AxisValues index = band_row(axes(), band, r);
        std::fill_n(memory_.features, columns, std::uint32_t{model_.constants[band.group]});
        for_sources(axes(), band, index, memory_.magnitudes, [&](std::size_t feature, const MagnitudeRow& source) {
          if (model_.weights[feature] != 0)
            add_row(source, model_.weights[feature], columns, *spec_.kernels, memory_.features);
        });
        note_row(model_.weights, columns, memory_.magnitudes + band_place(axes(), band, index), nullptr, at);
      }
      return true;
    });
  }

  void reconstruct() {
    std::size_t at = 0;
    for_bands(axes(), [&](const WaveletBand& band) {
      const std::int64_t step = band_step(model_.step, band.gain);
      for (std::size_t r = 0; r < band.rows(); ++r) {
        double* const to = memory_.work + band_place(axes(), band, band_row(axes(), band, r));
        for (std::size_t x = 0; x < band.columns(); ++x) to[x] = coefficient_of(model_, step, memory_.codes[at++]);
      }
      return true;
    });
    inverse_wavelet(axes(), *spec_.kernels, memory_.work, memory_.room);
  }

  /// Finds elements that miss the bound, and what brings them back: a correction, or the element itself.
  void find_corrections() {
    const std::size_t last = axes().rank - 1;
    const std::size_t columns = axes().extents[last];
    const double unit = model_.format.step;
    const double base = model_.format.base;
    const double strict = spec_.bound * (1 - 0x1p-50);
    const double correction = step_units(kWaveletCorrection);
    model_.correction = 0;
    exceptions_.clear();
    for_rows([&](std::size_t r, const AxisValues&, const Bits* row, const std::uint8_t* special) {
      const double* const values = memory_.work + r * columns;
      std::int32_t* const codes = memory_.codes + memory_.elems + r * columns;
      for (std::size_t x = 0; x < columns; ++x) {
        codes[x] = 0;
        memory_.corrections[r * columns + x] = 0;
        const bool skipped = special != nullptr && special[x * view_.special_strides[last]] != 0;
        memory_.missing[r * columns + x] = skipped ? 1 : 0;
        if (skipped) continue;
        const Bits bits = row[x * view_.strides[last]];
        const double v = Element::value(bits);
        const double difference = v - Element::value(Element::bits(values[x] * unit + base));
        // Most elements pass here; zeros may have a sign to keep.
        if (difference < strict && difference > -strict && v != 0) continue;
        if (keeps(bits, values[x])) continue;
        const double code =
            v - v == 0 ? kernels::wavelet_correction(memory_.targets[r * columns + x] - values[x], correction) : 0;
        if (code == 0 || !keeps(bits, values[x] + code * correction)) {
          exceptions_.emplace_back(r * columns + x, bits);
          continue;
        }
        codes[x] = static_cast<std::int32_t>(code);
        memory_.corrections[r * columns + x] = kernels::capped_magnitude(codes[x], kernels::kMaxWaveletMagnitude);
        model_.correction = static_cast<unsigned>(correction);
      }
    });
  }
  bool keeps(Bits bits, double value) const {
    return keeps_bound<Element>(bits, Element::bits(value * model_.format.step + model_.format.base), spec_.bound);
  }

  void correct() {
    find_corrections();
    row_ends_.resize(coefficient_rows_);
    if (model_.correction == 0) return;
    const CorrectionRows rows(axes(), effort_);
    const std::size_t columns = rows.columns;
    WaveletSamples samples(1);
    for_rows([&](std::size_t r, const AxisValues& index, const Bits*, const std::uint8_t*) {
      if (!rows.sampled(r)) return;
      std::fill_n(memory_.features, kWaveletFeatures * columns, 0u);
      for_correction_sources(axes(), index, memory_.corrections, memory_.magnitudes,
                             [&](std::size_t feature, const MagnitudeRow& source) {
                               add_row(source, 1, columns, *spec_.kernels, memory_.features + feature * columns);
                             });
      sample_row(0, columns, memory_.corrections + r * columns, memory_.missing + r * columns, rows.weight(), samples);
    });
    samples.fit(*spec_.kernels, corrections_fitted_ ? kWaveletRoundsAgain : effort_.rounds, corrections_fitted_,
                spec_.parts.contexts, model_.correction_weights, &model_.correction_constant);
    corrections_fitted_ = true;
    for_rows([&](std::size_t r, const AxisValues& index, const Bits*, const std::uint8_t*) {
      std::fill_n(memory_.features, columns, std::uint32_t{model_.correction_constant});
      for_correction_sources(axes(), index, memory_.corrections, memory_.magnitudes,
                             [&](std::size_t feature, const MagnitudeRow& source) {
                               const std::uint32_t weight = model_.correction_weights[feature];
                               if (weight != 0) add_row(source, weight, columns, *spec_.kernels, memory_.features);
                             });
      note_row(model_.correction_weights, columns, memory_.corrections + r * columns, memory_.missing + r * columns,
               memory_.elems + r * columns);
      row_ends_.push_back(static_cast<std::uint32_t>(memory_.elems + (r + 1) * columns));
    });
  }

  const EncodeSpec& spec_;
  const ConstBox3& in_;
  const LevelsView& view_;
  EncodeMemory& memory_;
  const Bits* data_;
  WaveletEffort effort_;
  std::uint64_t transform_bits_ = 0;  ///< order-0 entropy of the coefficients
  std::uint8_t transform_ = 0;        ///< number of the one that was chosen
  WaveletUnits units_;
  WaveletModel model_;
  bool fitted_ = false;  ///< weights are there from another step
  bool corrections_fitted_ = false;
  coding::BinCounts counts_{};
  Vector<std::uint32_t> row_ends_;  ///< of each row, counted in codes
  std::size_t coefficient_rows_ = 0;
  Vector<std::pair<std::uint64_t, Bits>> exceptions_;  ///< place in C order
};

/// Calls f(writer) for a chunk that can be transformed, with memory cut from scratch; else gives 0.
template <class R, class F>
Result<R> with_writer(const EncodeSpec& spec, const ConstBox3& in, const ChunkRange& range,
                      std::span<std::uint8_t> scratch, const F& f) {
  const LevelsView view(in, spec.form);
  Arena arena(nullptr);
  const EncodeMemory needed(arena, wavelet_axes(view), spec.raw_bytes());
  if (arena.used() > scratch.size()) return Status(StatusCode::internal, "stencil: scratch is too small for a chunk");
  Arena cut(scratch.data());
  EncodeMemory memory(cut, wavelet_axes(view), spec.raw_bytes());
  return with_element(spec.dtype, [&](auto element) -> Result<R> {
    WaveletWriter<decltype(element)> writer(spec, in, view, memory);
    if (!writer.prepare(range)) return R{};
    return f(writer);
  });
}

}  // namespace

std::size_t wavelet_encode_scratch_bytes(const EncodeSpec& spec) {
  Arena arena(nullptr);
  const EncodeMemory memory(arena, wavelet_axes(LevelsView(full_box(spec), spec.form)), spec.raw_bytes());
  return arena.used() + arena.used() / 8 + 65536;
}

Result<double> wavelet_step(const EncodeSpec& spec, const ConstBox3& in, const ChunkRange& range,
                            std::span<std::uint8_t> scratch) {
  if (in.elems() <= 2 * kMiddleElems || spec.for_psnr) return 0.0;
  const ConstBox3 middle = middle_box(in, spec.form, dtype_bytes(spec.dtype), kMiddleElems, kMiddleExtent);
  return with_writer<double>(spec, middle, range, scratch, [](auto& writer) { return writer.choose_step(); });
}

Result<std::size_t> encode_wavelet(const EncodeSpec& spec, const ConstBox3& in, const ChunkRange& range,
                                   std::span<std::uint8_t> out, std::span<std::uint8_t> scratch) {
  QUERN_ASSIGN_OR_RETURN(const double step, wavelet_step(spec, in, range, scratch));
  return with_writer<std::size_t>(spec, in, range, scratch, [&](auto& writer) { return writer.write(out, step); });
}

Result<ChunkCost> estimate_wavelet(const EncodeSpec& spec, const ConstBox3& in, const ChunkRange& range,
                                   std::span<std::uint8_t> scratch) {
  return with_writer<ChunkCost>(spec, in, range, scratch, [](auto& writer) { return writer.estimate(); });
}

}  // namespace quern::codec::stencil
