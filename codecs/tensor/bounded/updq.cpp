// First moments in units of the root of the second: what an element may be off is what its next update may be off, in
// learning rates. The companion is the decoded second moment; where it is not positive there is no unit, and the
// element is kept exactly.
#include "codecs/tensor/bounded/lossy_chunk.h"

namespace quern::codec::tensor {
namespace {

constexpr double kMinBound = 0x1p-20;
constexpr double kMaxBound = 4;
constexpr double kStepMargin = 1 - 0x1p-22;   // so that rounding costs no element at the edge of its step
constexpr double kCheckMargin = 1 - 0x1p-48;  // more than what the check itself rounds

struct UpdqModel {
  float two_eps = 0;
  std::int32_t base_share = 0;  ///< in 1/64
  ResidualModel residuals;
};

kernels::UpdateUnit unit_of(const UpdqModel& model, double eps) { return {model.two_eps, eps * eps * kCheckMargin}; }

/// Elements of a chunk that are not coded: those without a step, and those that miss the bound.
struct NotCoded {
  SpecialRuns special;           ///< stored
  Vector<std::uint32_t> places;  ///< these, and those that come back as +0
};

/// Codes of a chunk, and what comes back of it if `decoded` is not null.
void find_codes(const kernels::UpdateUnit& unit, std::span<const std::uint8_t> values,
                std::span<const std::uint8_t> second, std::span<std::uint8_t> marks, std::int32_t* codes,
                std::uint8_t* decoded, NotCoded& not_coded) {
  if (!bound_kernels().update_codes(unit, values.data(), second.data(), marks.size(), codes, decoded, marks.data()))
    return;
  for_marked(marks, [&](std::size_t i) {
    const std::uint32_t bits = bits_at(values, i);
    const auto place = static_cast<std::uint32_t>(i);
    if (bits != 0 || is_positive_bits(bits_at(second, i))) not_coded.special.add(place, bits);
    not_coded.places.push_back(place);
  });
}

/// Codes become what predictions from the base leave; elements that are not coded leave 0.
void subtract_predictions(const UpdqModel& model, std::span<const std::uint8_t> base,
                          std::span<const std::uint8_t> second, std::span<const std::uint32_t> not_coded,
                          std::span<std::int32_t> predictions, std::span<std::int32_t> codes) {
  bound_kernels().update_predictions(unit_of(model, 0), model.base_share, base.data(), second.data(), codes.size(),
                                     predictions.data());
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] -= predictions[i];
  for (const std::uint32_t place : not_coded) codes[place] = 0;
}

/// Sums for least squares of codes by those of the base.
struct ShareSums {
  double both = 0;
  double square = 0;

