// Weights by a uniform quantizer, from zero or from what the decoded base and the optimizer's direction predict. The
// prediction is of decoded values only, so errors do not add up along a chain of checkpoints.
#include <array>

#include "codecs/tensor/bounded/lossy_chunk.h"
#include "codecs/tensor/bounded/moments.h"
#include "codecs/tensor/solve.h"

namespace quern::codec::tensor {
namespace {

constexpr double kStepMargin = 1 - 0x1p-22;  // so that rounding costs few elements at the edge of their step
constexpr double kOutlier = 1e6;             // beyond this, elements have no part in fitting
constexpr double kMaxFactor = 1e6;

struct EbqModel {
  float step = 0;
  bool with_base = false;
  float base_factor = 0;  ///< less than 0: what weight decay takes away
  float direction_factor = 0;
  float base_direction_factor = 0;
  ResidualModel residuals;
};

/// Inputs of some elements, cut alike.
struct EbqPiece {
  std::span<const std::uint8_t> values;
  std::span<const std::uint8_t> base;
  std::span<const std::uint8_t> direction;
  std::span<const std::uint8_t> base_direction;
};

EbqPiece cut(const TensorDescription& description, std::uint64_t chunk, const TensorInputs& inputs) {
  return {bytes_of(description, chunk, inputs.values), bytes_of(description, chunk, inputs.base),
          bytes_of(description, chunk, inputs.direction), bytes_of(description, chunk, inputs.base_direction)};
}

/// What each element is expected to be; 0 where that is not a finite number. Null without a base: 0 everywhere.
const float* find_predictions(const EbqModel& model, const EbqPiece& piece, std::span<float> predictions) {
  if (!model.with_base) return nullptr;
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    const float base = value_at(piece.base, i);
    predictions[i] = base + model.base_factor * base;
  }
  const auto add = [&](float factor, std::span<const std::uint8_t> direction) {
    if (factor == 0) return;
    for (std::size_t i = 0; i < predictions.size(); ++i)
      predictions[i] = predictions[i] + factor * value_at(direction, i);
  };
  add(model.direction_factor, piece.direction);
  add(model.base_direction_factor, piece.base_direction);
  for (float& p : predictions)
    if (!is_finite_bits(std::bit_cast<std::uint32_t>(p))) p = 0;
  return predictions.data();
}

/// Codes of a chunk, and what comes back of it if `decoded` is not null. Zeros come back as they are, with their sign.
void find_codes(const EbqModel& model, double bound, std::span<const std::uint8_t> values, const float* predictions,
                std::span<std::uint8_t> marks, std::int32_t* codes, std::uint8_t* decoded, SpecialRuns& special) {
  const kernels::StepUnit unit{model.step, bound};
  if (!bound_kernels().step_codes(unit, values.data(), predictions, marks.size(), codes, decoded, marks.data())) return;
  for_marked(marks, [&](std::size_t i) { special.add(static_cast<std::uint32_t>(i), bits_at(values, i)); });
}

/// Least squares of what the base leaves, by both directions and perhaps by the base itself; rows count in inverse
/// proportion to the squares of what their base leaves. Sums in the order of elements.
void fit_factors(std::span<const PlanePiece> places, std::span<const EbqPiece> pieces, bool with_base_factor,
                 EbqModel& model) {
  constexpr std::size_t kTerms = 3;
  using Terms = std::array<double, kTerms + 1>;
  std::array<Terms, kTerms> sums{};
  const auto term = [](std::span<const std::uint8_t> values, std::size_t i) {
    return values.empty() ? 0 : static_cast<double>(value_at(values, i));
  };
  const double step = static_cast<double>(model.step);
  for (std::size_t p = 0; p < pieces.size(); ++p) {
    const EbqPiece& piece = pieces[p];
    for_rows(places[p], [&](std::size_t, std::size_t, std::size_t begin, std::size_t end) {
      std::array<Terms, kTerms> row{};
      double squares = 0;
      double count = 0;
      for (std::size_t i = begin; i < end; ++i) {
        const double base = term(piece.base, i);
        const Terms terms{term(piece.direction, i), term(piece.base_direction, i), with_base_factor ? base : 0,
                          term(piece.values, i) - base};
        bool regular = true;
        for (const double t : terms) regular = regular && t < kOutlier && t > -kOutlier;
        if (!regular) continue;
        squares = squares + terms[kTerms] * terms[kTerms];
        count = count + 1;
        for (std::size_t k = 0; k < kTerms; ++k)
          for (std::size_t l = 0; l <= kTerms; ++l) row[k][l] = row[k][l] + terms[k] * terms[l];
      }
      if (count == 0) return;
      const double weight = count / (squares + count * (step * step));
      for (std::size_t k = 0; k < kTerms; ++k)
        for (std::size_t l = 0; l <= kTerms; ++l) sums[k][l] = sums[k][l] + weight * row[k][l];
    });
  }
  const auto solution = solve_symmetric<kTerms>(sums);
  const auto factor = [](double x) { return static_cast<float>(std::clamp(x, -kMaxFactor, kMaxFactor)); };
  model.direction_factor = factor(solution[0]);
  model.base_direction_factor = factor(solution[1]);
  model.base_factor = factor(solution[2]);
}

/// The chunks that a plan samples, and memory for their codes.
class Fitting {
 public:
  Fitting(const TensorDescription& description, const TensorInputs& inputs) : width_(plane_width(description)) {
    for (const std::uint64_t chunk : chunks_to_fit(description)) {
      places_.push_back(piece_of(description, chunk));
      pieces_.push_back(cut(description, chunk, inputs));
    }
  }
  std::span<const PlanePiece> places() const { return places_; }
  std::span<const EbqPiece> pieces() const { return pieces_; }

