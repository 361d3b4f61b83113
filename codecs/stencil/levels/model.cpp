// Stored form of the model of a chunk in levels.
#include "codecs/stencil/levels/model.h"

#include <algorithm>
#include <cstdlib>

#include "kernels/common/bits.h"
#include "libcompress/format/bit_stream.h"

namespace quern::codec::stencil {
namespace {

constexpr unsigned kKindBits = 3;
constexpr unsigned kOrderBits = 4;
constexpr unsigned kContextOrder = 5;
constexpr unsigned kMaxBoundBits = 50;
constexpr std::uint16_t kNoContext = 2048;  // the sum of classes without weights: two codes
constexpr std::uint8_t kFitted = static_cast<std::uint8_t>(PredictorKind::fitted);

/// Calls visit(later) for the kinds of planes that a chunk codes.
template <class Visit>
void for_plane_kinds(const LevelAxes& axes, const Visit& visit) {
  for (const bool later : {false, true})
    if (codes_planes(axes, later)) visit(later);
}

/// True when a class also belongs to the next coarser level.
bool has_coarser(const LevelAxes& axes, unsigned level, std::size_t parity_class) {
  return level + 1 < axes.top() && axes.exists(parity_class, level + 1);
}

/// Classes that use a set of context weights.
CodedClasses classes_of_set(const LevelAxes& axes, std::size_t set) {
  CodedClasses classes(axes, static_cast<unsigned>(set));
  if (set == 1 && axes.top() > 1) classes.list[classes.count++] = 0;
  return classes;
}
std::size_t sets_of(const LevelAxes& axes) { return axes.top() > 0 ? kContextSets : 1; }

unsigned best_order(const Predictor& predictor, std::size_t count) {
  unsigned best = 0;
  std::uint64_t least = UINT64_MAX;
  for (unsigned order = 0; order < (1u << kOrderBits); ++order) {
    std::uint64_t bits = 0;
    for (std::size_t g = 0; g < count; ++g)
      bits += golomb_bits(kernels::zigzag(static_cast<std::uint32_t>(predictor.weights[g])), order);
    if (bits < least) {
      least = bits;
      best = order;
    }
  }
  return best;
}

void write_predictors(const LevelsModel& model, const LevelAxes& axes, BitWriter& writer) {
  for (unsigned level = axes.top() + 1; level-- > 0;) {
    const CodedClasses classes(axes, level);
    for_plane_kinds(axes, [&](bool later) {
      for (std::size_t i = 0; i < classes.count; ++i) {
        const std::size_t c = classes.list[i];
        const Predictor& predictor = model.predictor(level, later, c);
        if (has_coarser(axes, level, c)) {
          writer.put(predictor.as_coarser ? 1 : 0, 1);
          if (predictor.as_coarser) continue;
        }
        writer.put(predictor.kind, kKindBits);
        if (!has_weights(predictor.kind)) continue;
        const GroupList list = groups_of_kind(groups_of(axes, level, c, later), predictor.kind);
        if (list.count > list.linear) writer.put(predictor.edges ? 1 : 0, 1);
        const std::size_t count = predictor.edges ? list.count : list.linear;
        const unsigned order = best_order(predictor, count);
        writer.put(order, kOrderBits);
        for (std::size_t g = 0; g < count; ++g)
          writer.put_golomb(kernels::zigzag(static_cast<std::uint32_t>(predictor.weights[g])), order);
      }
    });
  }
}

Status read_weights(BitReader& reader, const GroupList& list, unsigned weight_bits, Predictor& predictor) {
  predictor.edges = list.count > list.linear && reader.get(1) != 0;
  const std::size_t count = predictor.edges ? list.count : list.linear;
  const auto order = static_cast<unsigned>(reader.get(kOrderBits));
  std::uint64_t sum = 0;
  for (std::size_t g = 0; g < count; ++g) {
    const auto weight = static_cast<std::int64_t>(kernels::unzigzag(reader.get_golomb(order)));
    sum += static_cast<std::uint64_t>(std::abs(weight)) * (list.groups[g].pair ? 2 : 1);
    if (reader.failed() || sum > std::uint64_t{1} << (weight_bits + kLevelWeightSumBits))
      return Status(StatusCode::corrupt, "stencil: weights are out of range");
    predictor.weights[g] = static_cast<std::int32_t>(weight);
  }
  return {};
}

Status read_predictors(BitReader& reader, const LevelAxes& axes, LevelsModel& model) {
  const unsigned weight_bits = model.format.weight_bits;
  for (unsigned level = axes.top() + 1; level-- > 0;) {
    const CodedClasses classes(axes, level);
    for (const bool later : {false, true}) {
      if (!codes_planes(axes, later)) continue;
      for (std::size_t i = 0; i < classes.count; ++i) {
        const std::size_t c = classes.list[i];
        Predictor& predictor = model.predictor(level, later, c);
        predictor = {};
        if (has_coarser(axes, level, c) && reader.get(1) != 0) {
          take_coarser(axes, level, later, c, model);
          continue;
        }
        predictor.kind = static_cast<std::uint8_t>(reader.get(kKindBits));
        if (!kind_possible(axes, predictor.kind, c, later) ||
            (predictor.kind == static_cast<std::uint8_t>(PredictorKind::network) &&
             !may_predict(model.networks, axes, level, c)))
          return Status(StatusCode::corrupt, "stencil: a class has an impossible predictor");
        const GroupList list = groups_of_kind(groups_of(axes, level, c, later), predictor.kind);
        if (has_weights(predictor.kind)) {
          QUERN_RETURN_IF_ERROR(read_weights(reader, list, weight_bits, predictor));
        } else {
          predictor.weights = fixed_weights(axes, predictor.kind, c, list, weight_bits);
        }
      }
    }
  }
  return {};
}

void write_contexts(const LevelsModel& model, const LevelAxes& axes, BitWriter& writer) {
  for (std::size_t set = 0; set < sets_of(axes); ++set) {
    const CodedClasses classes = classes_of_set(axes, set);
    for_plane_kinds(axes, [&](bool later) {
      for (std::size_t i = 0; i < classes.count; ++i) {
        const ContextWeights& weights = model.contexts[set][later ? 1 : 0][classes.list[i]];
        writer.put(weights.present ? 1 : 0, 1);
        if (!weights.present) continue;
        const FeatureList features(axes, static_cast<unsigned>(set), classes.list[i], later);
        for (std::size_t f = 0; f < features.count; ++f) {
          const std::uint16_t w = weights.weights[features.list[f]];
          writer.put(w != 0 ? 1 : 0, 1);
          if (w != 0) writer.put_golomb(w - 1u, kContextOrder);
        }
        writer.put_golomb(weights.constant, kContextOrder);
      }
    });
  }
}

Status read_contexts(BitReader& reader, const LevelAxes& axes, LevelsModel& model) {
  const Status bad(StatusCode::corrupt, "stencil: context weights are out of range");
  for (std::size_t set = 0; set < sets_of(axes); ++set) {
    const CodedClasses classes = classes_of_set(axes, set);
    for (const bool later : {false, true}) {
      if (!codes_planes(axes, later)) continue;
      for (std::size_t i = 0; i < classes.count; ++i) {
        ContextWeights& weights = model.contexts[set][later ? 1 : 0][classes.list[i]];
        weights.present = reader.get(1) != 0;
        if (!weights.present) continue;
        const FeatureList features(axes, static_cast<unsigned>(set), classes.list[i], later);
        for (std::size_t f = 0; f < features.count; ++f) {
          if (reader.get(1) == 0) continue;
          const std::uint64_t weight = reader.get_golomb(kContextOrder) + 1;
          if (weight > coding::kMaxContextWeight) return bad;
          weights.weights[features.list[f]] = static_cast<std::uint16_t>(weight);
        }
        const std::uint64_t constant = reader.get_golomb(kContextOrder);
        if (constant > coding::kMaxContextWeight) return bad;
        weights.constant = static_cast<std::uint16_t>(constant);
      }
    }
  }
  return {};
}

}  // namespace

void take_coarser(const LevelAxes& axes, unsigned level, bool later, std::size_t parity_class, LevelsModel& model) {
  const Predictor& coarser = model.predictor(level + 1, later, parity_class);
  const GroupList list = groups_of(axes, level, parity_class, later);
  Predictor& predictor = model.predictor(level, later, parity_class);
  predictor.as_coarser = true;
  predictor.kind = coarser.kind;
  predictor.edges = false;
  if (coarser.kind == kFitted && list == groups_of(axes, level + 1, parity_class, later)) {
    predictor.edges = coarser.edges;
    predictor.weights = coarser.weights;
    return;
  }
  if (coarser.kind == kFitted) predictor.kind = static_cast<std::uint8_t>(PredictorKind::mean_cubic);
  predictor.weights = fixed_weights(axes, predictor.kind, parity_class, list, model.format.weight_bits);
}

const ContextWeights& context_weights(const LevelsModel& model, unsigned level, bool later, std::size_t parity_class) {
  static constexpr ContextWeights kNone{true, {}, kNoContext};
  // The finest level may borrow from the others, not the other way round: those are complete before it is fitted.
  for (std::size_t set = context_set(level); set < kContextSets; ++set) {
    for (const bool planes : {later, !later}) {
      const ContextWeights& weights = model.contexts[set][planes ? 1 : 0][parity_class];
      if (weights.present) return weights;
    }
  }
  return kNone;
}

void write_levels_model(const LevelsModel& model, const LevelAxes& axes, Vector<std::uint8_t>& out) {
  BitWriter writer(out);
  const LevelsValueFormat& format = model.format;
  write_prediction_format(format, writer);
  writer.put(static_cast<unsigned>(model.border), 1);
  writer.put(model.tightening, 2);
  writer.put(format.masked ? 1 : 0, 1);
  if (format.masked || axes.given > 0) {
    for (const std::int64_t bound : {format.low, format.high})
      writer.put(kernels::zigzag(static_cast<std::uint64_t>(bound)), kMaxBoundBits);
  }
  write_predictors(model, axes, writer);
  write_contexts(model, axes, writer);
  coding::write_distributions(model.distributions, writer);
}

Status read_levels_model(std::span<const std::uint8_t>& bytes, const LevelAxes& axes, LevelsModel& model) {
  const auto bad = [](const char* text) { return Status(StatusCode::corrupt, text); };
  BitReader reader(bytes);
  LevelsValueFormat& format = model.format;
  if (!read_prediction_format(reader, format)) return bad("stencil: a chunk's numbers are out of range");
  model.border = static_cast<Border>(reader.get(1));
  model.tightening = static_cast<std::uint8_t>(reader.get(2));
  format.masked = reader.get(1) != 0;
  if (format.masked || axes.given > 0) {
    format.low = static_cast<std::int64_t>(kernels::unzigzag(reader.get(kMaxBoundBits)));
    format.high = static_cast<std::int64_t>(kernels::unzigzag(reader.get(kMaxBoundBits)));
    if (format.low > format.high) return bad("stencil: the limits of a chunk are in the wrong order");
  }
  QUERN_RETURN_IF_ERROR(read_predictors(reader, axes, model));
  QUERN_RETURN_IF_ERROR(read_contexts(reader, axes, model));
  QUERN_RETURN_IF_ERROR(coding::read_distributions(reader, model.distributions));
  if (reader.failed()) return bad("stencil: a chunk's model is cut short");
  bytes = bytes.subspan(reader.bytes_used());
  return {};
}

}  // namespace quern::codec::stencil