  /// `whole`: all of the base's codes.
  void add(std::span<const std::int32_t> codes, std::span<const std::int32_t> whole) {
    constexpr std::int32_t kMost = 1 << 10;  // larger ones count as this
    std::int64_t chunk_both = 0;
    std::int64_t chunk_square = 0;
    for (std::size_t i = 0; i < codes.size(); ++i) {
      const std::int64_t b = std::clamp(whole[i], -kMost, kMost);
      chunk_both += b * std::clamp(codes[i], -kMost, kMost);
      chunk_square += b * b;
    }
    both += static_cast<double>(chunk_both);
    square += static_cast<double>(chunk_square);
  }
  /// In 1/64.
  std::int32_t share() const {
    if (!(square > 0)) return 0;
    const double x = std::clamp(both / square * 64, -127.0, 127.0);
    return static_cast<std::int32_t>(x + (x < 0 ? -0.5 : 0.5));
  }
};

Status check_companion(const TensorInputs& inputs, bool empty) {
  if (!empty && (inputs.companion.empty() || inputs.companion_type != ElementType::f32))
    return Status(StatusCode::unsupported, "tensor: updq takes the decoded second moment in binary32 as companion");
  return {};
}

Status plan_updq(const TensorInputs& inputs, TaskRunner&, TensorPlan& plan) {
  constexpr std::int32_t kLeastShare = 8;  // of 64: a base that says less is not asked for
  const double eps = plan.request.bound;
  const TensorDescription& description = plan.description;
  QUERN_RETURN_IF_ERROR(check_bounded(description, eps >= kMinBound && eps <= kMaxBound));
  QUERN_RETURN_IF_ERROR(check_companion(inputs, inputs.values.empty()));
  UpdqModel model;
  model.two_eps = static_cast<float>(2 * eps * kStepMargin);
  const kernels::UpdateUnit unit = unit_of(model, eps);
  const Vector<std::uint64_t> fitted = chunks_to_fit(description);
  const std::size_t most = fitted.empty() ? 0 : description.chunk_bytes(0) / 4;
  AlignedBuffer memory;
  ChunkScratch scratch(memory);
  QUERN_RETURN_IF_ERROR(scratch.reserve(most * (1 + 4 + 4 * fitted.size()), fitted.size() + 2));
  const auto marks = scratch.take<std::uint8_t>(most);
  const auto predictions = scratch.take<std::int32_t>(most);
  Vector<std::span<std::int32_t>> codes;
  Vector<NotCoded> not_coded(fitted.size());
  const auto base_of = [&](std::size_t c) { return bytes_of(description, fitted[c], inputs.base); };
  const auto second_of = [&](std::size_t c) { return bytes_of(description, fitted[c], inputs.companion); };
  constexpr std::int32_t kWhole = 64;
  ShareSums sums;
  for (std::size_t c = 0; c < fitted.size(); ++c) {
    const std::size_t elems = description.chunk_bytes(fitted[c]) / 4;
    codes.push_back(scratch.take<std::int32_t>(elems));
    find_codes(unit, bytes_of(description, fitted[c], inputs.values), second_of(c), marks.first(elems), codes[c].data(),
               nullptr, not_coded[c]);
    if (inputs.base.empty()) continue;
    bound_kernels().update_predictions(unit, kWhole, base_of(c).data(), second_of(c).data(), elems, predictions.data());
    sums.add(codes[c], predictions.first(elems));
  }
  model.base_share = sums.share();
  if (std::abs(model.base_share) < kLeastShare) model.base_share = 0;
  Vector<ResidualSample> samples;
  for (std::size_t c = 0; c < fitted.size(); ++c) {
    if (model.base_share != 0)
      subtract_predictions(model, base_of(c), second_of(c), not_coded[c].places, predictions, codes[c]);
    samples.push_back({piece_of(description, fitted[c]), codes[c]});
  }
  QUERN_RETURN_IF_ERROR(fit_residuals(samples, plane_width(description), model.residuals).status());

  append_number(std::bit_cast<std::uint32_t>(model.two_eps), 4, plan.side);
  append_number(static_cast<std::uint8_t>(model.base_share), 1, plan.side);
  BitWriter writer(plan.side);
  put_model(model.residuals, writer);
  return {};
}

Status get_side(const TensorDescription& description, std::span<const std::uint8_t> side, UpdqModel& model) {
  QUERN_RETURN_IF_ERROR(check_bounded(description, true));
  ByteReader reader(side);
  const std::uint32_t two_eps = reader.u32();
  model.two_eps = std::bit_cast<float>(two_eps);
  model.base_share = static_cast<std::int8_t>(reader.u8());
  if (!reader.ok()) return status_of(reader.fault());
  if (!is_positive_bits(two_eps) || model.two_eps > static_cast<float>(2 * kMaxBound))
    return Status(StatusCode::corrupt, "tensor: a step of updq is out of range");
  BitReader bits(reader.bytes(reader.remaining()), kMostGolombWidth);
  return get_model(bits, plane_width(description), model.residuals);
}

Result<std::size_t> encode_updq(const TensorPlan& plan, const TensorInputs& whole, const ChunkInputs& input,
                                std::span<std::uint8_t> out, AlignedBuffer& memory) {
  UpdqModel model;
  QUERN_RETURN_IF_ERROR(check_companion(whole, false));
  QUERN_RETURN_IF_ERROR(get_side(plan.description, plan.side, model));
  if (model.base_share != 0 && input.base.empty())
    return Status(StatusCode::invalid_argument, "tensor: the plan was made with a base, which is missing");
  ChunkScratch scratch(memory);
  QUERN_RETURN_IF_ERROR(scratch.reserve(encoder_scratch_bytes(input.elems) + 9 * input.elems, 6));
  const auto marks = scratch.take<std::uint8_t>(input.elems);
  const auto codes = scratch.take<std::int32_t>(input.elems);
  const auto predictions = scratch.take<std::int32_t>(input.elems);
  NotCoded not_coded;
  find_codes(unit_of(model, plan.request.bound), input.values, input.companion, marks, codes.data(),
             input.decoded.data(), not_coded);
  if (!input.decoded.empty()) put_special(not_coded.special, input.decoded);
  if (model.base_share != 0)
    subtract_predictions(model, input.base, input.companion, not_coded.places, predictions, codes);
  Vector<std::uint8_t> head;
  not_coded.special.write(head);
  const auto tail = encode_residuals(model.residuals, piece_of(plan.description, input.index), codes, not_coded.places,
                                     scratch, head);
  return finish_chunk(input, head, tail, out);
}

Result<TensorNeeds> needs_of_updq(const TensorDescription& description, std::span<const std::uint8_t> side) {
  QUERN_RETURN_IF_ERROR(check_bounded(description, true));
  ByteReader reader(side);
  reader.u32();
  TensorNeeds needs;
  needs.companion = true;
  needs.base = reader.u8() != 0;
  if (!reader.ok()) return status_of(reader.fault());
  return needs;
}

/// Marks elements without a step; returns whether there are any.
bool mark_stepless(float two_eps, std::span<const std::uint8_t> second, std::span<std::uint8_t> marks) {
  bool any = bound_kernels().update_marks(second.data(), marks.size(), marks.data());
  const float least = two_eps * __builtin_sqrtf(std::bit_cast<float>(1u));
  if (least > 0) return any;
  // E is so small that the steps of small second moments are 0. No encoder asks for that.
  for (std::size_t i = 0; i < marks.size(); ++i) {
    if (marks[i] != 0 || two_eps * __builtin_sqrtf(value_at(second, i)) > 0) continue;
    marks[i] = 1;
    any = true;
  }
  return any;
}

Status decode_updq(const TensorDescription& description, std::span<const std::uint8_t> side, const TensorInputs& whole,
                   const ChunkInputs& input, std::span<const std::uint8_t> bytes, std::span<std::uint8_t> out,
                   AlignedBuffer& memory) {
  QUERN_ASSIGN_OR_RETURN(const bool stored, begin_chunk(bytes, out));
  if (stored) return {};
  UpdqModel model;
  QUERN_RETURN_IF_ERROR(check_companion(whole, false));
  QUERN_RETURN_IF_ERROR(get_side(description, side, model));
  const PlanePiece piece = piece_of(description, input.index);
  ChunkScratch scratch(memory);
  QUERN_RETURN_IF_ERROR(scratch.reserve(decoder_scratch_bytes(piece.elems) + 9 * piece.elems, 6));
  const auto marks = scratch.take<std::uint8_t>(piece.elems);
  const auto codes = scratch.take<std::int32_t>(piece.elems);
  const auto predictions = scratch.take<std::int32_t>(piece.elems);
  ByteReader reader(bytes);
  SpecialRuns special;
  QUERN_RETURN_IF_ERROR(special.read(reader, piece.elems));
  const bool some_without_step = mark_stepless(model.two_eps, input.companion, marks);
  for (const std::uint32_t place : special.places()) marks[place] = 1;
  Vector<std::uint32_t> not_coded;
  if (some_without_step || !special.places().empty())
    for_marked(marks, [&](std::size_t i) { not_coded.push_back(static_cast<std::uint32_t>(i)); });
  QUERN_RETURN_IF_ERROR(
      decode_residuals(model.residuals, piece, reader.bytes(reader.remaining()), not_coded, scratch, codes));
  const kernels::UpdateUnit unit = unit_of(model, 0);
  if (model.base_share != 0) {
    bound_kernels().update_predictions(unit, model.base_share, input.base.data(), input.companion.data(), piece.elems,
                                       predictions.data());
    for (std::size_t i = 0; i < piece.elems; ++i)
      codes[i] =
          static_cast<std::int32_t>(static_cast<std::uint32_t>(codes[i]) + static_cast<std::uint32_t>(predictions[i]));
  }
  bound_kernels().update_values(unit, codes.data(), input.companion.data(), piece.elems, out.data());
  for (const std::uint32_t i : not_coded) put_bits(out, i, 0);
  put_special(special, out);
  return {};
}

}  // namespace

const ModeCoder kUpdqCoder{Mode::updq, plan_updq, encode_updq, needs_of_updq, decode_updq, true};

}  // namespace quern::codec::tensor