  /// Bits that these chunks take with a model's predictions; fits the model's tables.
  Result<std::uint64_t> fit_tables(double bound, EbqModel& model) {
    std::size_t most = 0;
    for (const PlanePiece& place : places_) most = std::max(most, place.elems);
    ChunkScratch scratch(memory_);
    QUERN_RETURN_IF_ERROR(scratch.reserve(most * (5 + 4 * places_.size()), 2 + places_.size()));
    const auto marks = scratch.take<std::uint8_t>(most);
    const auto predictions = scratch.take<float>(most);
    Vector<ResidualSample> samples;
    std::uint64_t special_bits = 0;
    for (std::size_t c = 0; c < pieces_.size(); ++c) {
      const std::size_t elems = places_[c].elems;
      const auto codes = scratch.take<std::int32_t>(elems);
      SpecialRuns special;
      find_codes(model, bound, pieces_[c].values, find_predictions(model, pieces_[c], predictions.first(elems)),
                 marks.first(elems), codes.data(), nullptr, special);
      special_bits += special.places().size() * 40;
      samples.push_back({places_[c], codes});
    }
    QUERN_ASSIGN_OR_RETURN(const std::uint64_t bits, fit_residuals(samples, width_, model.residuals));
    return bits + special_bits;
  }

 private:
  std::uint64_t width_;
  Vector<PlanePiece> places_;
  Vector<EbqPiece> pieces_;
  AlignedBuffer memory_;
};

constexpr std::uint8_t kWithBase = 1;
constexpr std::uint8_t kWithBaseFactor = 2;
constexpr std::uint8_t kWithDirection = 4;
constexpr std::uint8_t kWithBaseDirection = 8;

Status plan_ebq(const TensorInputs& inputs, TaskRunner&, TensorPlan& plan) {
  const TensorDescription& description = plan.description;
  double bound = plan.request.bound;
  QUERN_RETURN_IF_ERROR(check_bounded(description, bound > 0 && bound < 1e30));
  if (plan.request.bound_in_deviations) bound = bound * standard_deviation(inputs.values);
  EbqModel model;
  model.step = static_cast<float>(2 * bound * kStepMargin);
  // Values that are all the same, or a bound that binary32 has no step for: they are coded as special elements or as
  // they are.
  if (!is_positive_bits(std::bit_cast<std::uint32_t>(model.step))) {
    model.step = std::bit_cast<float>(1u);
    bound = 0;
  }
  Fitting fitting(description, inputs);
  QUERN_ASSIGN_OR_RETURN(std::uint64_t least, fitting.fit_tables(bound, model));
  const auto try_model = [&](EbqModel candidate) -> Status {
    QUERN_ASSIGN_OR_RETURN(const std::uint64_t bits, fitting.fit_tables(bound, candidate));
    if (bits >= least) return {};
    least = bits;
    model = std::move(candidate);
    return {};
  };
  if (!inputs.base.empty()) {
    EbqModel candidate;
    candidate.step = model.step;
    candidate.with_base = true;
    QUERN_RETURN_IF_ERROR(try_model(candidate));
    if (!inputs.direction.empty() || !inputs.base_direction.empty()) {
      fit_factors(fitting.places(), fitting.pieces(), false, candidate);
      QUERN_RETURN_IF_ERROR(try_model(candidate));
    }
    fit_factors(fitting.places(), fitting.pieces(), true, candidate);
    QUERN_RETURN_IF_ERROR(try_model(std::move(candidate)));
  }

  append_number(std::bit_cast<std::uint64_t>(bound), 8, plan.side);
  append_number(std::bit_cast<std::uint32_t>(model.step), 4, plan.side);
  const int forms = (model.with_base ? kWithBase : 0) | (model.base_factor != 0 ? kWithBaseFactor : 0) |
                    (model.direction_factor != 0 ? kWithDirection : 0) |
                    (model.base_direction_factor != 0 ? kWithBaseDirection : 0);
  append_number(static_cast<std::uint8_t>(forms), 1, plan.side);
  for (const float factor : {model.base_factor, model.direction_factor, model.base_direction_factor})
    if (factor != 0) append_number(std::bit_cast<std::uint32_t>(factor), 4, plan.side);
  BitWriter writer(plan.side);
  put_model(model.residuals, writer);
  return {};
}

Status get_side(const TensorDescription& description, std::span<const std::uint8_t> side, EbqModel& model,
                double& bound) {
  QUERN_RETURN_IF_ERROR(check_bounded(description, true));
  ByteReader reader(side);
  bound = reader.f64();
  const std::uint32_t step = reader.u32();
  const std::uint8_t forms = reader.u8();
  model.step = std::bit_cast<float>(step);
  model.with_base = (forms & kWithBase) != 0;
  const auto factor = [&](std::uint8_t form) { return std::bit_cast<float>((forms & form) != 0 ? reader.u32() : 0u); };
  model.base_factor = factor(kWithBaseFactor);
  model.direction_factor = factor(kWithDirection);
  model.base_direction_factor = factor(kWithBaseDirection);
  if (!reader.ok()) return status_of(reader.fault());
  if (!is_positive_bits(step) || forms >= 2 * kWithBaseDirection || (!model.with_base && forms != 0))
    return Status(StatusCode::corrupt, "tensor: a step of ebq is out of range");
  BitReader bits(reader.bytes(reader.remaining()), kMostGolombWidth);
  return get_model(bits, plane_width(description), model.residuals);
}

Result<std::size_t> encode_ebq(const TensorPlan& plan, const TensorInputs&, const ChunkInputs& input,
                               std::span<std::uint8_t> out, AlignedBuffer& memory) {
  EbqModel model;
  double bound = 0;
  QUERN_RETURN_IF_ERROR(get_side(plan.description, plan.side, model, bound));
  if ((model.with_base && input.base.empty()) || (model.direction_factor != 0 && input.direction.empty()) ||
      (model.base_direction_factor != 0 && input.base_direction.empty()))
    return Status(StatusCode::invalid_argument, "tensor: the plan was made with inputs that are missing");
  ChunkScratch scratch(memory);
  QUERN_RETURN_IF_ERROR(scratch.reserve(encoder_scratch_bytes(input.elems) + 9 * input.elems, 6));
  const auto marks = scratch.take<std::uint8_t>(input.elems);
  const auto codes = scratch.take<std::int32_t>(input.elems);
  const auto predictions = scratch.take<float>(input.elems);
  const EbqPiece piece{input.values, input.base, input.direction, input.base_direction};
  SpecialRuns special;
  find_codes(model, bound, input.values, find_predictions(model, piece, predictions), marks, codes.data(),
             input.decoded.data(), special);
  if (!input.decoded.empty()) put_special(special, input.decoded);
  Vector<std::uint8_t> head;
  special.write(head);
  const auto tail = encode_residuals(model.residuals, piece_of(plan.description, input.index), codes, special.places(),
                                     scratch, head);
  return finish_chunk(input, head, tail, out);
}

Result<TensorNeeds> needs_of_ebq(const TensorDescription& description, std::span<const std::uint8_t> side) {
  QUERN_RETURN_IF_ERROR(check_bounded(description, true));
  ByteReader reader(side);
  reader.skip(12);
  const std::uint8_t forms = reader.u8();
  if (!reader.ok()) return status_of(reader.fault());
  TensorNeeds needs;
  needs.base = (forms & kWithBase) != 0;
  needs.direction = (forms & kWithDirection) != 0;
  needs.base_direction = (forms & kWithBaseDirection) != 0;
  return needs;
}

Status decode_ebq(const TensorDescription& description, std::span<const std::uint8_t> side, const TensorInputs&,
                  const ChunkInputs& input, std::span<const std::uint8_t> bytes, std::span<std::uint8_t> out,
                  AlignedBuffer& memory) {
  QUERN_ASSIGN_OR_RETURN(const bool stored, begin_chunk(bytes, out));
  if (stored) return {};
  EbqModel model;
  double bound = 0;
  QUERN_RETURN_IF_ERROR(get_side(description, side, model, bound));
  const PlanePiece piece = piece_of(description, input.index);
  ByteReader reader(bytes);
  SpecialRuns special;
  QUERN_RETURN_IF_ERROR(special.read(reader, piece.elems));
  ChunkScratch scratch(memory);
  QUERN_RETURN_IF_ERROR(scratch.reserve(decoder_scratch_bytes(piece.elems) + 8 * piece.elems, 4));
  const auto codes = scratch.take<std::int32_t>(piece.elems);
  const auto predictions = scratch.take<float>(piece.elems);
  QUERN_RETURN_IF_ERROR(
      decode_residuals(model.residuals, piece, reader.bytes(reader.remaining()), special.places(), scratch, codes));
  const float* const around =
      find_predictions(model, {{}, input.base, input.direction, input.base_direction}, predictions);
  bound_kernels().step_values(model.step, codes.data(), around, piece.elems, out.data());
  put_special(special, out);
  return {};
}

}  // namespace

void update_direction(std::span<const std::uint8_t> exp_avg, std::span<const std::uint8_t> exp_avg_sq,
                      std::span<std::uint8_t> out) {
  for (std::size_t i = 0; i < out.size() / 4; ++i) {
    const std::uint32_t second = bits_at(exp_avg_sq, i);
    const float root = is_positive_bits(second) ? __builtin_sqrtf(std::bit_cast<float>(second)) : 1.0f;
    const auto bits = std::bit_cast<std::uint32_t>(value_at(exp_avg, i) / root);
    put_bits(out, i, is_positive_bits(second) && is_finite_bits(bits) ? bits : 0);
  }
}

// Eight sums side by side, added pairwise, in the order of elements. Twice over the values, so
// that no square is of a large mean.
double standard_deviation(std::span<const std::uint8_t> values) {
  const auto& kernels = bound_kernels();
  const std::size_t elems = values.size() / 4;
  std::array<double, 8> sums{};
  const auto total = [&] {
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
  };
  const std::uint64_t count = kernels.finite_sums(values.data(), elems, sums.data());
  if (count == 0) return 0;
  const double mean = total() / static_cast<double>(count);
  kernels.finite_squares(values.data(), elems, mean, sums.data());
  return __builtin_sqrt(total() / static_cast<double>(count));
}

const ModeCoder kEbqCoder{Mode::ebq, plan_ebq, encode_ebq, needs_of_ebq, decode_ebq, true};

}  // namespace quern::codec::tensor
